//! Names of relations that had several: what was renamed, or put into another schema, is found by each, and
//! so is what is in a schema or database that was renamed.

use super::Name;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;
use walstat_format::ordered::OrderBy;
use walstat_names::catalog::history::{CatalogsAt, Deeds};

/// By the oids of a database and of what is in it; those of databases are in database 0.
type Key = (u32, u32);

/// What relations, schemas and databases were called, and from where on: ends of the records that said so.
#[derive(Default)]
pub(super) struct Renamed {
    relations: HashMap<Key, Life<(u32, Arc<str>)>>,
    /// Schemas, and databases.
    others: HashMap<Key, Life<Arc<str>>>,
}

/// What something was called from where on.
struct Life<N> {
    since: Vec<(Lsn, N)>,
    /// Where it was dropped.
    until: Lsn,
}

impl<N: Clone + PartialEq> Life<N> {
    /// What is met for the first time; it may have been there before.
    fn new(since: Lsn, name: N) -> Life<N> {
        Life { since: vec![(since, name)], until: Lsn::MAX }
    }

    fn call(&mut self, since: Lsn, name: N) {
        if self.since.last().is_none_or(|(_, last)| *last != name) {
            self.since.push((since, name));
        }
    }

    /// What it was called at a place, if a name was given to it only after that.
    fn before(&self, name: &N, at: Lsn) -> Option<&N> {
        let (since, _) = self.since.iter().find(|(_, known)| known == name)?;
        let (_, earlier) = self.since.iter().rfind(|(since, _)| *since <= at)?;
        (*since > at).then_some(earlier)
    }

    /// The names that it had from one place to another, each with where it had it.
    fn between(&self, from: Lsn, to: Lsn) -> impl Iterator<Item = (Lsn, Lsn, &N)> {
        let ends = self.since.iter().skip(1).map(|(since, _)| *since).chain([self.until]);
        let epochs = self.since.iter().zip(ends);
        epochs.filter_map(move |((since, name), end)| {
            let (begin, end) = ((*since).max(from), end.min(to));
            (begin <= end).then_some((begin, end, name))
        })
    }
}

impl Renamed {
    /// Takes note of what one transaction called the relations, schemas and databases that it changed.
    pub(super) fn note(&mut self, deeds: &Deeds, is_undone: bool) {
        let mut classes: Vec<_> = deeds.classes.iter().collect();
        classes.order_by_key(|touched| touched.inserted);
        let mut before: HashMap<Key, (u32, Arc<str>)> = HashMap::new();
        for touched in classes {
            let class = &touched.row;
            let key = (class.database, class.oid);
            let name = (class.namespace, Arc::from(&*class.name));
            let is_new = touched.inserted.is_some() && !touched.is_update;
            let at = touched.inserted.unwrap_or_default();
            let since = if is_new { at } else { Lsn::default() };
            let life = self.relations.entry(key);
            let life = life.or_insert_with(|| Life::new(since, name.clone()));
            life.call(at, name.clone());
            before.entry(key).or_insert(name);
            // The last version decides: others end by being updated.
            life.until = touched.ended.unwrap_or(Lsn::MAX);
        }
        if is_undone {
            for (key, name) in before {
                if let Some(life) = self.relations.get_mut(&key) {
                    let last = life.since.last().map(|(since, _)| *since);
                    life.call(last.unwrap_or_default(), name);
                    life.until = Lsn::MAX;
                }
            }
            return;
        }
        let schemas = deeds.schemas.iter().map(|touched| {
            let schema = &touched.row;
            ((schema.database, schema.oid), &schema.name, touched.inserted)
        });
        let databases = deeds
            .databases
            .iter()
            .map(|touched| ((0, touched.row.oid), &touched.row.name, touched.inserted));
        let mut others: Vec<_> = schemas.chain(databases).collect();
        others.order_by_key(|(_, _, inserted)| *inserted);
        for (key, name, inserted) in others {
            let name: Arc<str> = Arc::from(&**name);
            let life = self.others.entry(key);
            let life = life.or_insert_with(|| Life::new(Lsn::default(), name.clone()));
            life.call(inserted.unwrap_or_default(), name);
        }
    }

    /// The schema and the name that a relation had at a place, where a data directory that is newer has only
    /// the name that it was given after that.
    pub(super) fn before(&self, key: Key, name: (u32, &str), at: Lsn) -> Option<(u32, Arc<str>)> {
        let (namespace, name) = name;
        self.relations.get(&key)?.before(&(namespace, Arc::from(name)), at).cloned()
    }

