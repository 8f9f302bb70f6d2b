create table accounts (id int primary key, balance int, filler char(84));
insert into accounts select g, 0, '' from generate_series(1, 20000) g;
