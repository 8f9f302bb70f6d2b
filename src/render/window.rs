//! `walstat window` for people: what became of the target, then timelines, backups, restore points, gaps.

use super::closing;
use super::number::UNKNOWN;
use super::style::{Show, plain};
use super::time::moment;
use super::visible::visible;
use std::io::{self, Write};
use walstat_report::model::view::View;
use walstat_report::model::window::{BackupRow, TargetRow, Window};

/// Restore points told one by one.
const RESTORE_POINTS_SHOWN: usize = 20;

/// Writes what there is to say.
pub fn render(view: &View, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let report = &view.report;
    closing::opening(report, style, out)?;
    if let Some(window) = &report.window {
        target(window, out)?;
        timelines(window, out)?;
        backups(window, out)?;
        restore_points(window, out)?;
        gaps(window, out)?;
    }
    closing::notes(report, style, out)?;
    closing::books(view, out)
}

fn target(window: &Window, out: &mut dyn Write) -> io::Result<()> {
    let Some(row) = &window.target else { return Ok(()) };
    let TargetRow { asked, inclusive, reachable, why, stops_before_lsn, backup_start_lsn } = row;
    let asked = visible(asked);
    let asked = if *inclusive { asked } else { format!("{asked} (not inclusive)").into() };
    let word = if *reachable { "can be reached" } else { "cannot be reached" };
    writeln!(out, "TARGET  {asked} {word}: {}", visible(why))?;
    if let (Some(lsn), Some(start)) = (stops_before_lsn, backup_start_lsn) {
        writeln!(
            out,
            "  restore the backup that begins at {start}; recovery replays all before {lsn}, and stops"
        )?;
    }
    writeln!(out)
}

fn known(text: &Option<String>) -> String {
    text.as_deref().map_or(UNKNOWN.to_owned(), |text| visible(text).into_owned())
}

fn timelines(window: &Window, out: &mut dyn Write) -> io::Result<()> {
    let headings = [
        "TIMELINE",
        "from",
        "to",
        "first end (UTC)",
        "last end (UTC)",
        "last commit",
        "last xid",
        "ends by",
    ];
    let mut table = plain(&headings);
    for row in &window.timelines {
        table.add_row([
            row.timeline.to_string(),
            row.start_lsn.clone(),
            row.end_lsn.clone(),
            moment(row.first_time.as_deref()),
            moment(row.last_time.as_deref()),
            known(&row.last_commit_lsn),
            known(&row.last_xid),
            row.ends_by.clone(),
        ]);
    }
    writeln!(out, "{}\n", table.trim_fmt())
}

fn backups(window: &Window, out: &mut dyn Write) -> io::Result<()> {
    if window.backups.is_empty() {
        return writeln!(out, "BACKUPS  none is known: --backup-label names one\n");
    }
    let headings =
        ["BACKUP", "from", "consistent from", "begun (UTC)", "ended (UTC)", "recovers to"];
    let mut table = plain(&headings);
    for row in &window.backups {
        table.add_row([
            known(&row.label),
            row.start_lsn.clone(),
            known(&row.consistent_from),
            moment(row.start_time.as_deref()),
            moment(row.stop_time.as_deref()),
            row.reaches.clone().unwrap_or_else(|| "not usable".to_owned()),
        ]);
    }
    writeln!(out, "{}", table.trim_fmt())?;
    let told = |row: &BackupRow| Some((row.start_lsn.clone(), row.why.clone()?));
    for (start, why) in window.backups.iter().filter_map(told) {
        writeln!(out, "  {start}: {}", visible(&why))?;
    }
    writeln!(out)
}

fn restore_points(window: &Window, out: &mut dyn Write) -> io::Result<()> {
    let points = &window.restore_points;
    if points.is_empty() {
        return Ok(());
    }
    let mut table = plain(&["RESTORE POINT", "at", "made (UTC)"]);
    for point in points.iter().rev().take(RESTORE_POINTS_SHOWN) {
        let name = visible(&point.name).into_owned();
        table.add_row([name, point.lsn.clone(), moment(point.time.as_deref())]);
    }
    writeln!(out, "{}", table.trim_fmt())?;
    match points.len().saturating_sub(RESTORE_POINTS_SHOWN) {
        0 => writeln!(out),
        more => writeln!(out, "  {more} older ones (-f json has all)\n"),
    }
}

fn gaps(window: &Window, out: &mut dyn Write) -> io::Result<()> {
    if window.gaps.is_empty() {
        return Ok(());
    }
    let mut table = plain(&["GAP", "to", "segment", "what"]);
    for gap in &window.gaps {
        table.add_row([
            gap.start_lsn.clone(),
            known(&gap.end_lsn),
            visible(&gap.segment).into_owned(),
            gap.kind.clone(),
        ]);
    }
    writeln!(out, "{}\n", table.trim_fmt())
}
