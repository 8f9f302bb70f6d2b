create table orders (id int primary key, customer int, body text);
create index on orders (customer);
insert into orders select g, g % 500, repeat('x', 100) from generate_series(1, 30000) g;
create sequence next_order start 30001;
