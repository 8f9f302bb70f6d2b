create table texts (id serial, words int[]);
create index on texts using gin (words) with (fastupdate = off);
create table lists (id serial, words int[]);
create index on lists using gin (words);
insert into texts (words) select array[g % 1000, g % 777, g % 50] from generate_series(1, 10000) g;
insert into lists (words) select array[g % 1000, g % 777, g % 50] from generate_series(1, 10000) g;
