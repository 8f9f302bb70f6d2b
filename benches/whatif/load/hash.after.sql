vacuum (truncate off) keys;
