COPY (
  SELECT CASE WHEN c.relisshared THEN 0 ELSE d.oid END AS database,
         CASE WHEN c.relisshared THEN NULL ELSE d.datname END AS database_name,
         CASE WHEN f.file IS NOT NULL THEN s.oid END AS tablespace,
         CASE WHEN f.file IS NOT NULL THEN s.spcname END AS tablespace_name,
         f.file AS relfilenode,
         c.oid AS oid,
         n.nspname AS schema,
         c.relname AS name,
         c.relkind AS kind,
         coalesce(owner.oid, i.indrelid, c.oid) AS "table",
         h.inhparent AS parent
    FROM pg_catalog.pg_class c
    CROSS JOIN LATERAL (SELECT pg_catalog.pg_relation_filenode(c.oid) AS file) f
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_catalog.pg_database d ON d.datname = pg_catalog.current_database()
    LEFT JOIN pg_catalog.pg_tablespace s
           ON s.oid = CASE WHEN c.reltablespace = 0 THEN d.dattablespace ELSE c.reltablespace END
    LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid
    LEFT JOIN pg_catalog.pg_class owner
           ON owner.reltoastrelid = coalesce(i.indrelid, c.oid) AND owner.reltoastrelid <> 0
    LEFT JOIN pg_catalog.pg_inherits h ON h.inhrelid = c.oid AND h.inhseqno = 1
   WHERE c.relkind IN ('r', 'i', 'S', 't', 'm', 'p', 'I') AND c.relpersistence <> 't'
   ORDER BY 1, 3, 5, 6
) TO STDOUT WITH (FORMAT csv, HEADER);
