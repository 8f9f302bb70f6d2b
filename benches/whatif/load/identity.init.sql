create table items (id int primary key, name text, amount int);
alter table items replica identity full;
create table lines (id int primary key, name text, amount int);
insert into items select g, repeat('n', 40), 0 from generate_series(1, 20000) g;
insert into lines select g, repeat('n', 40), 0 from generate_series(1, 20000) g;
