//! What the WAL between two checkpoints says about why the second one began.

use crate::deferred_log::{CheckpointSeen, Event, FilesChange, OpenTransactions, PlacedEvent};
use walstat_format::lsn::Lsn;

/// What became of the oids that the server had in stock.
///
/// A server reserves oids in advance and logs how far they reach (NEXTOID). One that shuts down gives
/// back those it has not used: its checkpoint states a lower next oid. One that crashed has lost them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OidStock {
    /// It cannot be told: no stock was taken.
    #[default]
    Unknown,
    /// What was left was given back.
    GivenBack,
    /// What was left is lost.
    Lost,
}

/// What happened since the checkpoint before, as far as it tells why the next one began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventsSince {
    /// What became of the stock of oids.
    pub oids: OidStock,
    /// A torn record was replaced.
    pub overwrite: bool,
    /// Recovery has ended, with a record of its own.
    pub end_of_recovery: bool,
    /// The record directly before the checkpoint's is a switch to the next segment.
    pub after_switch: bool,
    /// Files of a database were copied: where.
    pub copied: Option<Lsn>,
    /// Transactions that never ended, of those since the server was started.
    pub never_ended: usize,
    /// Records are missing: another checkpoint may have begun among them.
    pub lost: bool,
}

/// Collects the events since the last checkpoint.
#[derive(Debug, Clone, Default)]
pub(super) struct EventWatch {
    since: EventsSince,
    /// How far oids may have been handed out.
    stock: Option<u32>,
    /// Whether a stock was taken since the server was started.
    is_taken: bool,
    /// The last switch to the next segment.
    switch: Option<Lsn>,
    /// Transactions that have not ended; what is missing may have ended them.
    transactions: OpenTransactions,
}

impl EventWatch {
    /// Takes note of an event.
    pub(super) fn event(&mut self, placed: &PlacedEvent) {
        if placed.event.ends_all_transactions() {
            self.transactions = OpenTransactions::default();
        }
        match &placed.event {
            Event::NextOid(oid) => (self.stock, self.is_taken) = (Some(*oid), true),
            Event::Overwrite(_) => self.since.overwrite = true,
            // A server that was promoted has no stock yet.
            Event::EndOfRecovery(_) => {
                (self.since.end_of_recovery, self.is_taken) = (true, false);
                // That recovery is over: the next shutdown is one.
                self.since.overwrite = false;
            }
            Event::Files(FilesChange::Copied) => self.since.copied = Some(placed.lsn),
            Event::Switch => self.switch = Some(placed.lsn),
            Event::Lost => (self.since.lost, self.transactions.is_unsure) = (true, true),
            _ => {}
        }
    }

    /// Takes note of what became of transactions, before the event that ends them all.
    pub(super) fn transactions(&mut self, seen: &OpenTransactions) {
        self.transactions.append(seen);
    }

    /// What happened up to this checkpoint's record; begins anew after it. What was copied after its redo
    /// point orders the next one.
    pub(super) fn since_checkpoint(&mut self, redo: Lsn, seen: &CheckpointSeen) -> EventsSince {
        let next = seen.says.next_oid;
        let mut since = std::mem::take(&mut self.since);
        self.since.copied = since.copied.take_if(|copied| *copied > redo);
        since.oids = match (self.is_taken, self.stock) {
            // A server may have stopped, or crashed, in what is missing.
            _ if since.lost => OidStock::Unknown,
            (_, Some(stock)) if seen.is_shutdown && next < stock => OidStock::GivenBack,
            (true, Some(stock)) if seen.is_shutdown && next == stock => OidStock::Lost,
            _ => OidStock::Unknown,
        };
        if seen.is_shutdown && !self.transactions.is_unsure {
            since.never_ended = self.transactions.open.len();
        }
        since.after_switch = self.switch == Some(seen.previous);
        self.stock = Some(next);
        self.is_taken &= !seen.is_shutdown;
        since
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_format::payload::Time;
    use walstat_format::payload::xlog::EndOfRecovery;

    fn note(watch: &mut EventWatch, lsn: u64, event: Event) {
        watch.event(&PlacedEvent::new(Lsn(lsn)..Lsn(lsn + 50), event));
    }

    #[test]
    fn what_is_copied_while_a_checkpoint_goes_on_orders_the_next_one() {
        let mut watch = EventWatch::default();
        note(&mut watch, 500, Event::Files(FilesChange::Copied));
        assert_eq!(watch.since_checkpoint(Lsn(300), &CheckpointSeen::sample()).copied, None);
        assert_eq!(
            watch.since_checkpoint(Lsn(600), &CheckpointSeen::sample()).copied,
            Some(Lsn(500))
        );
        assert_eq!(watch.since_checkpoint(Lsn(900), &CheckpointSeen::sample()).copied, None);
    }

    #[test]
    fn a_torn_record_tells_of_the_recovery_it_belongs_to_alone() {
        let mut watch = EventWatch::default();
        note(&mut watch, 500, Event::Overwrite(Time(0)));
        assert!(watch.since_checkpoint(Lsn(600), &CheckpointSeen::sample()).overwrite);
        note(&mut watch, 700, Event::Overwrite(Time(0)));
        let ended = EndOfRecovery { time: Time(0), timeline: 2, previous_timeline: 1 };
        note(&mut watch, 800, Event::EndOfRecovery(Box::new(ended)));
        let since = watch.since_checkpoint(Lsn(900), &CheckpointSeen::sample());
        assert!(since.end_of_recovery && !since.overwrite);
    }
}
