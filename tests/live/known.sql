-- A table whose every change is counted by the server itself, row by row; the test holds the
-- record counts of this one relation against them. The name is "known".
CREATE TABLE known (id int PRIMARY KEY, grp int, note text) WITH (fillfactor = 80);
CREATE INDEX known_grp ON known (grp);
INSERT INTO known SELECT g, g % 10, md5(g::text) FROM generate_series(1, 1000) g;
UPDATE known SET note = md5(note) WHERE id % 4 = 0;
UPDATE known SET grp = grp + 1 WHERE id % 10 = 0;
DELETE FROM known WHERE id % 3 = 0;
