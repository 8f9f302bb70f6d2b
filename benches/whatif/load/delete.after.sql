vacuum (truncate off) orders;
