create table l (id int primary key, o oid);
insert into l select g, lo_from_bytea(0, decode(repeat(md5(g::text), 200), 'hex')) from generate_series(1, 200) g;
