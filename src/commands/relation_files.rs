//! The files that `--relation` stands for.

use super::read::{self, found};
use crate::args::name_sources::NameArgs;
use crate::args::relation::{Identifiers, RelationArg, quoted};
use crate::args::source::{FilterArgs, SourceArgs};
use crate::args::values::nearest;
use crate::failure::Failure;
use std::collections::BTreeSet;
use walstat_analyse::dimension::{Dimension, Dimensions};
use walstat_analyse::finished_transactions::Order;
use walstat_analyse::select::{Filters, RelationFilter};
use walstat_analyse::who::Who;
use walstat_format::block::RelFileLocator;
use walstat_format::ordered::CollectOrdered;
use walstat_names::catalog::names::{Names, Relation};
use walstat_read::input::discover::Found;
use walstat_read::input::inherited::is_read_once;
use walstat_report::known::Known;

/// Why names are missing where WAL comes through a pipe.
const NOT_LEARNT: &str = "names are not learnt from a pipe, which can be read only once: give files, --names \
     or --data-directory";

/// Names, and why some are missing.
pub type Named = (Names, Vec<String>);

/// The filters asked for, with the files that a name stands for; and the names, if they were needed.
pub fn filters(
    source: &SourceArgs,
    filters: &FilterArgs,
    names: &NameArgs,
) -> Result<(Filters, Option<Named>), Failure> {
    let Some(asked) = &filters.relation else { return Ok((filters.filters(None), None)) };
    let text = asked.to_string();
    if let (RelationArg::File(file), false) = (asked, filters.table) {
        let relation = RelationFilter { text, whole_table: false, files: vec![*file] };
        return Ok((filters.filters(Some(relation)), None));
    }
    let (named, seen) = first_pass(source, names)?;
    let files = Search { names: &named.0, seen }.files(asked, filters.table)?;
    let (whole_table, files) = (filters.table, files.into_iter().collect());
    let relation = RelationFilter { text, whole_table, files };
    Ok((filters.filters(Some(relation)), Some(named)))
}

/// The names of all sources, the WAL too, as far as it may be read for them; where it can be read only
/// once, those that are known without it.
pub fn names(source: &SourceArgs, names: &NameArgs) -> Result<Named, Failure> {
    if let Some(named) = all_names(source, names)? {
        return Ok(named);
    }
    let found = found(source)?;
    let known = Known::names(&names.sources(), &found);
    if !can_be_read_again(&found) {
        let (names, mut warnings) = known.without_wal();
        if names.files().next().is_none() {
            warnings.push(NOT_LEARNT.to_owned());
        }
        return Ok((names, warnings));
    }
    let window = read::window(source, &found)?;
    let (mut scan, _) = read::scan_in(source, window.as_ref(), &Filters::default())?;
    scan.wanted.limit = None;
    let (plan, scanned) = scan.count_found(found, &Who::names(known.store()))?;
    let (counted, warnings) = known.finish(scanned.observer, &plan);
    Ok((counted.names, warnings))
}

/// Whether what was found can be read twice.
pub fn can_be_read_again(found: &Found) -> bool {
    !found.streams.iter().any(|stream| is_read_once(&stream.path))
}

/// Whether all of the WAL may be read for names, and not only the range that is asked for: not where each
/// segment has to be fetched, which may be terabytes for a range of one.
pub fn may_be_read_whole(source: &SourceArgs, found: &Found) -> bool {
    let range = &source.range;
    let is_range = range.start.is_some()
        || range.end.is_some()
        || range.since.is_some()
        || range.until.is_some();
    can_be_read_again(found) && (found.listed.is_empty() || !is_range)
}

/// The names of all sources, and the files in the WAL; if the WAL can be read only once, the names that
/// are known without it.
fn first_pass(
    source: &SourceArgs,
    names: &NameArgs,
) -> Result<(Named, Option<BTreeSet<RelFileLocator>>), Failure> {
    let found = found(source)?;
    let known = Known::names(&names.sources(), &found);
    if !can_be_read_again(&found) {
        return Ok((known.without_wal(), None));
    }
    let relations = Dimensions::from([Dimension::Relation]);
    let who = Who::new(&relations, 1, Order::Bytes, known.store());
    let (plan, scanned) = read::all(source).count_found(found, &who)?;
    let (counted, warnings) = known.finish(scanned.observer, &plan);
    let seen = counted.files();
    Ok(((counted.names, warnings), Some(seen)))
}

/// The names of all sources, the WAL before and after a range too; `None` if it may not be read for them.
pub fn all_names(source: &SourceArgs, names: &NameArgs) -> Result<Option<Named>, Failure> {
    let found = found(source)?;
    if !may_be_read_whole(source, &found) {
        return Ok(None);
    }
    let known = Known::names(&names.sources(), &found);
    let (plan, scanned) = read::all(source).count_found(found, &Who::names(known.store()))?;
    let (counted, warnings) = known.finish(scanned.observer, &plan);
    Ok(Some((counted.names, warnings)))
}