    /// All names of a database that had several.
    pub(super) fn database_names(&self, oid: u32) -> BTreeSet<Name> {
        let life = self.others.get(&(0, oid));
        let names = life.into_iter().flat_map(|life| life.between(Lsn::default(), Lsn::MAX));
        let names: BTreeSet<Name> = names
            .map(|(.., name)| Name { database: None, schema: None, relation: Arc::clone(name) })
            .collect_set();
        if names.len() > 1 { names } else { BTreeSet::new() }
    }

    /// All names of a relation that had several; `now`: what its database is called by the event.
    pub(super) fn names(
        &self,
        (database, oid): Key,
        now: Option<&str>,
        catalogs: &mut CatalogsAt<'_>,
    ) -> BTreeSet<Name> {
        let mut names = BTreeSet::new();
        let known = self.relations.get(&(database, oid));
        if self.others.is_empty() && known.is_none_or(|life| life.since.len() == 1) {
            return names;
        }
        // Its own row was not changed, that of its schema or database was.
        let class = if known.is_none() { catalogs.class(database, oid) } else { None };
        let made = class.map(|class| (class.namespace, Arc::from(&*class.name)));
        let made = made.map(|name| Life::new(Lsn::default(), name));
        let Some(life) = known.or(made.as_ref()) else { return names };
        for (from, to, (namespace, relation)) in life.between(Lsn::default(), Lsn::MAX) {
            let schema = self.others.get(&(database, *namespace));
            let schemas: Vec<(Lsn, Lsn, Option<Arc<str>>)> = match schema {
                Some(schema) => {
                    let epochs = schema.between(from, to);
                    epochs.map(|(from, to, name)| (from, to, Some(Arc::clone(name)))).collect()
                }
                None => vec![(from, to, None)],
            };
            for (from, to, schema) in schemas {
                let schema = schema.or_else(|| catalogs.schema(database, *namespace));
                let life = self.others.get(&(0, database));
                let databases = life.into_iter().flat_map(|life| life.between(from, to));
                let others = databases.filter(|(_, _, name)| Some(&***name) != now);
                let others: Vec<_> = others.map(|(_, _, name)| Some(Arc::clone(name))).collect();
                names.extend(others.into_iter().chain([None]).map(|database| Name {
                    database,
                    schema: schema.clone(),
                    relation: Arc::clone(relation),
                }));
            }
        }
        if names.len() > 1 { names } else { BTreeSet::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_names::catalog::history::{DatabaseVersion, Touched};

    #[test]
    fn names_of_a_schema_are_those_of_the_time_of_the_relation() {
        let mut schema = Life::new(Lsn(0), "first");
        schema.call(Lsn(3), "second");
        schema.call(Lsn(3), "second");
        schema.call(Lsn(6), "third");
        let names = |life: &Life<_>, from, to| {
            life.between(from, to).map(|(.., name)| *name).collect::<Vec<&str>>()
        };
        assert_eq!(names(&schema, Lsn(0), Lsn::MAX), ["first", "second", "third"]);
        assert_eq!(names(&schema, Lsn(4), Lsn(5)), ["second"]);
        assert_eq!(names(&schema, Lsn(4), Lsn::MAX), ["second", "third"]);
        schema.until = Lsn(7);
        assert_eq!(names(&schema, Lsn(8), Lsn::MAX), [""; 0]);
    }

    #[test]
    fn a_name_that_was_given_later_is_not_that_of_before() {
        let mut life = Life::new(Lsn(0), "cust");
        life.call(Lsn(5), "customers");
        life.call(Lsn(9), "cust");
        assert_eq!(life.before(&"customers", Lsn(4)), Some(&"cust"));
        assert_eq!(life.before(&"customers", Lsn(5)), None);
        assert_eq!(life.before(&"cust", Lsn(6)), None, "it was called so before, too");
        assert_eq!(life.before(&"other", Lsn(4)), None);
        let made = Life::new(Lsn(3), "new");
        assert_eq!(made.before(&"new", Lsn(2)), None, "there was none");
    }

    #[test]
    fn a_database_has_all_names_that_it_had() {
        let named = |name: &str, lsn| Touched {
            row: DatabaseVersion { oid: 16384, name: name.into(), invalid_since: None },
            inserted: Some(Lsn(lsn)),
            ended: None,
            is_update: true,
        };
        let mut renamed = Renamed::default();
        renamed.note(&Deeds { databases: vec![named("shop", 3)], ..Deeds::default() }, false);
        assert!(renamed.database_names(16384).is_empty(), "one name is no other name");
        renamed.note(&Deeds { databases: vec![named("store", 7)], ..Deeds::default() }, false);
        let names = renamed.database_names(16384);
        let names: Vec<&str> = names.iter().map(|name| &*name.relation).collect();
        assert_eq!(names, ["shop", "store"]);
        assert!(renamed.database_names(16385).is_empty());
    }
}
