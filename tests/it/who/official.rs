//! What servers say: `pg_get_wal_block_info` by relation and fork, and the names of their relations.

use super::{json, number, rows};
use crate::support::catalogs::catalogs;
use crate::support::fixtures::{sample, sample_names};
use std::collections::BTreeMap;
use std::fs;
use walstat_format::block::RelFileLocator;

type Key = (u64, u64, u64, u64);

#[test]
fn blocks_are_those_of_pg_get_wal_block_info() {
    for name in ["pg17-mixed", "pg19-mixed"] {
        let sample = sample(name);
        let path = sample.golden.join("block-info.tsv");
        let text = fs::read_to_string(path).expect("block-info.tsv");
        let mut official: BTreeMap<Key, [u64; 4]> = BTreeMap::new();
        for line in text.lines().skip(1) {
            let cells: Vec<u64> = line.split('\t').filter_map(|cell| cell.parse().ok()).collect();
            let &[file, database, tablespace, fork, refs, data, images, _, distinct] = &cells[..]
            else {
                panic!("{line}");
            };
            official.insert((tablespace, database, file, fork), [refs, data, images, distinct]);
        }
        let report =
            json(&sample.wal, &["--stats=relation", "-s", &sample.start, "-e", &sample.end]);
        let keys = ["block_refs", "block_data_bytes", "fpi_bytes", "distinct_blocks"];
        let found: BTreeMap<Key, [u64; 4]> = rows(&report, "relations")
            .iter()
            .filter(|row| !row["fork"].is_null())
            .map(|row| {
                let forks = ["main", "fsm", "vm", "init"];
                let fork = forks.iter().position(|fork| row["fork"] == *fork).expect("a fork");
                let of = |key| number(row, key);
                let key = (of("tablespace"), of("database"), of("relfilenode"), fork as u64);
                (key, keys.map(of))
            })
            .collect();
        assert!(official.len() > 300, "{}", official.len());
        assert_eq!(found, official, "{name}");
    }
}

/// With the data directory every relation of users has the name that the server has for it.
#[test]
fn relations_have_the_servers_names() {
    let mut clusters = 0;
    for catalogs in catalogs().iter().filter(|c| sample_names().contains(&c.name)) {
        let wal = sample(&catalogs.name).wal;
        let directory = catalogs.directory.to_str().expect("a path");
        let report = json(&wal, &["--stats=relation,table", "--data-directory", directory]);
        let mut named = 0;
        for row in rows(&report, "relations").iter().filter(|row| !row["fork"].is_null()) {
            let of = |key| u32::try_from(number(row, key)).expect("an oid");
            let file = RelFileLocator {
                tablespace: of("tablespace"),
                database: of("database"),
                relfilenode: of("relfilenode"),
            };
            let Some(truth) = catalogs.truth.rows.get(&file) else { continue };
            assert_eq!(row["name"], truth.name.as_str(), "{}: {row}", catalogs.name);
            assert_eq!(row["schema"], truth.schema.as_str(), "{}: {row}", catalogs.name);
            assert_eq!(row["oid"], truth.oid, "{}: {row}", catalogs.name);
            named += 1;
        }
        assert!(named > 30, "{}: {named}", catalogs.name);
        let names = &report["names"];
        let (all, named) = (number(names, "relation_bytes"), number(names, "named_bytes"));
        assert!(named * 100 >= all * 99, "{}: {names}", catalogs.name);
        clusters += 1;
    }
    assert!(clusters >= 10, "{clusters}");
}
