//! When WAL was written, for people: timeline, checkpoints, recovery, replication, commits.

use super::checkpoints;
use super::number::{UNKNOWN, counted, fraction, grouped, human_bytes};
use super::style::{Show, left, plain};
use super::time::{moment, seconds_between};
use std::io::{self, Write};
use walstat_report::model::table::Line;
use walstat_report::model::when::{
    Commits, HourRow, Peak, Recovery, RecoveryRow, Replication, Timeline,
};
use walstat_report::model::{Report, Sums};

/// Cells of the longest bar.
const BAR_CELLS: f64 = 12.0;

/// Writes the tables that there are.
pub fn render(report: &Report, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let all = &report.totals;
    if let Some(timeline) = &report.timeline {
        show_timeline(timeline, all, style, out)?;
    }
    if let Some(checkpoints) = &report.checkpoints {
        checkpoints::rows(checkpoints, style, out)?;
    }
    if let Some(summary) = &report.checkpoint_summary {
        checkpoints::summary(summary, style, out)?;
    }
    if let Some(recovery) = &report.recovery {
        show_recovery(recovery, style, out)?;
    }
    if let Some(replication) = &report.replication {
        show_replication(replication, out)?;
    }
    if let Some(commits) = &report.commits {
        show_commits(commits, out)?;
    }
    Ok(())
}

fn bar(bytes: u64, most: u64) -> String {
    let cells = bytes as f64 / most.max(1) as f64 * BAR_CELLS;
    "█".repeat(cells.round() as usize)
}

/// The sums of a row, with the headings of the official tool.
fn sums(line: Line, style: &Show) -> Vec<String> {
    let Line { label, numbers, shares, .. } = line;
    vec![
        label,
        grouped(numbers.count),
        style.bytes(numbers.record_bytes),
        style.bytes(numbers.fpi_bytes),
        style.bytes(numbers.total_bytes),
        format!("{:.2}", shares.total),
    ]
}

