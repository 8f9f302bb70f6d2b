create table m (id int, at int, v text) partition by range (at);
create table m1 partition of m for values from (0) to (1000);
create table m2 partition of m for values from (1000) to (2000);
create table m3 partition of m for values from (2000) to (3000);
create index on m1 (id); create index on m2 (id); create index on m3 (id);
insert into m select g, g % 3000, repeat('v', 20 + g % 60) from generate_series(1, 20000) g;
create sequence s cache 1; create sequence s2 cache 10;
