//! `--relation`: a file by its numbers, or a relation by its name as SQL writes it; and the files
//! that a name stands for.

use super::Failure;
use super::name_args::NameArgs;
use super::read::{found, read_all};
use super::source_args::{FilterArgs, SourceArgs};
use super::values::nearest;
use crate::analyse::dimension::{Dimension, Dimensions};
use crate::analyse::finished::Order;
use crate::analyse::select::{Filters, RelationFilter};
use crate::analyse::who::Who;
use crate::report::known::Known;
use crate::wal::block::RelFileLocator;
use crate::wal::catalog::names::{Names, Relation};
use std::collections::BTreeSet;
use std::fmt;

/// What `--relation` asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RelationArg {
    /// One file.
    File(RelFileLocator),
    /// All files of the relations of this name.
    Name(Identifiers),
}

/// `name`, `schema.name` or `database.schema.name`; and how it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identifiers {
    parts: Vec<String>,
    text: String,
}

impl fmt::Display for RelationArg {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RelationArg::File(file) => write!(out, "{file}"),
            RelationArg::Name(name) => out.write_str(&name.text),
        }
    }
}

const EXPECTED: &str = "expected tablespace/database/relfilenode, like 1663/5/16390, or a name as \
                        SQL writes it, like public.orders";

/// Reads what `--relation` asks for.
pub fn parse(text: &str) -> Result<RelationArg, String> {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'/');
    let asked = match is_number(text) {
        true => file(text).map(RelationArg::File),
        false => identifiers(text)
            .map(|parts| RelationArg::Name(Identifiers { parts, text: text.to_owned() })),
    };
    asked.ok_or_else(|| EXPECTED.to_owned())
}

fn file(text: &str) -> Option<RelFileLocator> {
    let numbers: Vec<u32> = text.split('/').map(str::parse).collect::<Result<_, _>>().ok()?;
    match numbers.as_slice() {
        &[tablespace, database, relfilenode] if tablespace > 0 && relfilenode > 0 => {
            Some(RelFileLocator { tablespace, database, relfilenode })
        }
        _ => None,
    }
}

/// One to three identifiers with dots between them, in quotes or folded to small letters.
fn identifiers(text: &str) -> Option<Vec<String>> {
    let (mut parts, mut rest) = (Vec::new(), text);
    loop {
        let (part, after) = match rest.strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => plain(rest),
        };
        parts.push(Some(part).filter(|part| !part.is_empty())?);
        match after.strip_prefix('.') {
            Some(next) => rest = next,
            None if after.is_empty() => break,
            None => return None,
        }
    }
    (parts.len() <= 3).then_some(parts)
}

/// An identifier up to the quote that ends it, and what is after that.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let (mut part, mut rest) = (String::new(), text);
    loop {
        let (before, after) = rest.split_once('"')?;
        part.push_str(before);
        match after.strip_prefix('"') {
            Some(more) => {
                part.push('"');
                rest = more;
            }
            None => return Some((part, after)),
        }
    }
}

fn plain(text: &str) -> (String, &str) {
    let end = text.find(['.', '"', '/']).unwrap_or(text.len());
    let (part, rest) = text.split_at(end);
    (part.to_ascii_lowercase(), rest)
}

/// An identifier as SQL writes it.
fn quoted(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let begins_plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    match begins_plain && name.bytes().all(is_plain) {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// Names, and why some are missing.
type Named = (Names, Vec<String>);

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

/// The names of all sources, and the files in the WAL; of WAL that can be read once only the names
/// that are known without it.
fn first_pass(
    source: &SourceArgs,
    names: &NameArgs,
) -> Result<(Named, Option<BTreeSet<RelFileLocator>>), Failure> {
    let found = found(source)?;
    let known = Known::names(&names.sources(), &found, &Dimensions::new());
    if !found.streams.iter().all(|stream| stream.path.is_file()) {
        return Ok((known.without_wal(), None));
    }
    let relations = Dimensions::from([Dimension::Relation]);
    let who = Who::new(&relations, 1, Order::Bytes, known.store());
    let read = read_all(source, found, &who)?;
    let (counted, warnings) = known.finish(read.scanned.observer, &read.plan);
    let seen = counted.files();
    Ok(((counted.names, warnings), Some(seen)))
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
    /// The files of all relations that are asked for; `whole`: with all that belongs to their tables.
    fn files(&self, asked: &RelationArg, whole: bool) -> Result<BTreeSet<RelFileLocator>, Failure> {
        let all = self.relations();
        let is_asked = |(database, relation): &&(u32, &Relation)| match asked {
            RelationArg::File(file) => {
                let of_file = self.names.relation(*file).map(|relation| relation.oid);
                (file.database, of_file) == (*database, Some(relation.oid))
            }
            RelationArg::Name(name) => self.is_called(*database, relation, &name.parts),
        };
        let mut wanted: BTreeSet<Key> = all.iter().filter(is_asked).map(key).collect();
        if let (RelationArg::Name(name), true) = (asked, wanted.is_empty()) {
            return Err(self.unknown(name, &all));
        }
        add_partitions(&mut wanted, &all);
        if whole {
            let table = |(database, relation): &(u32, &Relation)| {
                (*database, relation.table.unwrap_or(relation.oid))
            };
            let of_wanted = all.iter().filter(|entry| wanted.contains(&key(entry)));
            let tables: BTreeSet<Key> = of_wanted.map(table).collect();
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

    /// All relations that are known, those of fixed oids as far as they are in the WAL.
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
        let called: BTreeSet<String> = called.collect();
        let near = nearest(&name.text, called.iter().map(String::as_str));
        Failure::Usage(format!("no relation is called {}{near}", name.text))
    }
}

fn key((database, relation): &(u32, &Relation)) -> Key {
    (*database, relation.oid)
}

/// Adds the partitions of what is wanted, which has no files of its own.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_sql_does() {
        let parts = |text: &str| match parse(text) {
            Ok(RelationArg::Name(name)) => name.parts,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(parts("Orders"), ["orders"]);
        assert_eq!(parts("shop.Public.orders"), ["shop", "public", "orders"]);
        assert_eq!(parts("\"Sales dept\".\"a \"\"b\"\".c/1\""), ["Sales dept", "a \"b\".c/1"]);
        for text in
            ["", ".", "a.", "a..b", "\"a", "\"\"", "a\"b\"", "a.b.c.d", "1/2", "0/5/1", "a/b"]
        {
            assert_eq!(parse(text), Err(EXPECTED.to_owned()), "{text}");
        }
        let file = RelFileLocator { tablespace: 1663, database: 5, relfilenode: 16390 };
        assert_eq!(parse("1663/5/16390"), Ok(RelationArg::File(file)));
    }

    #[test]
    fn names_are_shown_as_sql_wants_them() {
        let shown = ["orders", "Orders", "a b", "1a", "a\"b"].map(quoted);
        assert_eq!(shown, ["orders", "\"Orders\"", "\"a b\"", "\"1a\"", "\"a\"\"b\""]);
    }
}
