//! Transactions that go on, with what belongs to them as far as that is known by now; and those that have
//! ended without a record of it.

use super::super::OpenPart;
use super::super::part::End;
use super::Generations;
use crate::finished_transactions::TransactionOutcome;
use std::collections::BTreeMap;

/// Subtransactions in one another are followed so far; WAL that is wrong may have them in a circle.
const DEPTH_MAX: usize = 1000;

impl Generations {
    /// The place of the transaction that a part belongs to.
    fn top_of(&self, mut place: usize) -> usize {
        for _ in 0..DEPTH_MAX {
            match self.parts.get(place).and_then(|part| part.belongs_to()) {
                Some(parent) if parent != place => place = parent,
                _ => break,
            }
        }
        place
    }

    /// The transactions that go on, by their places. What a savepoint wrote is theirs though it was rolled
    /// back.
    fn open_by_place(&self) -> BTreeMap<usize, OpenPart> {
        let mut open: BTreeMap<usize, OpenPart> = BTreeMap::new();
        for (place, part) in self.parts.iter().enumerate().filter(|(_, of)| of.amounts.count > 0) {
            let place = self.top_of(place);
            let Some(top) = self.parts.get(place).filter(|top| top.ended == End::None) else {
                continue;
            };
            let is_prepared = top.outcome == TransactionOutcome::Prepared;
            let of_part = OpenPart { xid: top.xid, start: part.start, is_prepared };
            let known = open.entry(place).or_insert(of_part);
            known.start = known.start.min(part.start);
        }
        open
    }

    /// The transactions of which records were counted, and not their end.
    pub(in super::super) fn open(&self) -> impl Iterator<Item = OpenPart> {
        self.open_by_place().into_values()
    }

    /// Ends transactions that are known to go on no more, each with this outcome.
    pub(in super::super) fn end_unseen(
        &mut self,
        outcome: impl Fn(OpenPart) -> Option<TransactionOutcome>,
    ) {
        let mut over = self.open_by_place();
        over.retain(|_, open| outcome(*open).is_some());
        if over.is_empty() {
            return;
        }
        let tops: Vec<usize> = (0..self.parts.len()).map(|place| self.top_of(place)).collect();
        for (place, (part, top)) in self.parts.iter_mut().zip(tops).enumerate() {
            let Some(open) = over.get(&top).filter(|_| part.ended == End::None) else { continue };
            part.is_sealed = true;
            if place == top {
                (part.ended, part.outcome) = (End::Own, outcome(*open).unwrap_or(part.outcome));
            } else {
                part.ended = End::Listed;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finished::Finished;
    use super::*;
    use crate::finished_transactions::{FinishedRows, Order};
    use walstat_format::lsn::Lsn;

    /// Transaction 10 with a savepoint, 11, which wrote first; and 20.
    fn generations(finished: &mut Finished) -> Generations {
        let mut generations = Generations::default();
        generations.settle(finished);
        for (xid, lsn) in [(11, 100), (10, 200), (20, 300)] {
            let place = generations.alive(xid, Lsn(lsn));
            generations.part(place).expect("a part").amounts.count = 1;
        }
        generations.belongs(11, 10, Lsn(100));
        generations
    }

    fn open(generations: &Generations) -> Vec<(u32, u64)> {
        generations.open().map(|open| (open.xid, open.start.0)).collect()
    }

    #[test]
    fn a_transaction_began_where_its_savepoint_did_though_that_was_rolled_back() {
        let mut finished = Finished::of(FinishedRows::new(9, Order::Bytes));
        let mut generations = generations(&mut finished);
        assert_eq!(open(&generations), [(10, 100), (20, 300)]);
        let place = generations.alive(11, Lsn(400));
        generations.part(place).expect("a part").outcome = TransactionOutcome::Aborted;
        generations.ended(place);
        generations.settle(&mut finished);
        assert_eq!(open(&generations), [(10, 100), (20, 300)]);
    }

    #[test]
    fn what_died_in_a_crash_has_ended() {
        let mut finished = Finished::of(FinishedRows::new(9, Order::Bytes));
        let mut generations = generations(&mut finished);
        generations.end_unseen(|open| (open.xid == 10).then_some(TransactionOutcome::Aborted));
        assert_eq!(open(&generations), [(20, 300)]);
        generations.settle(&mut finished);
        let rows = finished.rows.into_rows().0;
        let told: Vec<_> =
            rows.iter().map(|row| (row.xid, row.outcome, row.amounts.count)).collect();
        assert_eq!(told, [(10, TransactionOutcome::Aborted, 2)]);
    }
}
