select setseed(:unit / 100.0);
do $$
begin
  for i in 1..300 loop
    begin
      update accounts set balance = balance + 1 where id = (1 + random() * 19999)::int;
      if i % 7 = 0 then raise exception 'no'; end if;
    exception when others then null;
    end;
    if i % 10 = 0 then commit; end if;
  end loop;
end $$;
