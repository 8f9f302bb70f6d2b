//! Reads WAL and hands its records, in their order, to a sink: where they are read, or on another thread, so
//! that what reads and checks them need not wait for who makes something of them. There the sink may borrow
//! from a trace, too, where a dimension must own its data.

use super::observe::{InOrder, RunRecords, Sink, Spare, Taker};
use super::whole_record::{Blocks, WholeRecord};
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
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

/// Reads all that `scan` says, and gives its records to what `make` makes, on the thread that reads them;
/// `beside` counts them too.
pub(crate) fn read_here<S: Sink + 'static, O: Observe>(
    scan: &Scan,
    beside: O,
    make: impl Fn() -> S + Send + Sync + 'static,
) -> Result<(Plan, Outcome<O>, S), InputError> {
    let spare = Spare::default();
    let of_scan = spare.clone();
    let here = move || Here {
        sink: make(),
        blocks: Blocks::new(),
        room: Vec::new(),
        spare: spare.clone(),
    };
    let (plan, outcome, Here { sink, .. }) = count(scan, (beside, InOrder::new(of_scan, here)))?;
    Ok((plan, outcome, sink))
}

/// The same on a thread of its own, which is not one of those that read.
pub(crate) fn read_apart<S: Sink, O: Observe>(
    scan: &Scan,
    beside: O,
    make: impl Fn() -> S,
) -> Result<(Plan, Outcome<O>, S), InputError> {
    let (to, from) = sync_channel(CHUNKS_AHEAD);
    let spare = Spare::default();
    let of_scan = spare.clone();
    let apart = {
        let spare = spare.clone();
        move || Apart::begin(to.clone(), spare.clone())
    };
    std::thread::scope(|threads| {
        let reading = threads.spawn(move || {
            // Gone at its end, with all copies: the other end then knows that nothing comes any more.
            let (plan, outcome, mut apart) = count(scan, (beside, InOrder::new(of_scan, apart)))?;
            apart.send_own();
            Ok((plan, outcome))
        });
        let sink = receive(from, &spare, make);
        let read = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        read.map(|(plan, outcome)| (plan, outcome, sink))
    })
}

/// What was counted beside the records, and who took them.
fn count<O: Observe, T: Taker>(
    scan: &Scan,
    prototype: (O, InOrder<T>),
) -> Result<(Plan, Outcome<O>, T), InputError> {
    let (plan, both) = scan.count(&prototype)?;
    let (_, mut in_order) = prototype;
    let outcome = both.map(|(beside, seen)| {
        in_order = seen;
        beside
    });
    Ok((plan, outcome, in_order.finish()))
}

/// Gives records to a sink at once.
struct Here<S> {
    sink: S,
    blocks: Blocks,
    /// Where a record that lies on several pages is put together.
    room: Vec<u8>,
    spare: Spare,
}

impl<S: Sink + 'static> Taker for Here<S> {
    fn take(&mut self, record: &Record<'_>) {
        let length = record.header.total_bytes as usize;
        let Some(bytes) = record.body.first_in(length, &mut self.room) else { return };
        self.sink.push(&WholeRecord::of(record, bytes, &mut self.blocks));
    }

    fn take_gap(&mut self, _: Range<Lsn>) {
        self.sink.gap();
    }

    fn take_run(&mut self, mut run: RunRecords) {
        run.drain(&mut self.sink, &mut self.blocks);
        self.spare.put(run);
    }
}

/// What comes to the other thread.
enum Message {
    /// The scan begins, or begins anew: what came before is void.
    Begin,
    /// The next records.
    Records(RunRecords),
}

/// Sends records to another thread, many at a time.
struct Apart {
    kept: RunRecords,
    to: SyncSender<Message>,
    spare: Spare,
}

impl Apart {
    fn begin(to: SyncSender<Message>, spare: Spare) -> Apart {
        // Who takes it is there until this end is gone.
        let _ = to.send(Message::Begin);
        Apart { kept: spare.get(), to, spare }
    }

    fn send(&self, run: RunRecords) {
        let _ = self.to.send(Message::Records(run));
    }

    fn send_own(&mut self) {
        if !self.kept.is_empty() {
            let kept = std::mem::replace(&mut self.kept, self.spare.get());
            self.send(kept);
        }
    }
}

impl Taker for Apart {
    fn take(&mut self, record: &Record<'_>) {
        self.kept.push(record);
        if self.kept.bytes() >= CHUNK_BYTES {
            self.send_own();
        }
    }

    fn take_gap(&mut self, range: Range<Lsn>) {
        self.kept.push_gap(range);
    }

    fn take_run(&mut self, run: RunRecords) {
        self.send_own();
        if !run.is_empty() {
            self.send(run);
        }
    }
}

/// Takes all that comes. The receiver is gone at the end, however that comes: the other end must not wait for
/// somebody who takes.
fn receive<S: Sink>(from: Receiver<Message>, spare: &Spare, make: impl Fn() -> S) -> S {
    let mut sink = make();
    let mut blocks = Blocks::new();
    for message in from {
        match message {
            Message::Begin => sink = make(),
            Message::Records(mut run) => {
                run.drain(&mut sink, &mut blocks);
                spare.put(run);
            }
        }
    }
    sink
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;

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

    fn scan(threads: usize) -> Scan {
        let threads = NonZeroUsize::new(threads).expect("a thread");
        Scan { threads, ..Scan::paths([FIXTURE]) }
    }

    fn counting(stops_at: usize) -> Counting {
        Counting { records: 0, last: Lsn(0), stops_at }
    }

    fn count_apart(threads: usize, stops_at: usize) -> usize {
        let make = || counting(stops_at);
        let (_, outcome, sink) = read_apart(&scan(threads), Beside(0), make).expect("WAL");
        assert_eq!(outcome.observer.0, sink.records, "both see all");
        sink.records
    }

    fn count_here(threads: usize) -> usize {
        let make = || counting(usize::MAX);
        let (_, outcome, sink) = read_here(&scan(threads), Beside(0), make).expect("WAL");
        assert_eq!(outcome.observer.0, sink.records, "both see all");
        sink.records
    }

    #[test]
    fn all_records_come_in_their_order_on_any_number_of_threads() {
        assert_eq!([1, 2, 5].map(|threads| count_apart(threads, usize::MAX)), [72_170; 3]);
        assert_eq!([1, 2, 5].map(count_here), [72_170; 3]);
    }

    #[test]
    fn what_one_thread_reads_is_handed_on_at_once_and_not_kept() {
        let spare = Spare::default();
        let of_scan = spare.clone();
        let here = move || Here {
            sink: counting(usize::MAX),
            blocks: Blocks::new(),
            room: Vec::new(),
            spare: spare.clone(),
        };
        let in_order = InOrder::new(of_scan.clone(), here);
        let (_, _, here) = count(&scan(1), (Beside(0), in_order)).expect("WAL");
        assert_eq!((here.sink.records, of_scan.bytes()), (72_170, 0));
    }

    #[test]
    fn who_stops_taking_records_does_not_leave_the_reader_waiting() {
        assert!(std::panic::catch_unwind(|| count_apart(2, 100)).is_err());
    }
}
