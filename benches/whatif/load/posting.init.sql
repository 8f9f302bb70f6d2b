create table events (id bigserial, kind int, place int);
create index on events (kind);
create index on events (place, kind);
insert into events (kind, place) select g % 20, g % 3 from generate_series(1, 20000) g;
