create table w (id text primary key, n int, body text);
create unique index on w (n);
create index on w (body);
insert into w select md5(g::text), g, repeat(md5((g*3)::text), 1 + g % 6) from generate_series(1, 10000) g;
