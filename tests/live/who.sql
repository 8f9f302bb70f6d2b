-- Relations of all kinds, with names that are hard to carry, that are rewritten and dropped, in two
-- databases from one template and in a second tablespace. Run by psql with the variable "tablespace".
SET client_min_messages = error;
SELECT :SERVER_VERSION_NUM >= 110000 AS has_partitions \gset
CREATE TABLESPACE fast LOCATION :'tablespace';
CREATE SCHEMA "Sales dept";
CREATE TABLE orders (id serial PRIMARY KEY, customer int, state text, note text, body text);
ALTER TABLE orders ALTER body SET STORAGE EXTERNAL;
CREATE INDEX orders_customer ON orders (customer);
CREATE TABLE "Sales dept"."a ""quoted""
line" (id int PRIMARY KEY, "größe" text);
SELECT format('CREATE TABLE "Sales dept".%I (id int, body text)', repeat('ü', 31) || 'x') \gexec
SELECT format('CREATE TABLE %I (id int)', E'\u202Erlo\u001b[31m,\t=1') \gexec
CREATE UNLOGGED TABLE draft (id int PRIMARY KEY, body text);
CREATE TABLE child (extra int) INHERITS (orders);
CREATE TABLE elsewhere (id int PRIMARY KEY, body text) TABLESPACE fast;
CREATE MATERIALIZED VIEW summary AS SELECT state, count(*) FROM orders GROUP BY 1;
CREATE TABLE dropped (id int PRIMARY KEY, body text);
\if :has_partitions
CREATE TABLE part (id int, day int, body text, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (50);
CREATE TABLE part_2 PARTITION OF part FOR VALUES FROM (50) TO (100) PARTITION BY LIST (id);
CREATE TABLE part_2_all PARTITION OF part_2 DEFAULT;
CREATE TABLE detached PARTITION OF part FOR VALUES FROM (200) TO (300);
INSERT INTO part SELECT g, g % 100, repeat(md5(g::text), 3) FROM generate_series(1, 1000) g;
ALTER TABLE part DETACH PARTITION detached;
\endif
INSERT INTO orders (customer, state, note, body)
  SELECT g % 97, 'new', md5(g::text), CASE WHEN g % 50 = 0 THEN repeat(md5(g::text), 200) END
    FROM generate_series(1, 2000) g;
INSERT INTO child (id, customer, extra) SELECT g, g, g FROM generate_series(1, 100) g;
INSERT INTO "Sales dept"."a ""quoted""
line" SELECT g, md5(g::text) FROM generate_series(1, 100) g;
INSERT INTO draft SELECT g, md5(g::text) FROM generate_series(1, 100) g;
INSERT INTO elsewhere SELECT g, repeat(md5(g::text), 100) FROM generate_series(1, 100) g;
INSERT INTO dropped SELECT g, md5(g::text) FROM generate_series(1, 100) g;
CREATE TEMPORARY TABLE passing (id int PRIMARY KEY, body text);
INSERT INTO passing SELECT g, md5(g::text) FROM generate_series(1, 100) g;
REFRESH MATERIALIZED VIEW summary;

-- Two databases that begin with the same oids, and part from there.
CREATE DATABASE east TEMPLATE postgres;
CREATE DATABASE west TEMPLATE postgres;
CREATE DATABASE south TABLESPACE fast;
\connect east
SET client_min_messages = error;
ALTER TABLE orders RENAME TO orders_east;
UPDATE orders_east SET state = 'east' WHERE id % 3 = 0;
VACUUM FULL orders_east;
CREATE TABLE only_east (id int PRIMARY KEY);
INSERT INTO only_east SELECT generate_series(1, 100);
\connect west
SET client_min_messages = error;
ALTER TABLE orders RENAME TO orders_west;
UPDATE orders_west SET state = 'west' WHERE id % 3 = 0;
ALTER SCHEMA "Sales dept" RENAME TO sales;
CREATE TABLE only_west (id int PRIMARY KEY);
INSERT INTO only_west SELECT generate_series(1, 100);
\connect south
SET client_min_messages = error;
CREATE TABLE only_south (id int PRIMARY KEY, body text);
INSERT INTO only_south SELECT g, md5(g::text) FROM generate_series(1, 100) g;
VACUUM FULL pg_class;
\connect postgres
SET client_min_messages = error;

-- Rewrites, each between changes of rows.
CHECKPOINT;
VACUUM FULL orders;
UPDATE orders SET note = md5(note) WHERE id % 5 = 0;
CLUSTER orders USING orders_customer;
UPDATE orders SET customer = customer + 1 WHERE id % 7 = 0;
ALTER TABLE orders ALTER customer TYPE bigint;
DELETE FROM orders WHERE id % 11 = 0;
REINDEX TABLE orders;
INSERT INTO orders (customer, state, body) SELECT g, 'more', repeat(md5(g::text), 200) FROM generate_series(1, 50) g;
TRUNCATE draft;
TRUNCATE "Sales dept"."a ""quoted""
line";
INSERT INTO "Sales dept"."a ""quoted""
line" SELECT g, md5(g::text) FROM generate_series(1, 50) g;
ALTER TABLE elsewhere SET TABLESPACE pg_default;
ALTER TABLE child SET TABLESPACE fast;
INSERT INTO child (id, customer, extra) SELECT g, g, g FROM generate_series(101, 200) g;
DROP TABLE dropped;
BEGIN;
CREATE TABLE never (id int);
INSERT INTO never SELECT generate_series(1, 100);
ROLLBACK;
BEGIN;
SAVEPOINT a;
INSERT INTO child (id) VALUES (1000);
ROLLBACK TO a;
SAVEPOINT b;
INSERT INTO child (id) VALUES (1001);
COMMIT;
VACUUM FULL pg_class;
ALTER TABLE child RENAME TO "child of orders";
