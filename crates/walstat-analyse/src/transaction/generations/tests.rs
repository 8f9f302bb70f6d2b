//! Parts of transactions, told in runs of every division.

use super::*;
use crate::finished_transactions::{FinishedRows, Order, TransactionOutcome};
use Said::{Aborts, Belongs, Commits, Known, OldestIs, TopLevel, Writes};
use TransactionOutcome::{Aborted, Committed, Open};

/// What a record says, as far as it matters here.
#[derive(Debug, Clone, Copy)]
enum Said {
    Writes(u32),
    Commits(u32, &'static [u32]),
    Aborts(u32, &'static [u32]),
    /// A subtransaction and its parent.
    Belongs(u32, u32),
    TopLevel(u32),
    OldestIs(u32),
    /// No record: what was known before the first one.
    Known(u32, u32),
}

/// A transaction: xid, outcome, records, subtransactions, whether it is known to be a top-level one.
type Row = (u32, TransactionOutcome, u64, u32, bool);

fn say(to: &mut Generations, said: Said, lsn: Lsn) {
    match said {
        Writes(xid) => {
            let place = to.alive(xid, lsn);
            count(to, place, lsn);
        }
        Commits(xid, subs) => end(to, xid, subs, Committed, lsn),
        Aborts(xid, subs) => end(to, xid, subs, Aborted, lsn),
        Belongs(sub, parent) => _ = to.belongs(sub, parent, lsn),
        TopLevel(xid) => to.is_top_level(xid, lsn),
        OldestIs(xid) => to.oldest_is(xid),
        Known(sub, parent) => to.know(&[(sub, parent)]),
    }
}

fn count(to: &mut Generations, place: u32, lsn: Lsn) {
    let part = to.part(place).expect("a part");
    part.amounts.count += 1;
    part.end = lsn;
}

fn end(to: &mut Generations, xid: u32, subs: &[u32], outcome: TransactionOutcome, lsn: Lsn) {
    let place = to.alive(xid, lsn);
    count(to, place, lsn);
    to.part(place).expect("a part").outcome = outcome;
    subs.iter().for_each(|sub| to.ends_with(*sub, xid, lsn));
    to.ended(place);
}

/// What comes of records in runs that end after those whose bit is set in `cuts`.
fn rows_in_runs(records: &[Said], cuts: u32, settles: bool, makes_room: bool) -> Vec<Row> {
    let (mut all, mut run) = (None::<Generations>, Generations::default());
    let mut finished = Finished::of(FinishedRows::new(100, Order::Xid));
    for (number, said) in records.iter().enumerate() {
        say(&mut run, *said, Lsn(number as u64 * 8));
        if makes_room {
            run.make_room(&mut finished);
        }
        if cuts >> number & 1 == 1 || number + 1 == records.len() {
            let later = std::mem::take(&mut run);
            match &mut all {
                None => all = Some(later),
                Some(all) => all.merge(later, &[], &mut finished),
            }
            let all = all.as_mut().filter(|_| settles);
            all.into_iter().for_each(|all| all.settle(&mut finished));
        }
    }
    all.unwrap_or_default().finish(&mut finished);
    let rows = finished.rows.into_rows().0.into_iter();
    let row = |row: crate::finished_transactions::FinishedTransaction| {
        (row.xid, row.outcome, row.amounts.count, row.subtransactions, row.top_level)
    };
    let mut rows: Vec<Row> = rows.map(row).collect();
    rows.sort_unstable_by_key(|row| (row.0, row.2));
    rows
}

/// That these rows come of the records, however they are divided into runs.
#[track_caller]
fn comes_to(records: &[Said], expected: &[Row]) {
    for cuts in 0..1 << (records.len() - 1) {
        for (settles, makes_room) in [(false, false), (true, false), (false, true), (true, true)] {
            let rows = rows_in_runs(records, cuts, settles, makes_room);
            let how = format!("runs {cuts:b}, settled {settles}, room made {makes_room}");
            assert_eq!(rows, expected, "{how}: {records:?}");
        }
    }
}

#[test]
fn an_xid_that_comes_again_after_its_end_is_another_transaction() {
    let records = [Writes(7), Commits(7, &[]), Writes(7), Aborts(7, &[])];
    comes_to(&records, &[(7, Committed, 2, 0, true), (7, Aborted, 2, 0, false)]);
    // The end of one that lists it as a subtransaction ends it too.
    let records = [Writes(8), Commits(7, &[8]), Writes(8)];
    comes_to(&records, &[(7, Committed, 2, 1, true), (8, Open, 1, 0, false)]);
}

#[test]
fn a_parent_that_has_ended_is_another_part_of_its_xid() {
    let records = [Writes(7), Commits(7, &[]), Belongs(8, 7), Writes(8)];
    comes_to(&records, &[(7, Open, 1, 1, false), (7, Committed, 2, 0, true)]);
}

#[test]
fn of_what_is_said_while_it_goes_on_the_last_counts() {
    let records = [Writes(9), Belongs(9, 7), Belongs(9, 8), Commits(7, &[]), Commits(8, &[])];
    comes_to(&records, &[(7, Committed, 1, 0, true), (8, Committed, 2, 1, true)]);
}

#[test]
fn what_has_committed_by_a_record_of_its_own_belongs_to_nothing() {
    let records = [Writes(9), Belongs(9, 7), Commits(9, &[]), Commits(7, &[])];
    comes_to(&records, &[(7, Committed, 1, 0, true), (9, Committed, 2, 0, true)]);
}

#[test]
fn what_has_aborted_may_still_be_said_to_belong_once() {
    let aborted = [Writes(9), Aborts(9, &[])];
    let of = |later: &[Said]| [&aborted, later].concat();
    let folded = [(7, Committed, 3, 1, true)];
    comes_to(&of(&[Belongs(9, 7), Commits(7, &[])]), &folded);
    // Only the first one counts.
    let records = of(&[Belongs(9, 7), Belongs(9, 8), Commits(7, &[]), Commits(8, &[])]);
    comes_to(&records, &[folded[0], (8, Committed, 1, 0, true)]);
    comes_to(&of(&[TopLevel(9)]), &[(9, Aborted, 2, 0, true)]);
    // Not after a record that knows it as old, nor when the xid has come again.
    let apart = [(7, Committed, 1, 0, true), (9, Aborted, 2, 0, false)];
    comes_to(&of(&[OldestIs(10), Belongs(9, 7), Commits(7, &[])]), &apart);
    comes_to(&of(&[OldestIs(9), Belongs(9, 7), Commits(7, &[])]), &folded);
    let records = of(&[Writes(9), Belongs(9, 7), Commits(7, &[])]);
    comes_to(&records, &[(7, Committed, 2, 1, true), apart[1]]);
}

/// What goes on meanwhile stays, and so does what has aborted: something may be said of it.
#[test]
fn where_nothing_comes_before_memory_is_that_of_what_goes_on() {
    let mut finished = Finished::of(FinishedRows::new(10, Order::Xid));
    let mut generations = Generations::default();
    generations.settle(&mut finished);
    let mut most = 0;
    for xid in 10..100_000 {
        say(&mut generations, Writes(xid), Lsn(8));
        match xid % 10 {
            0 => {}
            1 => end(&mut generations, xid - 1, &[xid], Committed, Lsn(8)),
            9 if xid < 1000 => say(&mut generations, Aborts(xid, &[]), Lsn(8)),
            _ => say(&mut generations, Commits(xid, &[]), Lsn(8)),
        }
        say(&mut generations, Writes(7), Lsn(8));
        if generations.is_due() {
            generations.settle(&mut finished);
        }
        most = most.max(generations.parts.len());
    }
    assert!(most < 2000, "{most}");
    generations.finish(&mut finished);
    let summary = finished.rows.summary;
    assert_eq!((summary.open, summary.aborted), (1, 99));
    assert_eq!(summary.committed + summary.subtransactions, 99_990 - 99);
}

/// Any of them may have begun before, and one has.
#[test]
fn where_something_may_come_before_what_has_committed_is_no_part_any_more() {
    let mut finished = Finished::of(FinishedRows::new(10, Order::Xid));
    let (mut all, mut later) = (Generations::default(), Generations::default());
    all.settle(&mut finished);
    say(&mut all, Writes(500), Lsn(8));
    let mut most = 0;
    for xid in 10..100_000 {
        say(&mut later, Writes(xid), Lsn(16));
        say(&mut later, Commits(xid, &[]), Lsn(16));
        if later.is_due() {
            later.make_room(&mut finished);
        }
        most = most.max(later.parts.len());
    }
    assert!(most < 2000, "{most}");
    // As a partial result has it.
    let written = postcard::to_stdvec(&later).expect("bytes");
    let mut later: Generations = postcard::from_bytes(&written).expect("what was written");
    assert!(later.has_seen(10) && !later.has_seen(9));
    later.merge(Generations::default(), &[], &mut finished);
    all.merge(later, &[], &mut finished);
    assert!(all.parts.len() < 2000);
    all.finish(&mut finished);
    let summary = finished.rows.summary;
    assert_eq!((summary.committed, summary.amounts.count), (99_990, 2 * 99_990 + 1));
}

/// Half of all xids are older than one.
#[test]
fn xids_turn_over() {
    let before = u32::MAX - 3;
    let records = [Writes(before), Aborts(before, &[]), OldestIs(5), Belongs(before, 7)];
    comes_to(&records, &[(before, Aborted, 2, 0, false)]);
    let oldest = BTreeSet::from([5, 1000]);
    assert!([3, before, 999].iter().all(|xid| covers(&oldest, *xid)));
    assert!([1000, 1001, 1 << 31].iter().all(|xid| !covers(&oldest, *xid)));
    assert!(!covers(&BTreeSet::new(), 3));
}

#[test]
fn what_is_rolled_back_with_its_parent_is_lost() {
    let records =
        [Writes(9), Belongs(9, 8), Belongs(8, 7), Writes(8), Aborts(8, &[9]), Commits(7, &[])];
    comes_to(&records, &[(7, Committed, 4, 2, true)]);
    let mut finished = Finished::of(FinishedRows::new(10, Order::Xid));
    let mut generations = Generations::default();
    records.iter().for_each(|said| say(&mut generations, *said, Lsn(8)));
    let bytes = |part: &mut Part| part.amounts.record_bytes = 10 * part.amounts.count;
    generations.parts.iter_mut().for_each(bytes);
    generations.finish(&mut finished);
    assert_eq!(finished.rows.into_rows().0[0].aborted_bytes, 30);
}

#[test]
fn a_circle_is_cut_at_its_first_part() {
    let records = [Writes(7), Writes(8), Belongs(7, 8), Belongs(8, 7)];
    comes_to(&records, &[(7, Open, 2, 1, false)]);
    // What belongs to itself, or to nobody, is nothing that a record can say.
    comes_to(&[Belongs(7, 7), Belongs(0, 7), Belongs(7, 0), Writes(7)], &[(7, Open, 1, 0, false)]);
}

/// It may be what `pg_subtrans` had: of the first part of each xid, where no record says otherwise.
#[test]
fn what_was_known_before_the_first_record_is_of_the_first_part() {
    let records = [Known(9, 7), Writes(9), Aborts(9, &[]), Writes(9), Commits(7, &[])];
    comes_to(&records, &[(7, Committed, 3, 1, true), (9, Open, 1, 0, false)]);
    comes_to(
        &[Known(9, 7), Writes(9), Belongs(9, 8), Commits(7, &[]), Commits(8, &[])],
        &[(7, Committed, 1, 0, true), (8, Committed, 2, 1, true)],
    );
}
