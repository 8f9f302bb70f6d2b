//! Hands the records of a scan, in WAL order, to a consumer on another thread: what reads and checks them
//! need not wait for who makes something of them, and the consumer may borrow from a trace, where a
//! dimension must own its data.

use super::observe::{RunRecords, Sink, drain};
use super::whole_record::Blocks;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use walstat_format::lsn::Lsn;
use walstat_format::record::Record;
use walstat_read::Scan;
use walstat_read::input::error::InputError;
use walstat_read::input::plan::Plan;
use walstat_read::scan::observe::Observe;
use walstat_read::scan::outcome::Outcome;

/// So many bytes of records are handed on together.
const CHUNK_BYTES: usize = 1 << 20;

/// So many chunks may wait: then reading waits.
const CHUNKS_AHEAD: usize = 4;

/// What comes to the other thread.
enum Message {
    /// The scan begins, or begins anew: what came before is void.
    Begin,
    /// The next records.
    Records(RunRecords),
}

/// Memory of chunks that were taken, for those that follow.
type Spare = Arc<Mutex<Vec<RunRecords>>>;

/// Reads all that `scan` says, and gives its records to what `make` makes; `beside` counts them where they
/// are read.
pub(crate) fn read_in_order<S: Sink, O: Observe>(
    scan: &Scan,
    beside: O,
    make: impl Fn() -> S,
) -> Result<(Plan, Outcome<O>, S), InputError> {
    let (to, from) = sync_channel(CHUNKS_AHEAD);
    let spare = Spare::default();
    let prototype =
        Forward { kept: RunRecords::default(), begun: false, to, spare: Arc::clone(&spare) };
    std::thread::scope(|threads| {
        let reading = threads.spawn(move || {
            // Dropped at its end, with all copies: the other end then knows that nothing comes any more.
            let both = (beside, prototype);
            let (plan, outcome) = scan.count(&both)?;
            let finish = |(beside, forward): (O, Forward)| {
                forward.finish();
                beside
            };
            Ok((plan, outcome.map(finish)))
        });
        let sink = take(from, &spare, make);
        let read = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        read.map(|(plan, outcome)| (plan, outcome, sink))
    })
}

/// Takes all that comes. The receiver is gone at the end, however that comes: the other end must not wait for
/// somebody who takes.
fn take<S: Sink>(from: Receiver<Message>, spare: &Spare, make: impl Fn() -> S) -> S {
    let mut sink = make();
    let mut blocks = Blocks::new();
    for message in from {
        match message {
            Message::Begin => sink = make(),
            Message::Records(mut kept) => {
                drain(&mut kept, &mut sink, &mut blocks);
                spare.lock().unwrap_or_else(PoisonError::into_inner).push(kept);
            }
        }
    }
    sink
}

/// Keeps the records of a run until nothing earlier can come, and hands them on.
struct Forward {
    kept: RunRecords,
    /// Whether it begins with the first record of the scan.
    begun: bool,
    to: SyncSender<Message>,
    spare: Spare,
}

impl Clone for Forward {
    /// A run's own: nothing of what was seen goes with it.
    fn clone(&self) -> Forward {
        let (to, spare) = (self.to.clone(), Arc::clone(&self.spare));
        Forward { kept: RunRecords::default(), begun: false, to, spare }
    }
}

impl Forward {
    fn finish(mut self) {
        self.settle();
    }

    fn send(&mut self, kept: RunRecords) {
        if !kept.is_empty() {
            // Who takes them is there until this end is gone.
            let _ = self.to.send(Message::Records(kept));
        }
    }

    fn send_own(&mut self) {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let kept = std::mem::replace(&mut self.kept, spare.unwrap_or_default());
        self.send(kept);
    }
}

impl Observe for Forward {
    const WHOLE: bool = true;
    const KEEPS: bool = true;

    fn observe(&mut self, record: &Record<'_>) {
        self.kept.push(record);
        if self.begun && self.kept.bytes() >= CHUNK_BYTES {
            self.send_own();
        }
    }

    fn lost(&mut self, range: Range<Lsn>) {
        self.kept.push_gap(range);
    }

    fn merge(&mut self, later: Forward) {
        if later.begun {
            // Only what begins with the first record is: nothing was seen before it.
            *self = later;
        } else if self.begun {
            self.send_own();
            self.send(later.kept);
        } else {
            self.kept.append(later.kept);
        }
    }

    fn settle(&mut self) {
        if !self.begun {
            self.begun = true;
            let _ = self.to.send(Message::Begin);
        }
        self.send_own();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::whole_record::WholeRecord;

    const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/pg15-mixed");

    /// Counts records; stops the work at one of them.
    struct Counting {
        records: usize,
        last: Lsn,
        stops_at: usize,
    }

    impl Sink for Counting {
        fn push(&mut self, record: &WholeRecord<'_>) {
            assert!(self.last < record.lsn, "in the order of the WAL");
            self.last = record.lsn;
            self.records += 1;
            assert!(self.records < self.stops_at, "stopped");
        }

        fn gap(&mut self) {}
    }

    /// Counts records where they are read.
    #[derive(Clone)]
    struct Beside(usize);

    impl Observe for Beside {
        fn observe(&mut self, _: &Record<'_>) {
            self.0 += 1;
        }

        fn merge(&mut self, later: Beside) {
            self.0 += later.0;
        }
    }

    fn count(threads: usize, stops_at: usize) -> usize {
        let threads = std::num::NonZeroUsize::new(threads).expect("a thread");
        let scan = Scan { threads, ..Scan::paths([FIXTURE]) };
        let make = || Counting { records: 0, last: Lsn(0), stops_at };
        let (_, outcome, sink) = read_in_order(&scan, Beside(0), make).expect("WAL");
        assert_eq!(outcome.observer.0, sink.records, "both see all");
        sink.records
    }

    #[test]
    fn all_records_come_in_their_order_on_any_number_of_threads() {
        assert_eq!([1, 2, 5].map(|threads| count(threads, usize::MAX)), [72_170; 3]);
    }

    #[test]
    fn who_stops_taking_records_does_not_leave_the_reader_waiting() {
        assert!(std::panic::catch_unwind(|| count(2, 100)).is_err());
    }
}
