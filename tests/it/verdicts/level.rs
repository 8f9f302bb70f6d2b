//! wal_level minimal in an archive: from 14 on archive recovery ends there with `FATAL: WAL was generated
//! with wal_level=minimal, cannot continue recovering`; 13 goes on with a warning that data may be
//! missing, and as a hot standby it ends there, too. Tried with 13, 14 and 15. And what else a restore stops
//! at that is no damage.

use crate::common::builder::{Form, Wal};
use crate::common::record::{Rec, XLOG};
use crate::common::{ALL, read, stats_apart};
use crate::support::{command, finish};
use walstat_format::lsn::Lsn;
use walstat_report::model::Report;

/// `XLOG/PARAMETER_CHANGE` that sets this level: five numbers of settings, or six from 12 on, the last
/// one of them the level.
fn parameter_change(form: &Form, level: u32) -> Rec {
    let before = if form.version.magic >= 0xD101 { 5 } else { 4 };
    let numbers = std::iter::repeat_n(100, before).chain([level]);
    let main = numbers.flat_map(u32::to_le_bytes).chain([0, 0, 0, 0]).collect();
    Rec { xid: 0, main, ..Rec::new(XLOG, 0x60, 0) }
}

/// A full segment in which the level is changed, by a record that lies on two pages or on one.
fn changed(form: Form, level: u32, crosses: bool) -> (Wal, Lsn) {
    let mut wal = Wal::new(form, 3);
    wal.add(&Rec::data(40));
    wal.leave(if crosses { 32 } else { 2048 });
    let lsn = wal.add(&parameter_change(&form, level));
    wal.add(&Rec::data(40));
    wal.switch();
    (wal, lsn)
}

fn places(report: &Report) -> Vec<(&str, Option<&str>, &str)> {
    let problems = report.problems.iter();
    problems.map(|p| (p.kind.name(), p.lsn.as_deref(), p.found.as_str())).collect()
}

#[test]
fn minimal_is_a_problem_at_its_record_in_every_release() {
    for release in ["9.5", "9.6", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19"] {
        for crosses in [false, true] {
            let (wal, lsn) = changed(Form::of(release), 0, crosses);
            let lsn = lsn.to_string();
            let directory = wal.finish().write();
            let found = match release {
                "9.5" | "9.6" | "10" | "11" | "12" | "13" => {
                    "wal_level minimal: data may be missing from here on"
                }
                _ => "wal_level minimal: archive recovery stops here",
            };
            let want = vec![("wal_level", Some(lsn.as_str()), found)];
            let report = read(directory.path(), &ALL);
            assert_eq!(places(&report), want, "{release}, {crosses}");
            let apart = stats_apart(directory.path(), &ALL).expect("a report");
            assert_eq!(places(&apart), want, "{release}, {crosses}, each segment by itself");
        }
    }
}

#[test]
fn other_levels_are_none() {
    for (release, level) in [("9.5", 1), ("9.5", 3), ("12", 1), ("15", 2), ("19", 1)] {
        let (wal, _) = changed(Form::of(release), level, false);
        assert_eq!(places(&read(wal.finish().write().path(), &ALL)), [], "{release} {level}");
    }
}

#[test]
fn a_server_may_have_it_in_its_own_directory_and_ranges_after_it_are_well() {
    let (wal, lsn) = changed(Form::of("15"), 0, false);
    let after = Lsn(lsn.0 + 8).to_string();
    let directory = wal.finish().write();
    for (arguments, code) in
        [(["--as", "archive"], 4), (["--as", "pg_wal"], 0), (["-s", &after], 0)]
    {
        let mut command = command(&["check"]);
        finish(command.args(arguments).arg(directory.path())).exits(code);
    }
    // But no backup is restored across it, whatever the WAL is read from.
    let begin = Lsn(3 * Form::of("15").segment + 40).to_string();
    for arguments in [&["check", "--from", &begin][..], &["window"]] {
        let mut command = command(arguments);
        finish(command.args(["--as", "pg_wal"]).arg(directory.path())).exits(4);
    }
}

/// `hot standby is not possible because of insufficient parameter settings`.
#[test]
fn what_a_hot_standby_needs_is_said_of_a_restore() {
    for release in ["9.6", "12", "15"] {
        let (wal, lsn) = changed(Form::of(release), 2, false);
        let directory = wal.finish().write();
        let mut call = command(&["check", "-f", "json", "--from", &lsn.to_string()]);
        let ran = finish(call.arg(directory.path())).exits(0);
        let notes = ran.json()["notes"].to_string();
        assert!(notes.contains("max_connections = 100"), "{release}: {notes}");
        assert_eq!(notes.contains("max_wal_senders"), release != "9.6", "{notes}");
        let ran = finish(command(&["check", "-f", "json"]).arg(directory.path()));
        assert!(!ran.json()["notes"].to_string().contains("max_connections"));
    }
}

/// `FATAL: mismatching overwritten LSN`.
#[test]
fn a_record_that_replaces_another_one_than_was_torn_ends_a_restore() {
    for (release, misnamed) in [("13", false), ("13", true), ("17", false), ("17", true)] {
        for at_border in [false, true] {
            let mut wal = Wal::new(Form::of(release), 3);
            let from = wal.add(&Rec::data(40));
            wal.add(&Rec::data(40));
            if at_border {
                wal.leave_in_segment(96);
                wal.tear(&Rec::data(40_000), 1);
            } else {
                wal.leave(2000);
                wal.tear(&Rec::data(40_000), 3);
            }
            if misnamed {
                wal.misname_torn();
            }
            wal.overwrite();
            wal.add(&Rec::data(40));
            wal.switch();
            let directory = wal.finish().write();
            for threads in ["1", "2"] {
                let mut call = command(&["check", "-j", threads, "--from", &from.to_string()]);
                let ran = finish(call.arg(directory.path())).exits(if misnamed { 4 } else { 0 });
                let is_said = ran.stdout.contains("mismatching overwritten LSN");
                assert_eq!(is_said, misnamed, "{release}, {at_border}: {}", ran.stdout);
            }
        }
    }
}
