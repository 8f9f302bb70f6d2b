vacuum (truncate off) w;
