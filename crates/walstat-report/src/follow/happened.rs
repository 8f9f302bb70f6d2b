//! What happened while WAL was written, in sentences.

use super::super::build::rfc3339;
use super::super::model::follow::HappeningRow;
use super::super::model::size::human_bytes;
use super::{Owner, Reporter, is_of_toast};
use std::collections::{BTreeMap, BTreeSet};
use walstat_analyse::finished_transactions::FinishedTransaction;
use walstat_analyse::follow::{Dropped, Following, News, PassedCheckpoint};
use walstat_format::block::RelFileLocator;
use walstat_format::ordered::OrderBy;
use walstat_names::catalog::names::Relation;
use walstat_read::follow::Happening;

/// A transaction of so many bytes is told of.
const LARGE_BYTES: u64 = 64 << 20;

/// What was done to a table that is gone.
const DROPPED: &str = "dropped";
/// What was done to one that is still there, with another file.
const REWROTE: &str = "truncated or rewrote";
/// What was done to one of which that is not known.
const UNKNOWN: &str = "dropped, truncated or rewrote";

/// Whether WAL is missing after it.
pub(super) fn is_missing(happening: &Happening) -> bool {
    matches!(happening, Happening::Lost { .. } | Happening::Damaged { .. })
}

impl Reporter {
    /// All that happened since the last telling, in the order of time.
    pub(super) fn happened(
        &mut self,
        happenings: &[Happening],
        news: &News,
        following: &Following,
    ) -> Vec<HappeningRow> {
        let mut rows: Vec<HappeningRow> = happenings.iter().map(happening_row).collect();
        let large = news.transactions.iter().filter(|of| of.amounts.total_bytes() >= LARGE_BYTES);
        rows.extend(large.map(|of| large_row(of, following)));
        let mut later = news.dropped.as_slice();
        while let [dropped, rest @ ..] = later {
            rows.push(self.dropped_row(dropped, rest));
            later = rest;
        }
        if std::mem::replace(&mut self.tells_checkpoints, true) {
            rows.extend(news.checkpoints.iter().map(checkpoint_row));
        }
        rows.order_by(|a, b| a.time.cmp(&b.time));
        rows
    }

    /// What a transaction did that took this file away, as far as the names tell that there are now, and what
    /// was taken away `later`.
    fn deed(
        &self,
        file: RelFileLocator,
        files: &[RelFileLocator],
        later: &[Dropped],
    ) -> &'static str {
        let Some(relation) = self.names.relation(file) else { return UNKNOWN };
        let table = self.names.table_of(file.database, relation).unwrap_or(relation);
        let is_of_table = |other: &RelFileLocator| {
            self.names.relation(*other).is_some_and(|other| other.oid == table.oid)
        };
        // What belongs to a table is made anew with it.
        let is_own = relation.is_index() && !is_of_toast(relation);
        let is_gone = if is_own { relation.is_gone } else { table.is_gone };
        let is_gone = match self.goes_later(file, is_own.then_some(relation), table, later) {
            _ if !is_gone => false,
            Some(goes_later) => !goes_later,
            None => return UNKNOWN,
        };
        match (is_gone, relation.is_index()) {
            (true, _) if is_own => "dropped an index of",
            (true, _) => DROPPED,
            (false, true) if !files.iter().any(is_of_table) => "reindexed",
            (false, _) => REWROTE,
        }
    }

    /// Whether something of a table, or of one of its indexes, was taken away later, so that it was still
    /// there before; `None`: that is not known, as files were taken away that have no name.
    fn goes_later(
        &self,
        file: RelFileLocator,
        index: Option<&Relation>,
        table: &Relation,
        later: &[Dropped],
    ) -> Option<bool> {
        let is_of_it = |other: &Relation| match index {
            Some(index) => other.oid == index.oid,
            None => self.names.table_of(file.database, other).unwrap_or(other).oid == table.oid,
        };
        let files = later.iter().flat_map(|of| &of.files);
        let others = files.filter(|other| other.database == file.database);
        let others: Vec<_> = others.map(|other| self.names.relation(*other)).collect();
        if others.iter().flatten().any(|other| is_of_it(other)) {
            return Some(true);
        }
        others.iter().all(Option::is_some).then_some(false)
    }

    fn dropped_row(&mut self, dropped: &Dropped, later: &[Dropped]) -> HappeningRow {
        let Dropped { lsn, time, xid, files } = dropped;
        let mut deeds: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        let mut databases = BTreeSet::new();
        for file in files {
            let deed = self.deed(*file, files, later);
            let Owner { table: [database, schema, table], .. } = self.owner(*file);
            let name = if schema.is_empty() { table } else { format!("{schema}.{table}") };
            deeds.entry(deed).or_default().insert(name);
            databases.extend(Some(database).filter(|database| !database.is_empty()));
        }
        // What is done to a table is done to what belongs to it.
        for deed in [DROPPED, REWROTE] {
            let whole = deeds.get(deed).cloned().unwrap_or_default();
            let rest = deeds.iter_mut().filter(|(other, _)| ![DROPPED, deed].contains(other));
            rest.for_each(|(_, names)| names.retain(|name| !whole.contains(name)));
        }
        let deeds =
            deeds.into_iter().filter(|(_, names)| !names.is_empty()).map(|(deed, names)| {
                format!("{deed} {}", names.into_iter().collect::<Vec<_>>().join(", "))
            });
        let databases: Vec<String> = databases.into_iter().collect();
        let place = match databases.is_empty() {
            true => String::new(),
            false => format!(" in {}", databases.join(", ")),
        };
        let text = format!("transaction {xid}{place} {}", deeds.collect::<Vec<_>>().join("; "));
        let (time, lsn) = (rfc3339(*time), lsn.to_string());
        HappeningRow { time, event: "dropped".to_owned(), lsn, text }
    }
}

