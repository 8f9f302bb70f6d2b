//! WAL as it is written: what was counted since the beginning, and what comes now.

use super::Numbers;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The label of the row that sums up everything outside the top.
pub const OTHER: &str = "other";
/// What may keep segments, and cannot be read.
pub const UNREAD: &str = "unread";

/// What is known at a moment: a line of `walstat follow -f ndjson`. All sums are those since `start_lsn`.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Moment {
    /// When it was told.
    pub time: String,
    /// The last time that a transaction stated.
    pub wal_time: Option<String>,
    /// Release of the server.
    pub postgres: String,
    /// The cluster.
    pub system_identifier: String,
    /// The timeline that is being read.
    pub timeline: u32,
    /// Where the first counted record starts.
    pub start_lsn: String,
    /// After the last counted record.
    pub position_lsn: String,
    /// `start_lsn` as a number.
    #[serde(skip)]
    pub start_bytes: u64,
    /// `position_lsn` as a number.
    #[serde(skip)]
    pub position_bytes: u64,
    /// The sums.
    #[serde(flatten)]
    pub numbers: Numbers,
    /// COMMIT and COMMIT PREPARED.
    pub commits: u64,
    /// WAL that was gone before it was read, by the distance of LSNs.
    pub lost_bytes: u64,
    /// Whether the folder is there, can be read, and holds the WAL that is followed.
    pub up: bool,
    /// From the position to the newest byte that there is.
    pub behind_bytes: u64,
    /// WAL a second since the line before, by the distance of LSNs.
    pub bytes_per_second: Option<f64>,
    /// The last redo point.
    pub redo_lsn: Option<String>,
    /// From there to the position.
    pub checkpoint_distance_bytes: Option<u64>,
    /// Records since then, as far as they were counted.
    pub bytes_since_redo: Option<u64>,
    /// Their images.
    pub fpi_bytes_since_redo: Option<u64>,
    /// The oldest transaction that has not ended.
    pub oldest_transaction: Option<OpenTransaction>,
    /// Whether all that have not ended are known: the server has said which there are.
    pub open_transactions_known: bool,
    /// By resource manager.
    pub rmgrs: Vec<RmgrSums>,
    /// By table: those that have been among the largest, then all others.
    pub tables: Vec<TableSums>,
    /// By kind of transaction, of those that have ended; the same.
    pub kinds: Vec<KindSums>,
    /// What lies in `pg_wal`, where a data directory is followed.
    pub pg_wal: Option<PgWal>,
    /// What happened since the line before.
    pub happenings: Vec<HappeningRow>,
}

/// What lies in `pg_wal`, and what for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PgWal {
    /// Segments.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those before the last redo point that something keeps.
    pub kept_segments: u64,
    /// Those before it that nothing keeps: the next checkpoint removes or reuses them. Not known where
    /// something that may keep them cannot be read.
    #[serde(default)]
    pub removable_segments: Option<u64>,
    /// Those since the last redo point, which recovery needs.
    #[serde(default)]
    pub since_redo_segments: u64,
    /// Those that will be written next.
    pub ahead_segments: u64,
    /// `max_wal_size` as configured.
    #[serde(default)]
    pub max_wal_size_bytes: Option<u64>,
    /// One sentence.
    pub text: String,
    /// What keeps segments, the most first.
    pub keepers: Vec<Keeper>,
}

/// What keeps segments.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Keeper {
    /// `replication_slot`, `archiving`, `wal_keep_size`, `wal_summarizer`, `recovery`: what a standby has not
    /// replayed, `invalid_slot`: one that keeps nothing any more, or `unread`: what cannot be read.
    pub keeper: String,
    /// The slot.
    pub name: Option<String>,
    /// `physical` or `logical`, of a slot.
    #[serde(default)]
    pub slot_type: Option<String>,
    /// When the slot's position was saved.
    #[serde(default)]
    pub saved_time: Option<String>,
    /// The oldest WAL that it keeps.
    pub since_lsn: Option<String>,
    /// Segments that would go without it, if nothing else kept them.
    pub segments: u64,
    /// What these segments take; of a slot, how far it is behind.
    pub bytes: u64,
    /// What these segments take.
    #[serde(default)]
    pub kept_bytes: u64,
    /// One sentence.
    pub text: String,
}

/// A transaction that goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OpenTransaction {
    /// Which.
    pub xid: String,
    /// Its first record; unknown where it began before the WAL that was read, or has written none.
    pub start_lsn: Option<String>,
    /// From there to the position; at least so many where that is unknown.
    pub bytes: u64,
}

/// Sums of a resource manager.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RmgrSums {
    /// Its name.
    pub rmgr: String,
    /// The sums.
    #[serde(flatten)]
    pub numbers: Numbers,
}

/// Sums of a table with its TOAST and indexes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableSums {
    /// Its database; empty where records belong to no table.
    pub database: String,
    /// Its schema.
    pub schema: String,
    /// Its name; the file where it has none.
    pub table: String,
    /// The sums.
    #[serde(flatten)]
    pub numbers: Numbers,
}

