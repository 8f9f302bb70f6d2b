//! Relations that every cluster of a release has under the same oids: the catalogs, their indexes
//! and TOAST tables, from the one data file `builtin.tsv`. Their first files have the numbers of
//! the oids, and no other relation's file ever gets those.

use super::relation::Relation;
use super::row::{CATALOG_SCHEMA_NAME, Source, TOAST_SCHEMA_NAME};
use std::collections::HashMap;
use std::sync::Arc;
use walstat_format::version::{VERSIONS, Version};

/// Below are oids that are fixed (`FirstGenbkiObjectId`).
const FIXED_OIDS: u32 = 10_000;
/// The columns of the data file, below one line of headings.
const DATA: &str = include_str!("builtin.tsv");

/// The relations of fixed oids of one release.
#[derive(Debug, Clone, Default)]
pub(super) struct Builtin {
    /// By oid, and whether all databases share them.
    relations: HashMap<(u32, bool), Relation>,
}

impl Builtin {
    /// Those of a release.
    pub(super) fn of(version: &Version) -> Builtin {
        let place = VERSIONS.iter().position(|other| other.magic == version.magic);
        let rows = DATA.lines().skip(1).filter_map(|line| row(line, place?));
        Builtin { relations: rows.collect() }
    }

    /// The relation of this oid, or of the file of this number.
    pub(super) fn get(&self, oid: u32, is_shared: bool) -> Option<&Relation> {
        self.relations.get(&(oid, is_shared)).filter(|_| oid < FIXED_OIDS)
    }
}

/// A line of the data file, if the release at `place` of the table has the relation.
fn row(line: &str, place: usize) -> Option<((u32, bool), Relation)> {
    let mut fields = line.split('\t');
    let oid = fields.next()?.parse().ok()?;
    let name = fields.next()?;
    let kind = *fields.next()?.as_bytes().first()?;
    let table = fields.next()?.parse().ok()?;
    let is_shared = fields.next()? == "yes";
    let since = release(fields.next()?)?;
    let until = match fields.next()? {
        "" => VERSIONS.len(),
        name => release(name)?,
    };
    let schema =
        if name.starts_with("pg_toast_") { TOAST_SCHEMA_NAME } else { CATALOG_SCHEMA_NAME };
    let relation = Relation {
        oid,
        schema: Some(Arc::from(schema)),
        name: name.into(),
        kind,
        persistence: b'p',
        table: Some(table),
        parent: None,
        is_partition: false,
        is_gone: false,
        source: Source::Builtin,
    };
    (since..=until).contains(&place).then_some(((oid, is_shared), relation))
}

fn release(name: &str) -> Option<usize> {
    VERSIONS.iter().position(|version| version.name.eq(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_data_file_is_of_some_release() {
        for line in DATA.lines().skip(1) {
            assert!((0..VERSIONS.len()).any(|place| row(line, place).is_some()), "{line}");
        }
    }

    #[test]
    fn relations_follow_the_release() {
        let name = |place: usize, oid, is_shared| {
            Builtin::of(&VERSIONS[place]).get(oid, is_shared).map(|found| found.name.to_string())
        };
        assert_eq!(name(0, 1259, false).as_deref(), Some("pg_class"));
        assert_eq!(name(0, 1136, true).as_deref(), Some("pg_pltemplate"));
        assert_eq!((name(5, 1136, true), name(0, 1262, false)), (None, None));
        assert_eq!(name(11, 6351, false).as_deref(), Some("pg_toast_2610"));
        assert_eq!(name(9, 6351, false), None);
        let builtin = Builtin::of(&VERSIONS[7]);
        let index = builtin.get(2659, false).expect("pg_attribute_relid_attnum_index");
        assert_eq!((index.kind, index.table), (b'i', Some(1249)));
    }
}
