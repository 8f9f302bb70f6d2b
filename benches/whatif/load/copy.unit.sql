create temp table rows (id bigint, tag text, body text);
copy rows from '/tmp/walstat-whatif-rows';
update rows set id = id + :unit * 10000;
copy rows to '/tmp/walstat-whatif-unit';
copy copied from '/tmp/walstat-whatif-unit';
