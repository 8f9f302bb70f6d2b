-- A short load that makes WAL of nearly every resource manager, on any release from 9.6 to 18.
-- Run by psql with ON_ERROR_STOP and three variables: "tablespace", an empty folder of the server's
-- user; "scale", 100 for a full load; "database", true where a database is to be made and dropped.
SET client_min_messages = error;
SELECT setseed(0.5) \g /dev/null

-- Heap, Btree, Sequence, TOAST, HOT and other updates, vacuum, truncation.
CREATE TABLE item (id serial PRIMARY KEY, grp int, note text, body text);
ALTER TABLE item ALTER body SET STORAGE EXTERNAL;
CREATE INDEX item_grp ON item (grp);
INSERT INTO item (grp, note, body)
  SELECT g % 97, md5(g::text), CASE WHEN g % 50 = 0 THEN repeat(md5(g::text), 200) END FROM generate_series(1, 40 * :scale) g;
UPDATE item SET note = md5(note) WHERE id % 5 = 0;
UPDATE item SET grp = grp + 1 WHERE id % 7 = 0;
DELETE FROM item WHERE id % 11 = 0;
VACUUM (FREEZE) item;
CHECKPOINT;
UPDATE item SET note = md5(note) WHERE id % 3 = 0;
VACUUM item;
DELETE FROM item WHERE id > 30 * :scale;
VACUUM item;

-- Hash, Gin, Gist, SPGist, BRIN, and Generic by way of an extension.
CREATE TABLE place (id int, tags int[], spot point, body text);
CREATE INDEX place_hash ON place USING hash (id);
CREATE INDEX place_gin ON place USING gin (tags);
CREATE INDEX place_gist ON place USING gist (spot);
CREATE INDEX place_spgist ON place USING spgist (spot);
CREATE INDEX place_brin ON place USING brin (id) WITH (pages_per_range = 4);
CREATE EXTENSION bloom;
CREATE INDEX place_bloom ON place USING bloom (id);
INSERT INTO place SELECT g, ARRAY[g % 13, g % 17, g % 19], point(random() * 1000, random() * 1000), md5(g::text)
  FROM generate_series(1, 25 * :scale) g;
DELETE FROM place WHERE id % 2 = 0;
VACUUM place;

-- Transaction: subtransactions, roll back, prepared; MultiXact: a share lock held by two.
BEGIN;
INSERT INTO place VALUES (-1);
SAVEPOINT a;
INSERT INTO place VALUES (-2);
ROLLBACK TO a;
SAVEPOINT b;
INSERT INTO place VALUES (-3);
COMMIT;
BEGIN;
DELETE FROM place;
ROLLBACK;
BEGIN;
SELECT id FROM item WHERE id < 10 FOR SHARE \g /dev/null
PREPARE TRANSACTION 'kept';
BEGIN;
SELECT id FROM item WHERE id < 10 FOR SHARE \g /dev/null
COMMIT;
COMMIT PREPARED 'kept';
BEGIN;
INSERT INTO place VALUES (-4);
PREPARE TRANSACTION 'dropped';
ROLLBACK PREPARED 'dropped';

-- Rewrites and relation files: Storage, RelMap, Database, Tablespace.
CLUSTER item USING item_pkey;
ALTER TABLE item ALTER grp TYPE bigint;
VACUUM FULL item;
VACUUM FULL pg_class;
CREATE UNLOGGED TABLE scratch (id int PRIMARY KEY);
TRUNCATE place;
CREATE TABLESPACE elsewhere LOCATION :'tablespace';
CREATE TABLE moved (id int) TABLESPACE elsewhere;
INSERT INTO moved SELECT generate_series(1, 300);
DROP TABLE moved;
DROP TABLESPACE elsewhere;
\if :database
CREATE DATABASE second;
DROP DATABASE second;
\endif

-- LogicalMessage: many small ones, and one longer than two 1 MB segments. ReplicationOrigin.
SELECT count(pg_logical_emit_message(g % 2 = 0, 'note', repeat('x', g))) FROM generate_series(1, 200) g \g /dev/null
SELECT pg_logical_emit_message(false, 'long', repeat('a long message ', 160000)) \g /dev/null
SELECT pg_replication_origin_create('upstream') \g /dev/null
SELECT pg_replication_origin_advance('upstream', '0/1234') \g /dev/null
SELECT pg_replication_origin_drop('upstream') \g /dev/null

-- COPY: Heap2/MULTI_INSERT.
CREATE TABLE bulk (a int, b text);
COPY bulk FROM PROGRAM 'seq -f "%.0f	line of text" 1 3000';
ANALYZE;
CHECKPOINT;
INSERT INTO item (grp, note) SELECT g, md5(g::text) FROM generate_series(1, 15 * :scale) g;
