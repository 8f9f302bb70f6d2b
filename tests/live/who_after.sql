-- What happens after the last checkpoint, so that the catalogs on disk are older than the WAL.
SET client_min_messages = error;
CHECKPOINT;
CREATE TABLE late (id int PRIMARY KEY, body text);
INSERT INTO late SELECT g, repeat(md5(g::text), 100) FROM generate_series(1, 200) g;
ALTER TABLE orders RENAME TO orders_of_late;
VACUUM FULL orders_of_late;
UPDATE orders_of_late SET note = 'late' WHERE id % 2 = 0;
DROP TABLE elsewhere;
VACUUM FULL pg_class;
VACUUM FULL pg_namespace;
VACUUM FULL pg_index;
REINDEX TABLE pg_class;
ALTER SCHEMA "Sales dept" RENAME TO "sales of late";
CREATE TABLE later (id int PRIMARY KEY);
INSERT INTO later SELECT generate_series(1, 100);
ALTER TABLE later SET TABLESPACE fast;
CREATE DATABASE north TEMPLATE east;
ALTER DATABASE west RENAME TO far_west;
\connect north
SET client_min_messages = error;
ALTER TABLE only_east RENAME TO only_north;
INSERT INTO only_north SELECT generate_series(101, 200);
DROP TABLE orders_east CASCADE;
