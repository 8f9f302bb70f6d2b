create table parent (id int primary key, note text);
create table child (id bigserial primary key, parent int references parent, body text, tags int[], doc jsonb);
create index on child (parent);
create index on child (lower(body)) where parent % 3 = 0;
create index on child using gin (tags);
create index on child using gin (doc jsonb_path_ops);
insert into parent select g, repeat('p', g % 90) from generate_series(1, 3000) g;
insert into child (parent, body, tags, doc) select 1 + g % 3000, repeat(chr(97 + g % 26), g % 120), array[g % 30, g % 7], jsonb_build_object('a', g % 100, 'b', repeat('z', g % 50)) from generate_series(1, 8000) g;