/// What names are looked up in.
struct Search<'n> {
    names: &'n Names,
    /// The files in the WAL; `None` where it can be read only once.
    seen: Option<BTreeSet<RelFileLocator>>,
}

/// A relation of a database.
type Key = (u32, u32);

impl<'n> Search<'n> {
    /// The files of all relations that are asked for; `whole`: with TOAST and indexes of their tables.
    fn files(&self, asked: &RelationArg, whole: bool) -> Result<BTreeSet<RelFileLocator>, Failure> {
        let all = self.relations();
        let is_asked = |(database, relation): &&(u32, &Relation)| match asked {
            RelationArg::File(file) => {
                let of_file = self.names.relation(*file).map(|relation| relation.oid);
                (file.database, of_file) == (*database, Some(relation.oid))
            }
            RelationArg::Name(name) => self.is_called(*database, relation, &name.parts),
        };
        let mut wanted: BTreeSet<Key> = all.iter().filter(is_asked).map(key).collect_set();
        if let (RelationArg::Name(name), true) = (asked, wanted.is_empty()) {
            return Err(self.unknown(name, &all));
        }
        add_partitions(&mut wanted, &all);
        if whole {
            let table = |(database, relation): &(u32, &Relation)| {
                (*database, relation.table.unwrap_or(relation.oid))
            };
            let of_wanted = all.iter().filter(|entry| wanted.contains(&key(entry)));
            let tables: BTreeSet<Key> = of_wanted.map(table).collect_set();
            wanted = all.iter().filter(|entry| tables.contains(&table(entry))).map(key).collect();
        }
        let of_wanted = |file: &RelFileLocator| {
            let relation = self.names.relation(*file);
            relation.is_some_and(|relation| wanted.contains(&(file.database, relation.oid)))
        };
        let itself = match asked {
            RelationArg::File(file) => Some(*file),
            RelationArg::Name(_) => None,
        };
        Ok(self.all_files().filter(of_wanted).chain(itself).collect())
    }

    fn all_files(&self) -> impl Iterator<Item = RelFileLocator> {
        let known = self.names.files().map(|(file, _)| file);
        known.chain(self.seen.iter().flatten().copied())
    }

    /// All relations that are known; system catalogs of fixed oids only if they are in the WAL.
    fn relations(&self) -> Vec<(u32, &'n Relation)> {
        let by_file = self.all_files();
        let by_file = by_file.filter_map(|file| Some((file.database, self.names.relation(file)?)));
        let mut all: Vec<(u32, &Relation)> = self.names.relations().chain(by_file).collect();
        all.sort_unstable_by_key(key);
        all.dedup_by_key(|entry| key(entry));
        all
    }

    fn is_called(&self, database: u32, relation: &Relation, parts: &[String]) -> bool {
        let own =
            [self.names.database(database), relation.schema.as_deref(), Some(&*relation.name)];
        let asked = parts.iter().map(|part| Some(part.as_str()));
        own.into_iter().skip(own.len() - parts.len()).eq(asked)
    }

    fn unknown(&self, name: &Identifiers, all: &[(u32, &Relation)]) -> Failure {
        if self.seen.is_none() {
            return Failure::Usage(format!(
                "no relation is known to be called {}: names in the WAL would take a first pass, and \
                 this input can be read once; expected --data-directory, --names or \
                 tablespace/database/relfilenode",
                name.text
            ));
        }
        let called = all.iter().map(|(database, relation)| {
            let own =
                [self.names.database(*database), relation.schema.as_deref(), Some(&*relation.name)];
            let own = own.into_iter().skip(own.len() - name.parts.len()).flatten();
            own.map(quoted).collect::<Vec<_>>().join(".")
        });
        let called: BTreeSet<String> = called.collect_set();
        let near = nearest(&name.text, called.iter().map(String::as_str));
        Failure::Usage(format!("no relation is called {}{near}", name.text))
    }
}

fn key((database, relation): &(u32, &Relation)) -> Key {
    (*database, relation.oid)
}

/// Adds the partitions of wanted tables: a partitioned table has no files of its own.
fn add_partitions(wanted: &mut BTreeSet<Key>, all: &[(u32, &Relation)]) {
    loop {
        let is_below = |(database, relation): &&(u32, &Relation)| {
            let parent = relation.parent.filter(|_| relation.is_partition);
            parent.is_some_and(|parent| wanted.contains(&(*database, parent)))
        };
        let below: Vec<Key> = all.iter().filter(is_below).map(key).collect();
        let before = wanted.len();
        wanted.extend(below);
        if wanted.len() == before {
            return;
        }
    }
}
