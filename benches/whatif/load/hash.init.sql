create table keys (id int, body text);
create index on keys using hash (id);
insert into keys select g * 7919, 'k' from generate_series(1, 20000) g;
