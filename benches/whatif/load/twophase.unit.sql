select setseed(:unit / 100.0);
select 'begin',
    format('update accounts set balance = balance + 1 where id = %s', (1 + random() * 19999)::int),
    format('insert into accounts values (%s, 1, '''')', 30000 + :unit * 1000 + g),
    format('prepare transaction ''t%s''', g),
    format('commit prepared ''t%s''', g)
from generate_series(1, 200) g \gexec
