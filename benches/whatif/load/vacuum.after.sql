vacuum (truncate off) accounts;
