create table places (id serial, at point, name text);
create index on places using spgist (at);
create index on places using spgist (name);
insert into places (at, name) select point(g * 7919 % 10007, g * 104729 % 10009), md5(g::text) from generate_series(1, 10000) g;