fn headings<'h>(first: &'h str, style: &Show, more: &[&'h str]) -> Vec<&'h str> {
    let sizes = if style.human {
        ["Record\nsize", "FPI\nsize", "Combined\nsize"]
    } else {
        ["Record size", "FPI size", "Combined size"]
    };
    [&[first, "N"][..], &sizes, &["%"], more].concat()
}

fn show_timeline(
    timeline: &Timeline,
    all: &Sums,
    style: &Show,
    out: &mut dyn Write,
) -> io::Result<()> {
    let rows = &timeline.buckets;
    let most = rows.rows.iter().map(|row| row.numbers.total_bytes).max().unwrap_or(0);
    let mut table = plain(&headings("Time (UTC)", style, &["Commits", ""]));
    left(&mut table, 7);
    for (row, line) in rows.rows.iter().zip(rows.lines(all)) {
        let mut cells = sums(line, style);
        if let Some(label) = cells.first_mut() {
            *label = moment(row.time.as_deref());
        }
        cells.push(grouped(row.commits));
        cells.push(if style.bars { bar(row.numbers.total_bytes, most) } else { String::new() });
        table.add_row(cells);
    }
    let more = |count| format!("{count} more");
    for line in rows.left_out(all, more).into_iter().chain([Line::total(all)]) {
        table.add_row(sums(line, style));
    }
    writeln!(out, "{}\n", table.trim_fmt())?;
    if let Some(hours) = &timeline.by_hour {
        show_hours(hours, style, out)?;
    }
    let peaks = &timeline.peaks;
    for (peak, what) in
        [(&peaks.second, "second"), (&peaks.ten_seconds, "ten seconds"), (&peaks.minute, "minute")]
    {
        writeln!(out, "Busiest {what}: {}", peak_text(peak, style))?;
    }
    let width = counted(timeline.bucket_seconds, "second");
    let idle = fraction(timeline.idle_ratio);
    writeln!(out, "Buckets of {width}; {idle} of the seconds without WAL\n")
}

fn peak_text(peak: &Peak, style: &Show) -> String {
    match (&peak.time, peak.total_bytes) {
        (time, Some(bytes)) => format!("{} from {}", style.bytes(bytes), moment(time.as_deref())),
        _ => UNKNOWN.to_owned(),
    }
}

fn show_hours(hours: &[HourRow], style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let most = hours.iter().map(|row| row.numbers.total_bytes).max().unwrap_or(0);
    // In the time zone that was asked for.
    let mut table = plain(&["Hour (--tz)", "N", "FPI size", "Combined size", "Commits", ""]);
    left(&mut table, 5);
    for HourRow { hour, commits, numbers } in hours {
        table.add_row([
            format!("{hour:02}"),
            grouped(numbers.count),
            style.bytes(numbers.fpi_bytes),
            style.bytes(numbers.total_bytes),
            grouped(*commits),
            if style.bars { bar(numbers.total_bytes, most) } else { String::new() },
        ]);
    }
    writeln!(out, "{}\n", table.trim_fmt())
}

fn show_recovery(recovery: &Recovery, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let mut table = plain(&["From", "To", "WAL", "N", "Blocks", "Without\nimage", "Seconds"]);
    for row in &recovery.cycles.rows {
        table.add_row(recovery_cells(row, style));
    }
    if let Some(left_out) = &recovery.cycles.left_out {
        table.add_row([format!("{} more", left_out.rows)]);
    }
    writeln!(out, "{}\n", table.trim_fmt())?;
    let tell =
        |row: &Option<RecoveryRow>| row.as_ref().map_or(UNKNOWN.into(), |row| replay(row, style));
    writeln!(out, "After a crash at the end: {}", tell(&recovery.at_end))?;
    writeln!(out, "At the worst moment: {}", tell(&recovery.worst))?;
    let (low, high) = (recovery.replay_rate_low, recovery.replay_rate_high);
    writeln!(out, "Replay at {}/s to {}/s\n", human_bytes(low), human_bytes(high))
}

fn replay(row: &RecoveryRow, style: &Show) -> String {
    let bytes = style.bytes(row.wal_bytes);
    format!("{bytes} from {}, {}", row.from_lsn, seconds_between(row.seconds_low, row.seconds_high))
}

fn recovery_cells(row: &RecoveryRow, style: &Show) -> Vec<String> {
    vec![
        row.from_lsn.clone(),
        row.to_lsn.clone(),
        style.bytes(row.wal_bytes),
        grouped(row.numbers.count),
        grouped(row.distinct_blocks),
        grouped(row.blocks_without_fpi),
        seconds_between(row.seconds_low, row.seconds_high),
    ]
}

fn show_replication(replication: &Replication, out: &mut dyn Write) -> io::Result<()> {
    let rate =
        |rate: Option<u64>| rate.map_or(UNKNOWN.into(), |rate| format!("{}/s", human_bytes(rate)));
    let mean = replication.mean_rate.map(|mean| mean as u64);
    writeln!(
        out,
        "WAL grows by {} on average, {} in the busiest second",
        rate(mean),
        replication.peak_rate.map_or("unknown".to_owned(), |peak| rate(Some(peak)))
    )?;
    let even = replication.longest_even_seconds.map_or_else(String::new, |seconds| {
        format!(", if WAL grew evenly where no time is stated for up to {seconds} s")
    });
    writeln!(
        out,
        "A link or standby of at least {} never falls behind{even}",
        rate(replication.never_behind_rate)
    )?;
    if replication.max_lag_rate.is_some() {
        writeln!(out, "One of at least {} keeps within --max-lag", rate(replication.max_lag_rate))?;
    }
    if let Some(backlog) = &replication.backlog {
        let slowest = replication.link_rate.into_iter().chain(replication.replay_rate).min();
        let at = backlog.peak_time.as_deref().map(|time| format!(" at {}", moment(Some(time))));
        let clear = match (&backlog.clear_time, backlog.peak_bytes) {
            (_, 0) => String::new(),
            (Some(time), _) if backlog.peak_time.as_ref().is_some_and(|peak| time < peak) => {
                ", gone after the clock was set back".to_owned()
            }
            (Some(time), _) => format!(", gone at {}", moment(Some(time))),
            (None, _) => ", not gone at the end".to_owned(),
        };
        let bytes = human_bytes(backlog.peak_bytes);
        let (seconds, at) = (backlog.peak_seconds, at.unwrap_or_default());
        writeln!(out, "At {}: up to {bytes} or {seconds:.1} s behind{at}{clear}", rate(slowest))?;
    }
    writeln!(out)
}

fn show_commits(commits: &Commits, out: &mut dyn Write) -> io::Result<()> {
    let seconds = counted(commits.seconds, "second");
    writeln!(out, "{} in {seconds}", counted(commits.commits, "commit"))?;
    if let Some(per_second) = &commits.per_second {
        let at = per_second.peak_time.as_deref().map(|time| format!(" at {}", moment(Some(time))));
        writeln!(
            out,
            "A second: {:.1} on average, {} at the median, {} in 99 of 100, {} at most{}",
            per_second.mean,
            grouped(per_second.median),
            grouped(per_second.p99),
            grouped(per_second.peak),
            at.unwrap_or_default(),
        )?;
    }
    if let Some(bytes) = commits.wal_bytes_per_commit {
        writeln!(out, "{} of WAL a commit", human_bytes(bytes as u64))?;
    }
    writeln!(
        out,
        "Writes to disk in the busiest second: {} with group commit to {} without, if every commit \
         waits for its own\n",
        grouped(commits.syncs_per_second_low),
        grouped(commits.syncs_per_second_high),
    )
}
