select setseed(:unit / 100.0);
select format('begin; update accounts set balance = balance + 1 where id = %s; insert into accounts values (%s, 1, '''')  on conflict do nothing; prepare transaction ''t%s''; commit prepared ''t%s'';', (1 + random() * 19999)::int, 30000 + :unit * 1000 + g, g, g) from generate_series(1, 200) g \gexec
