create table readings (id serial, at int, body text);
create index on readings using brin (at) with (pages_per_range = 2, autosummarize = off);
insert into readings (at, body) select g, repeat('r', 60) from generate_series(1, 20000) g;
