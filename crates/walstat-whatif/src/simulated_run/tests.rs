//! Tests of one run, decision by decision.

use super::*;
use crate::base_checkpoint::CauseReading;
use crate::made_up::{Kind, Made, base};
use crate::replay::replay;
use crate::settings::{Checkpoints, Timed};
use walstat_analyse::checkpoint::cause::Cause;

/// What a run with one setting changed comes to.
fn run(kinds: &[(Kind, usize)], change: impl Fn(&mut Settings)) -> RunOutcome {
    let records: Vec<Made> = kinds.iter().map(|(kind, block)| Made::new(*kind, *block)).collect();
    let (trace, base) = base(&records);
    let mut settings = Settings::default();
    change(&mut settings);
    replay(&trace, &base, &[settings]).pop().expect("one run")
}

const CYCLES: [(Kind, usize); 8] = [
    (Kind::Redo, 0),
    (Kind::CheckpointEnd, 0),
    (Kind::Change, 1),
    (Kind::Change, 1),
    (Kind::Redo, 0),
    (Kind::CheckpointEnd, 0),
    (Kind::Change, 1),
    (Kind::Change, 1),
];

#[test]
fn a_page_gets_one_image_after_each_redo_point() {
    assert_eq!(run(&CYCLES, |_| ()).images, 2);
    let none = run(&CYCLES, |settings| settings.checkpoints = Checkpoints::Never);
    assert_eq!((none.images, none.redo_points.len()), (1, 0));
    let off = run(&CYCLES, |settings| settings.full_page_writes = Some(false));
    assert_eq!((off.images, off.redo_points.len()), (0, 1));
}

#[test]
fn under_its_own_settings_the_base_comes_out() {
    let own = run(&CYCLES, |_| ());
    assert_eq!((own.records, own.differences.len(), own.exact_bytes()), (8, 0, own.bytes));
}

#[test]
fn a_switch_goes_away_with_archive_timeout() {
    let kinds = [(Kind::Commit, 0), (Kind::Switch, 0), (Kind::Commit, 0)];
    let own = run(&kinds, |_| ());
    let off = run(&kinds, |settings| settings.archive_timeout = Some(ArchiveTimeout::Off));
    assert_eq!((own.switches_dropped, off.switches_dropped), (0, 1));
    assert!(off.bytes < own.bytes && own.bytes > 1 << 20, "{} of {}", off.bytes, own.bytes);
}

#[test]
fn the_clock_closes_segments() {
    let kinds = [(Kind::Commit, 0); 40];
    let timed =
        run(&kinds, |settings| settings.archive_timeout = Some(ArchiveTimeout::After(100_000)));
    // Commits are 9 ms apart.
    assert_eq!(timed.switches, 3);
}

#[test]
fn hint_bits_bring_images_of_pages_that_were_changed_before_the_redo_point() {
    let kinds = [&CYCLES[..6], &[(Kind::ChangeOfLookedAt, 1)]].concat();
    assert_eq!(run(&kinds, |_| ()).uncertain.hint_images, 0);
    let logged = run(&kinds, |settings| settings.log_hints = Some(true));
    // The image for hint bits comes in place of the record's own.
    assert_eq!((logged.uncertain.hint_images, logged.images), (1, 2));
    let fresh = [&CYCLES[..2], &[(Kind::ChangeOfLookedAt, 1)]].concat();
    let fresh = run(&fresh, |settings| settings.log_hints = Some(true));
    assert_eq!(fresh.uncertain.hint_images, 0, "the page was not changed before");
}

#[test]
fn a_record_for_hint_bits_is_written_once_a_cycle() {
    let kinds = [&CYCLES[..2], &[(Kind::Hint, 2), (Kind::Hint, 2)]].concat();
    assert_eq!(run(&kinds, |_| ()).records, 3, "the second one's page has its image");
    assert_eq!(run(&kinds, |settings| settings.log_hints = Some(false)).records, 2);
}

