//! Names of relations that had several: what was renamed, or put into another schema, is found by each.

use super::Name;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use walstat_names::catalog::history::{ClassVersion, Deeds, History};

/// Of each relation that had several names, by database and oid.
#[derive(Default)]
pub(super) struct Renamed(HashMap<(u32, u32), BTreeSet<Name>>);

impl Renamed {
    /// Takes note of the relations that one transaction renamed.
    pub(super) fn note(&mut self, deeds: &Deeds, history: &mut History) {
        let mut first: HashMap<(u32, u32), &ClassVersion> = HashMap::new();
        for class in deeds.classes.iter().map(|touched| &touched.row) {
            let key = (class.database, class.oid);
            let other = *first.entry(key).or_insert(class);
            if (&other.name, other.namespace) != (&class.name, class.namespace) {
                let names = self.0.entry(key).or_default();
                names.extend([other, class].map(|class| Name {
                    schema: history.schema(class.database, class.namespace),
                    relation: Arc::from(&*class.name),
                }));
            }
        }
    }

    /// All names of a relation that had several.
    pub(super) fn names(&self, database: u32, oid: u32) -> impl Iterator<Item = &Name> {
        self.0.get(&(database, oid)).into_iter().flatten()
    }
}