/// Sums of a kind of transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KindSums {
    /// Its database.
    pub database: String,
    /// What it did.
    pub kind: String,
    /// How many.
    pub transactions: u64,
    /// How many of them were rolled back.
    pub aborted: u64,
    /// The sums.
    #[serde(flatten)]
    pub numbers: Numbers,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HappeningRow {
    /// When, by the WAL's clock or that of the machine.
    pub time: Option<String>,
    /// `lost`, `damaged`, `skipped`, `timeline`, `folder_gone`, `folder_unreadable`, `folder_back`,
    /// `other_cluster`, `other_history`, `dropped`, `large_transaction`, `checkpoint`.
    pub event: String,
    /// Where.
    pub lsn: String,
    /// One sentence.
    pub text: String,
}

/// What came between two tellings, for people who look at it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Now {
    /// How long it took.
    pub seconds: f64,
    /// Distance of LSNs.
    pub wal_bytes: u64,
    /// Its sums.
    pub numbers: Numbers,
    /// Tables that wrote.
    pub tables: Vec<TableNow>,
    /// Kinds of transactions that ended.
    pub kinds: Vec<KindSums>,
}

/// What a table wrote.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableNow {
    /// Database, schema, name.
    pub labels: [String; 3],
    /// The sums.
    pub numbers: Numbers,
    /// The table itself with its TOAST, and its indexes by name.
    pub parts: Vec<(String, Numbers)>,
}

impl Now {
    /// WAL a second.
    pub fn bytes_per_second(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.wal_bytes as f64 / self.seconds)
    }

    /// What came in several times after each other.
    pub fn sum<'n>(times: impl IntoIterator<Item = &'n Now>) -> Now {
        let mut sum = Now::default();
        // Where each stands: there may be as many as a server has tables.
        let (mut tables, mut kinds) = (HashMap::new(), HashMap::new());
        for now in times {
            sum.seconds += now.seconds;
            sum.wal_bytes += now.wal_bytes;
            sum.numbers.add(&now.numbers);
            for table in &now.tables {
                let place = *tables.entry(&table.labels).or_insert(sum.tables.len());
                match sum.tables.get_mut(place) {
                    Some(known) => known.add(table),
                    None => sum.tables.push(table.clone()),
                }
            }
            for kind in &now.kinds {
                let place = *kinds.entry((&kind.database, &kind.kind)).or_insert(sum.kinds.len());
                match sum.kinds.get_mut(place) {
                    Some(known) => known.add(kind),
                    None => sum.kinds.push(kind.clone()),
                }
            }
        }
        sum
    }
}

impl TableNow {
    fn add(&mut self, other: &TableNow) {
        self.numbers.add(&other.numbers);
        for (name, numbers) in &other.parts {
            match self.parts.iter_mut().find(|(known, _)| known == name) {
                Some((_, sums)) => sums.add(numbers),
                None => self.parts.push((name.clone(), *numbers)),
            }
        }
    }
}

impl KindSums {
    fn add(&mut self, other: &KindSums) {
        self.transactions += other.transactions;
        self.aborted += other.aborted;
        self.numbers.add(&other.numbers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_in_several_times_is_added_by_all_labels() {
        let now = |names: &[[&str; 3]], bytes: u64| {
            let numbers = Numbers { total_bytes: bytes, ..Numbers::default() };
            let parts = || vec![("pkey".to_owned(), numbers)];
            let table = |labels: &[&str; 3]| TableNow {
                labels: labels.map(str::to_owned),
                numbers,
                parts: parts(),
            };
            let kind = |[database, kind, _]: &[&str; 3]| KindSums {
                database: (*database).to_owned(),
                kind: (*kind).to_owned(),
                transactions: 1,
                aborted: 0,
                numbers,
            };
            let (tables, kinds) = (names.iter().map(table), names.iter().map(kind));
            Now { tables: tables.collect(), kinds: kinds.collect(), ..Now::default() }
        };
        let times = [
            now(&[["app", "a", "t"], ["app", "b", "t"]], 1),
            now(&[["app", "b", "t"], ["other", "a", "t"], ["app", "a", "t"]], 10),
        ];
        let sum = Now::sum(&times);
        let tables = sum.tables.iter().map(|table| {
            let part = table.parts.first().map(|(_, numbers)| numbers.total_bytes);
            (table.labels[0].as_str(), table.labels[1].as_str(), table.numbers.total_bytes, part)
        });
        let want =
            [("app", "a", 11, Some(11)), ("app", "b", 11, Some(11)), ("other", "a", 10, Some(10))];
        assert_eq!(tables.collect::<Vec<_>>(), want);
        let kinds = sum.kinds.iter().map(|kind| (kind.transactions, kind.numbers.total_bytes));
        assert_eq!(kinds.collect::<Vec<_>>(), [(2, 11), (2, 11), (1, 10)]);
    }
}
