vacuum (truncate off) m1;
vacuum (truncate off) m2;
