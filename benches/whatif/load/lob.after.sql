vacuum (truncate off) pg_largeobject;
