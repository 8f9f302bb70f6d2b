create table wide (id int, a text, b text, c numeric);
insert into wide select g, md5(g::text), repeat('w', g % 300), g * 1.5 from generate_series(1, 15000) g;
create index wide_id on wide (id);
