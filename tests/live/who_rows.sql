-- Changes of rows that the server counts too, in tables of their own.
SET client_min_messages = error;
CREATE SCHEMA counted;
CREATE TABLE counted.plain (id int PRIMARY KEY, grp int, note text) WITH (autovacuum_enabled = off);
CREATE INDEX plain_grp ON counted.plain (grp);
CREATE TABLE counted.roomy (id int PRIMARY KEY, note text) WITH (fillfactor = 50, autovacuum_enabled = off);
CREATE TABLE counted.wide (id int PRIMARY KEY, body text) WITH (autovacuum_enabled = off);
INSERT INTO counted.plain SELECT g, g % 10, md5(g::text) FROM generate_series(1, 3000) g;
COPY counted.roomy FROM PROGRAM 'seq -f "%g,note" 1 3000' (FORMAT csv);
INSERT INTO counted.wide SELECT g, (SELECT string_agg(md5((g * h)::text), '') FROM generate_series(1, 200) h)
  FROM generate_series(1, 50) g;
UPDATE counted.plain SET grp = grp + 1 WHERE id % 3 = 0;
UPDATE counted.plain SET note = 'x' WHERE id % 4 = 0;
UPDATE counted.roomy SET note = md5(note) WHERE id % 2 = 0;
UPDATE counted.roomy SET note = md5(note) WHERE id % 2 = 0;
UPDATE counted.wide SET body = body || 'x' WHERE id % 2 = 0;
DELETE FROM counted.plain WHERE id % 5 = 0;
BEGIN;
UPDATE counted.plain SET note = 'never' WHERE id % 7 = 0;
ROLLBACK;
SELECT count(*) FROM (SELECT * FROM counted.plain WHERE id < 50 FOR UPDATE) locked \g /dev/null
VACUUM counted.plain;
