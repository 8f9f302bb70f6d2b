-- Changes that a crash leaves to the WAL alone.
CREATE TABLE made_late (id int PRIMARY KEY, t text);
ALTER TABLE before_rename RENAME TO after_rename;
ALTER SCHEMA app RENAME TO application;
DROP TABLE dropped;
TRUNCATE truncated;
TRUNCATE truncated;
CLUSTER clustered USING clustered_pkey;
ALTER TABLE retyped ALTER id TYPE bigint;
ALTER TABLE moves SET TABLESPACE second;
REINDEX TABLE plain;
REFRESH MATERIALIZED VIEW summary;
VACUUM FULL plain;
-- One that aborts, whose subtransactions would have committed.
BEGIN;
CREATE TABLE never_made (id int);
ALTER TABLE after_rename RENAME TO never_named;
TRUNCATE clustered;
SAVEPOINT a;
ALTER TABLE retyped RENAME TO never_named_either;
RELEASE a;
ROLLBACK;
-- One that commits with a subtransaction, and without another.
BEGIN;
SAVEPOINT a;
ALTER TABLE many_2 RENAME TO renamed_in_a_subtransaction;
RELEASE a;
SAVEPOINT b;
ALTER TABLE many_3 RENAME TO never_named;
ROLLBACK TO b;
COMMIT;
-- The row of a catalog is locked by one (sub)transaction and updated by another: a multixact.
BEGIN;
SAVEPOINT a;
SELECT 1 FROM pg_class WHERE relname = 'by_multixact' FOR KEY SHARE;
RELEASE a;
TRUNCATE by_multixact;
COMMIT;
-- Indexes of a catalog get other files; a transaction that is open would be waited for.
REINDEX TABLE pg_class;
-- Still open when the server stops.
BEGIN;
ALTER TABLE by_prepared RENAME TO named_when_it_commits;
PREPARE TRANSACTION 'names';
-- Catalogs get other files, and are changed in them.
VACUUM FULL pg_class;
ALTER TABLE many_4 RENAME TO renamed_after_pg_class;
VACUUM FULL pg_index;
CREATE INDEX many_5_t ON many_5 (t);
VACUUM FULL pg_database;
DROP TABLE many_6;
CREATE DATABASE late TEMPLATE twin;
ALTER DATABASE original RENAME TO first_one;
\connect late
ALTER TABLE in_both RENAME TO in_late;
\connect postgres
ALTER DATABASE twin SET TABLESPACE second;
\connect twin
CREATE TABLE made_after_the_move (id int PRIMARY KEY, t text);
\connect postgres
INSERT INTO plain (t) SELECT md5(i::text) FROM generate_series(1, 100) i;
