-- Partitions, from 11 on with indexes of their own.
CREATE TABLE measured (day date, v int) PARTITION BY RANGE (day);
CREATE TABLE measured_1 PARTITION OF measured FOR VALUES FROM ('2026-01-01') TO ('2026-07-01');
CREATE TABLE measured_2 PARTITION OF measured FOR VALUES FROM ('2026-07-01') TO ('2027-01-01');
CREATE INDEX measured_1_v ON measured_1 (v);
