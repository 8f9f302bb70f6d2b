create table copied (id bigint primary key, tag text, body text);
copy (select g, 'tag ' || g % 100, repeat(md5(g::text), 4) from generate_series(1, 4000) g) to '/tmp/walstat-whatif-rows';
