//! Three ways to write a record come to the same: a whole group passed over, a record written as it is where
//! none of its pages gets an image, and every decision made anew.

use super::*;
use crate::made_up::{Kind, Made, any_record, base};
use crate::settings::{ArchiveTimeout, Checkpoints, Timed};
use proptest::prelude::*;

/// Record after record, without groups.
fn one_by_one(trace: &Trace, base: &Base, settings: &Settings) -> RunOutcome {
    let (mut run, mut walk) = (SimulatedRun::new(trace, base, settings), RangeWalk::new(base));
    trace.read().for_each(|traced| {
        if base.contains(traced.ordinal) {
            let plain = walk.next(&traced);
            run.take(&traced, &plain, |_, reference| ImageBytes::as_base(reference));
        }
    });
    run.finish(walk.rest())
}

/// Record after record, each of which is planned and then written.
fn all_decided(trace: &Trace, base: &Base, settings: &Settings) -> RunOutcome {
    let (mut run, mut walk) = (SimulatedRun::new(trace, base, settings), RangeWalk::new(base));
    trace.read().for_each(|traced| {
        if base.contains(traced.ordinal) {
            let plan = run.plan(&traced, walk.next(&traced).gap);
            run.write(&traced, plan, |_, reference| ImageBytes::as_base(reference));
        }
    });
    run.finish(walk.rest())
}

/// One run for each setting there is, and some with several.
fn settings() -> Vec<Settings> {
    let timed = Timed { max_wal_size: Some(3 << 20), timeout: Some(400_000), ..Timed::default() };
    let checkpoints = [
        Checkpoints::AsBase,
        Checkpoints::Factor(2.0),
        Checkpoints::Factor(0.5),
        Checkpoints::Never,
        Checkpoints::Bytes(100_000),
        Checkpoints::Time(300_000),
        Checkpoints::Timed(timed),
        Checkpoints::Timed(Timed { requests_lost: true, least_micros: 200_000, ..timed }),
    ];
    let with = |checkpoints| Settings { checkpoints, ..Settings::default() };
    let plain: Vec<Settings> = checkpoints.into_iter().map(with).collect();
    let changes: [fn(&mut Settings); 6] = [
        |settings| settings.full_page_writes = Some(false),
        |settings| settings.log_hints = Some(true),
        |settings| settings.logical = Some(true),
        |settings| settings.archive_timeout = Some(ArchiveTimeout::After(100_000)),
        |settings| settings.archive_timeout = Some(ArchiveTimeout::Off),
        |settings| settings.segment_bytes = Some(2 << 20),
    ];
    let changed = changes.iter().flat_map(|change| {
        plain.iter().take(3).cloned().map(|mut settings| {
            change(&mut settings);
            settings
        })
    });
    plain.iter().cloned().chain(changed).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn all_ways_to_write_records_come_to_the_same(
        records in proptest::collection::vec(any_record(), 0..700),
    ) {
        let (trace, base) = base(&records);
        let settings = settings();
        let grouped = replay(&trace, &base, &settings);
        for (settings, grouped) in settings.iter().zip(grouped) {
            let decided = all_decided(&trace, &base, settings);
            prop_assert_eq!(&one_by_one(&trace, &base, settings), &decided, "{:?}", settings);
            prop_assert_eq!(&grouped, &decided, "{:?}", settings);
        }
    }
}

#[test]
fn a_group_is_passed_over_only_when_checkpoints_are_known() {
    let records = vec![Made::new(Kind::Change, 1); 200];
    let (trace, base) = base(&records);
    let run = SimulatedRun::new(&trace, &base, &Settings::default());
    let mut reader = trace.read();
    let first = reader.group().expect("there");
    assert!(!first.is_plain(), "its first record has an image");
    reader.pass(&first);
    let second = reader.group().expect("there");
    assert!(second.is_plain() && !run.skips(&second), "nothing is known of the checkpoints yet");
}
