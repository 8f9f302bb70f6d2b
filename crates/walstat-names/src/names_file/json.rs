//! Names as JSON: rows as objects, in a list, in the object that `walstat names` writes, or one a
//! line; and the mapping of pgmoneta-walinfo, which has names by kind and their oids:
//! `{"tablespaces": {"fast": "16400"}, "databases": {…}, "relations": {"public.orders": "16385"}}`.

use super::{FileWarnings, Placed};
use crate::catalog::listing::{Listed, Listing, sound_name};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use walstat_format::ordered::CollectOrdered;

/// The key under which `walstat names` has its rows.
const ROWS: &str = "names";
/// The keys of a mapping.
const TABLESPACES: &str = "tablespaces";
const DATABASES: &str = "databases";
const RELATIONS: &str = "relations";

/// The keys of an object in their order, also those that are there twice.
struct Pairs<'t>(Vec<(String, &'t RawValue)>);

impl<'de: 't, 't> Deserialize<'de> for Pairs<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pairs<'t>, D::Error> {
        deserializer.deserialize_map(PairsVisitor).map(Pairs)
    }
}

struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(pairs)
    }
}

/// The rows; those of a mapping go into `listing`.
pub(super) fn rows(
    bytes: &[u8],
    listing: &mut Listing,
    warnings: &mut FileWarnings,
) -> Vec<Placed> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        warnings.add(1, "found bytes that are no UTF-8, expected JSON");
        return Vec::new();
    };
    if let Ok(list) = serde_json::from_str::<Vec<&RawValue>>(text) {
        return list_of_rows(text, list, warnings);
    }
    match serde_json::from_str::<Pairs<'_>>(text) {
        Ok(Pairs(pairs)) => object(text, &pairs, listing, warnings),
        // Not one value: one a line, or none.
        Err(_) if text.lines().next().is_some_and(is_object) => lines(text, warnings),
        Err(error) => {
            warnings.add(error.line() as u64, "found no JSON");
            Vec::new()
        }
    }
}

fn is_object(text: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(text).is_ok()
}

/// One object a line.
fn lines(text: &str, warnings: &mut FileWarnings) -> Vec<Placed> {
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    let rows = lines.filter_map(|(line, number)| warnings.row(number, listed(line)));
    rows.collect()
}

/// Counts the lines of a text up to parts of it. They come in their order, so that each line is counted once;
/// sections of a mapping may be in another order than they are read in.
struct LineCounter<'t> {
    text: &'t str,
    /// Where the part before began, and in which line.
    place: usize,
    line: u64,
}

impl<'t> LineCounter<'t> {
    fn new(text: &'t str) -> LineCounter<'t> {
        LineCounter { text, place: 0, line: 1 }
    }

    /// The line in which a part of the text begins.
    fn line_of(&mut self, part: &str) -> u64 {
        let place = (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        if place < self.place {
            (self.place, self.line) = (0, 1);
        }
        let between = self.text.as_bytes().get(self.place..place).unwrap_or_default();
        self.line += between.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.place = place;
        self.line
    }
}

/// The rows of a list in the text.
fn list_of_rows(text: &str, list: Vec<&RawValue>, warnings: &mut FileWarnings) -> Vec<Placed> {
    let mut lines = LineCounter::new(text);
    let rows = list.into_iter().map(RawValue::get);
    rows.filter_map(|row| warnings.row(lines.line_of(row), listed(row))).collect()
}

/// A row of an object, whose numbers may be texts.
fn listed(text: &str) -> Result<Listed, String> {
    let object: Map<String, Value> =
        serde_json::from_str(text).map_err(|_| "found no object of a relation".to_owned())?;
    let texts: BTreeMap<&str, String> = object
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| match value {
            Value::String(text) => (key.as_str(), text.clone()),
            other => (key.as_str(), other.to_string()),
        })
        .collect_map();
    Listed::of_columns(|key| texts.get(key).map(String::as_str))
}

/// An object: rows under a key, a mapping, or one row.
fn object(
    text: &str,
    pairs: &[(String, &RawValue)],
    listing: &mut Listing,
    warnings: &mut FileWarnings,
) -> Vec<Placed> {
    let of = |wanted: &str| pairs.iter().find(|(key, _)| key == wanted).map(|(_, value)| *value);
    if let Some(list) = of(ROWS).map(|list| serde_json::from_str::<Vec<&RawValue>>(list.get())) {
        return list_of_rows(text, list.unwrap_or_default(), warnings);
    }
    let sections = [of(TABLESPACES), of(DATABASES), of(RELATIONS)];
    if sections.iter().all(Option::is_none) {
        return warnings.row(1, listed(text)).into_iter().collect();
    }
    let mut lines = LineCounter::new(text);
    let [tablespaces, databases, relations] = sections.map(|section| {
        section.map(|section| mapped(&mut lines, section, warnings)).unwrap_or_default()
    });
    listing.tablespaces = tablespaces.into_iter().map(|(oid, (_, name))| (oid, name)).collect();
    listing.databases = databases.into_iter().map(|(oid, (_, name))| (oid, name)).collect();
    for (oid, (line, name)) in relations {
        match name.split_once('.') {
            Some((schema, name)) if !name.contains('.') => {
                listing.without_database.insert(oid, (schema.to_owned(), name.to_owned()));
            }
            _ => warnings.add(line, "found a name with no dot or several, expected schema.name"),
        }
    }
    Vec::new()
}

/// The names of a section by oid, with their lines; an oid of two names has none.
fn mapped(
    lines: &mut LineCounter<'_>,
    section: &RawValue,
    warnings: &mut FileWarnings,
) -> BTreeMap<u32, (u64, String)> {
    let (mut names, mut disputed) = (BTreeMap::new(), BTreeSet::new());
    for (name, value) in entries(section) {
        let line = lines.line_of(value.get());
        let digits = value.get().trim_matches('"');
        let Some(oid) = digits.parse::<u32>().ok().filter(|oid| *oid != 0) else {
            warnings.add(line, "found no number, expected an oid");
            continue;
        };
        let name = match name.split('.').try_for_each(|part| sound_name("name", part).map(|_| ())) {
            Ok(()) => name,
            Err(what) => {
                warnings.add(line, &what);
                continue;
            }
        };
        match names.get(&oid) {
            Some((first, known)) if *known != name => {
                warnings.add(line, &format!("contradicts line {first}: neither is used"));
                disputed.insert(oid);
            }
            _ => _ = names.insert(oid, (line, name)),
        }
    }
    names.retain(|oid, _| !disputed.contains(oid));
    names
}

/// The entries of a section, an object or a list of such.
fn entries(section: &RawValue) -> Vec<(String, &RawValue)> {
    if let Ok(Pairs(pairs)) = serde_json::from_str(section.get()) {
        return pairs;
    }
    let list: Vec<Pairs<'_>> = serde_json::from_str(section.get()).unwrap_or_default();
    list.into_iter().flat_map(|Pairs(pairs)| pairs).collect()
}
