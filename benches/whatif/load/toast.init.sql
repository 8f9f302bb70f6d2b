create table documents (id int primary key, body text);
alter table documents alter body set storage external;
insert into documents select g, repeat(md5(g::text), 50 + g % 200) from generate_series(1, 1000) g;
