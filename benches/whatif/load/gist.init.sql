create table points (id serial, at point);
create index on points using gist (at);
insert into points (at) select point(g * 7919 % 10007, g * 104729 % 10009) from generate_series(1, 15000) g;
