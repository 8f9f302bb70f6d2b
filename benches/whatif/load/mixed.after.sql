vacuum (truncate off) child;
vacuum (truncate off) parent;
