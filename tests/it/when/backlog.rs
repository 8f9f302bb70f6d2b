//! What piles up before a link, against a simulation byte by byte and second by second.

use super::load::{self, Load};
use super::twin;
use super::{BY_SECOND, found};
use crate::common::builder::Form;
use crate::common::whole;
use walstat_analyse::replication::{Backlog, GrowthCurve};

/// Bytes of WAL by second, in WAL order: each byte belongs to the second that the clock shows at its
/// place.
fn growth(anchors: &[(u64, i64, bool)], (start, end): (u64, u64)) -> Vec<(i64, u64)> {
    let mut growth: Vec<(i64, u64)> = Vec::new();
    let (first, last) = (anchors[0], anchors[anchors.len() - 1]);
    growth.push((first.1.div_euclid(1_000_000), first.0 - start));
    for pair in anchors.windows(2) {
        let ((from, begin, _), (to, end, is_set_back)) = (pair[0], pair[1]);
        for place in from..to {
            let passed = i128::from(place - from) * i128::from(end - begin);
            let since = if is_set_back { 0 } else { (passed / i128::from(to - from)) as i64 };
            let second = (begin + since).div_euclid(1_000_000);
            match growth.last_mut() {
                Some((last, bytes)) if *last == second => *bytes += 1,
                _ => growth.push((second, 1)),
            }
        }
    }
    match growth.last_mut() {
        Some((second, bytes)) if *second == last.1.div_euclid(1_000_000) => *bytes += end - last.0,
        _ => growth.push((last.1.div_euclid(1_000_000), end - last.0)),
    }
    growth
}

fn simulated(growth: &[(i64, u64)], rate: u64) -> Backlog {
    let mut found = Backlog::default();
    let (mut left, mut now) = (0u64, None);
    for (second, bytes) in growth {
        for idle in now.unwrap_or(*second)..*second {
            left = left.saturating_sub(rate);
            if left == 0 {
                if found.peak_bytes > 0 {
                    found.clear_second.get_or_insert(idle + 1);
                }
                break;
            }
        }
        left = (left + bytes).saturating_sub(rate);
        now = Some(second + 1);
        if left > found.peak_bytes {
            found = Backlog { peak_bytes: left, peak_second: now, clear_second: None };
        } else if left == 0 && found.peak_bytes > 0 {
            found.clear_second.get_or_insert(second + 1);
        }
    }
    found
}

fn curve_and_growth(load: &Load) -> (GrowthCurve, Vec<(i64, u64)>) {
    let form = Form::of("15");
    let disk = load::wal(form, load).finish();
    let folder = disk.write();
    let records = whole::records(folder.path(), form.version, form.timeline);
    let records = twin::ones(&records, form.version);
    let (found, end) = found(&[folder.path().to_owned()], BY_SECOND, 2, Some(form.timeline));
    let all = (records[0].lsn, end.0);
    (found.curve.expect("a curve"), growth(&twin::anchors(&records), all))
}

#[test]
fn the_backlog_is_that_of_a_simulation() {
    for load in [
        Load { records: 8000, pace: 3000, ..Load::PLAIN },
        Load { records: 3000, pace: 3000, jumps: 500, ..Load::PLAIN },
        Load { records: 3000, pace: 1_000_000, ..Load::PLAIN },
    ] {
        let (curve, growth) = curve_and_growth(&load);
        let most = curve.never_behind_rate().expect("a rate");
        for tenth in 1..12 {
            let rate = (most * tenth / 10).max(1);
            let (ours, theirs) = (curve.backlog(rate), simulated(&growth, rate));
            assert_eq!(ours.peak_second, theirs.peak_second, "{load:?} {rate}");
            assert_eq!(ours.peak_bytes, theirs.peak_bytes, "{load:?} {rate}");
            assert_eq!(ours.clear_second, theirs.clear_second, "{load:?} {rate}");
        }
    }
}

#[test]
fn the_smallest_rates_are_the_smallest() {
    let (curve, growth) = curve_and_growth(&Load { records: 8000, ..Load::PLAIN });
    let never = curve.never_behind_rate().expect("a rate");
    assert_eq!(simulated(&growth, never).peak_bytes, 0);
    assert!(simulated(&growth, never - 1).peak_bytes > 0);
    for lag in [0, 1, 3, 20] {
        let rate = curve.max_lag_rate(lag).expect("a rate");
        let keeps = |rate: u64| simulated(&growth, rate).peak_bytes <= rate * lag;
        assert!(keeps(rate), "{lag} s: {rate}");
        assert!(!keeps(rate - 1), "{lag} s: {rate}");
    }
}
