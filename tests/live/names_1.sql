-- Relations of all kinds, in two tablespaces and several databases; some rewritten, renamed and
-- dropped. The second part changes them without a checkpoint.
CREATE TABLESPACE second LOCATION :'tablespace';
CREATE SCHEMA app;
CREATE TABLE plain (id serial PRIMARY KEY, t text);
CREATE INDEX plain_t ON plain (t);
CREATE TABLE app.plain (id int PRIMARY KEY, t text);
CREATE TABLE narrow (i int);
CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY, t text);
CREATE TABLE there (id int PRIMARY KEY, t text) TABLESPACE second;
CREATE TABLE moves (id int PRIMARY KEY, t text);
CREATE TABLE parent (id int, t text);
CREATE TABLE child (PRIMARY KEY (id)) INHERITS (parent);
CREATE MATERIALIZED VIEW summary AS SELECT count(*) AS n FROM plain;
CREATE VIEW a_view AS SELECT * FROM plain;
CREATE TABLE "quoted ""name"", with a 'quote'" (t text);
CREATE TABLE "Größenänderungsüberwachungsmaßnahmenverzeichniseinträge" (id int);
CREATE TABLE before_rename (id int PRIMARY KEY, t text);
CREATE TABLE dropped (id int PRIMARY KEY, t text);
CREATE TABLE truncated (id int PRIMARY KEY, t text);
CREATE TABLE clustered (id int PRIMARY KEY, t text);
CREATE TABLE retyped (id int PRIMARY KEY, t text);
CREATE TABLE by_multixact (id int PRIMARY KEY, t text);
CREATE TABLE by_prepared (id int PRIMARY KEY, t text);
INSERT INTO plain (t) SELECT repeat(md5(i::text), 10) FROM generate_series(1, 200) i;
INSERT INTO clustered SELECT i, repeat(md5(i::text), 10) FROM generate_series(1, 200) i;
INSERT INTO retyped SELECT i, md5(i::text) FROM generate_series(1, 200) i;
-- Enough for several pages of the catalogs.
SELECT 'CREATE TABLE many_' || i || ' (id int PRIMARY KEY, t text)' FROM generate_series(1, 60) i \gexec
CREATE DATABASE original;
\connect original
CREATE TABLE in_both (id int PRIMARY KEY, t text);
CREATE TABLE one_of_them (id int PRIMARY KEY, t text);
-- A database made from this one has other files for its catalogs than their oids.
VACUUM FULL pg_namespace;
\connect postgres
CREATE DATABASE twin TEMPLATE original;
CREATE DATABASE elsewhere TABLESPACE second;
\connect twin
ALTER TABLE one_of_them RENAME TO other_one;
VACUUM FULL in_both;
\connect elsewhere
CREATE TABLE in_elsewhere (id int PRIMARY KEY, t text);
CREATE TABLE back_home (id int) TABLESPACE pg_default;
\connect postgres
VACUUM FULL plain;
CLUSTER clustered USING clustered_pkey;
DROP TABLE many_1;