fn large_row(of: &FinishedTransaction, following: &Following) -> HappeningRow {
    let is_whole = following.saw_all(of.xid, of.start, of.end);
    let least = if is_whole { "" } else { "at least " };
    let (bytes, count) = (human_bytes(of.amounts.total_bytes()), of.amounts.count);
    HappeningRow {
        time: of.commit_time.and_then(rfc3339),
        event: "large_transaction".to_owned(),
        lsn: of.start.to_string(),
        text: format!("transaction {} wrote {least}{bytes} in {count} records", of.xid),
    }
}

fn happening_row(happening: &Happening) -> HappeningRow {
    let time = Some(format!("{:.6}", jiff::Timestamp::now()));
    let (event, lsn, text) = match happening {
        Happening::Lost { from, to } => {
            let bytes = human_bytes(to.0 - from.0);
            ("lost", from, format!("{bytes} were gone before they were read: {from} to {to}"))
        }
        Happening::Skipped { from, to } => {
            let text = format!(
                "a segment before {to} is missing or cannot be read: counting begins there, and what lies \
                 before it, from {from} on, is not counted"
            );
            ("skipped", from, text)
        }
        Happening::Damaged { from, to, found } => {
            let found = match found.as_str() {
                "" => String::new(),
                found => format!(": found {found}"),
            };
            let text = format!("no valid record from {from} to {to}, which counts as lost{found}");
            ("damaged", from, text)
        }
        Happening::Timeline { timeline, at, counted_to } => {
            let counted = counted_to.map(|counted| {
                format!("; what the one before wrote up to {counted} has been counted")
            });
            let goes_on = format!("the WAL goes on on timeline {timeline}, from {at} on");
            ("timeline", at, goes_on + &counted.unwrap_or_default())
        }
        Happening::Gone { at } => {
            ("folder_gone", at, "the folder is gone; it is waited for".to_owned())
        }
        Happening::Unreadable { at, error } => {
            ("folder_unreadable", at, format!("{error}; it is tried again"))
        }
        Happening::Back { at } => ("folder_back", at, "the folder is there again".to_owned()),
        Happening::OtherHistory { at, was_read: false } => (
            "other_history",
            at,
            format!(
                "all WAL that is there lies before {at}, where counting begins: it is waited for"
            ),
        ),
        Happening::OtherHistory { at, .. } => (
            "other_history",
            at,
            format!(
                "the WAL that is there is not what was read up to {at}: an older copy, or one that has gone \
                 on otherwise; nothing is counted before that is there, or begin anew"
            ),
        ),
        Happening::OtherCluster { at, system_identifier } => (
            "other_cluster",
            at,
            format!("another cluster's WAL lies there: {system_identifier}; begin anew"),
        ),
    };
    HappeningRow { time, event: event.to_owned(), lsn: lsn.to_string(), text }
}

fn checkpoint_row(checkpoint: &PassedCheckpoint) -> HappeningRow {
    let PassedCheckpoint { redo, time, before } = checkpoint;
    let distance = before.map(|before| {
        format!(", {} after the one before", human_bytes(redo.0.saturating_sub(before.0)))
    });
    HappeningRow {
        time: rfc3339(*time),
        event: "checkpoint".to_owned(),
        lsn: redo.to_string(),
        text: format!("checkpoint, redo point {redo}{}", distance.unwrap_or_default()),
    }
}