#[test]
fn rows_are_not_frozen_where_the_image_goes_away() {
    let kinds = [&CYCLES[..2], &[(Kind::ChangeOfLookedAt, 1), (Kind::FreezesForImage, 1)]].concat();
    let own = run(&kinds, |_| ());
    assert_eq!((own.records, own.uncertain.freezes_lost), (4, 0));
    let off = run(&kinds, |settings| settings.full_page_writes = Some(false));
    assert_eq!((off.records, off.uncertain.freezes_lost), (3, 1));
}

/// The same, where so began the second checkpoint of the base.
fn run_with_cause(cause: Cause, change: impl Fn(&mut Settings)) -> RunOutcome {
    let records: Vec<Made> = CYCLES.iter().map(|(kind, block)| Made::new(*kind, *block)).collect();
    let (trace, mut base) = base(&records);
    for checkpoint in &mut base.checkpoints {
        checkpoint.settle(cause);
    }
    let mut settings = Settings::default();
    change(&mut settings);
    replay(&trace, &base, &[settings]).pop().expect("one run")
}

#[test]
fn a_crash_takes_more_back_where_recovery_begins_before_it_did_in_the_base() {
    let crash = [(Kind::Commit, 0), (Kind::Change, 1), (Kind::Redo, 0), (Kind::CheckpointEnd, 0)];
    let kinds = [&CYCLES[..], &crash].concat();
    let records: Vec<Made> = kinds.iter().map(|(kind, block)| Made::new(*kind, *block)).collect();
    let (trace, mut base) = base(&records);
    let count = base.checkpoints.len();
    for (index, checkpoint) in base.checkpoints.iter_mut().enumerate() {
        checkpoint.settle(if index + 1 == count { Cause::EndOfRecovery } else { Cause::Wal });
    }
    let pages = |change: fn(&mut Settings)| {
        let mut settings = Settings::default();
        change(&mut settings);
        let run = replay(&trace, &base, &[settings]).pop().expect("one run");
        (run.uncertain.pages_of_crash, run.uncertain.pages_of_longer_crash)
    };
    assert_eq!(pages(|_| ()), (0, 0));
    assert_eq!(pages(larger), (0, 1));
    // A redo point after that of the base.
    let later = |settings: &mut Settings| settings.checkpoints = Checkpoints::Bytes(1);
    assert_eq!(pages(later), (1, 0));
}

fn larger(settings: &mut Settings) {
    let timed = Timed { max_wal_size: Some(1 << 40), ..Timed::default() };
    settings.checkpoints = Checkpoints::Timed(timed);
}

#[test]
fn a_larger_max_wal_size_takes_away_what_volume_began() {
    let outcome = run_with_cause(Cause::Wal, larger);
    assert_eq!((outcome.images, outcome.redo_points.len()), (1, 0));
}

#[test]
fn what_somebody_asked_for_stays_under_other_settings() {
    let own = run(&CYCLES, |_| ());
    let outcome = run_with_cause(Cause::Requested, larger);
    assert_eq!(outcome.redo_points, own.redo_points);
    assert_eq!((outcome.bytes, outcome.images, outcome.placed), (own.bytes, 2, 0));
    // Without any online checkpoint it goes, unless a backup began with it.
    let never = |settings: &mut Settings| settings.checkpoints = Checkpoints::Never;
    assert_eq!(run_with_cause(Cause::Requested, never).redo_points, []);
}

#[test]
fn what_is_not_certain_is_read_both_ways() {
    let doubtful = |reading| {
        let records: Vec<Made> =
            CYCLES.iter().map(|(kind, block)| Made::new(*kind, *block)).collect();
        let (trace, base) = base(&records);
        let timed = Timed { max_wal_size: Some(1 << 40), reading, ..Timed::default() };
        let settings = Settings { checkpoints: Checkpoints::Timed(timed), ..Settings::default() };
        replay(&trace, &base, &[settings]).pop().expect("one run").redo_points.len()
    };
    assert_eq!((doubtful(CauseReading::Likely), doubtful(CauseReading::Staying)), (0, 1));
}

#[test]
fn what_switches_leave_empty_is_no_written_byte() {
    let kinds = [(Kind::Commit, 0), (Kind::Switch, 0), (Kind::Commit, 0)];
    let own = run(&kinds, |_| ());
    assert!(own.switch_bytes() > 1_000_000 && own.written_bytes() < 1_000, "{own:?}");
}
