//! Checkpoint cycles, for people: one row each, and what they come to.

use super::number::{UNKNOWN, counted, fraction, grouped, human_bytes};
use super::style::{Show, left, plain};
use super::time::{duration, moment};
use std::io::{self, Write};
use walstat_report::model::Numbers;
use walstat_report::model::table::Table;
use walstat_report::model::when::{Cause, Causes, CheckpointRow, CheckpointSummary, how};

/// From so many on, what switches to the next segment cost is told by the day.
const HABIT: u64 = 3;

/// So much around 1 is evenly written.
const EVEN: f64 = 0.05;

/// Writes one row a cycle.
pub fn rows(
    checkpoints: &Table<CheckpointRow>,
    style: &Show,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut table = plain(&[
        "Redo point",
        "Time (UTC)",
        "Cause",
        "N",
        "FPI size",
        "Combined size",
        "Blocks",
        "First\nquarter",
    ]);
    left(&mut table, 1);
    left(&mut table, 2);
    for row in &checkpoints.rows {
        table.add_row(cells(row, style));
    }
    if let Some(left_out) = &checkpoints.left_out {
        let Numbers { count, fpi_bytes, total_bytes, .. } = left_out.numbers;
        table.add_row([
            format!("{} more", left_out.rows),
            String::new(),
            String::new(),
            grouped(count),
            style.bytes(fpi_bytes),
            style.bytes(total_bytes),
        ]);
    }
    writeln!(out, "{}\n", table.trim_fmt())?;
    writeln!(
        out,
        "Blocks: distinct in the cycle. First quarter: its share of the cycle's images.\n"
    )
}

fn cells(row: &CheckpointRow, style: &Show) -> Vec<String> {
    let cause = match (row.cause, row.cause_confidence) {
        (Some(cause), Some(confidence)) => format!("{cause} ({confidence})"),
        (Some(cause), None) => cause.to_string().replace('_', " "),
        _ => UNKNOWN.to_owned(),
    };
    vec![
        row.redo_lsn.clone().unwrap_or_else(|| format!("before {}", row.start_lsn)),
        moment(row.time.as_deref()),
        cause,
        grouped(row.numbers.count),
        style.bytes(row.numbers.fpi_bytes),
        style.bytes(row.numbers.total_bytes),
        grouped(row.distinct_blocks),
        fraction(row.fpi_first_quarter_ratio),
    ]
}

/// Writes what the cycles come to, a line for each thing that is known.
pub fn summary(summary: &CheckpointSummary, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let lines = [
        began(summary),
        apart(summary, style),
        images(summary),
        pace(summary),
        cost(summary, style),
        switches(summary, style),
    ];
    for line in lines.into_iter().flatten() {
        writeln!(out, "{line}")?;
    }
    writeln!(out)
}

/// How many began by which cause: those that there are.
pub fn causes(causes: &Causes) -> Vec<(u64, &'static str)> {
    let unknown = causes.unknown.saturating_sub(causes.before);
    let all = [
        (causes.time, how(Cause::Time)),
        (causes.wal, how(Cause::Wal)),
        (causes.requested, how(Cause::Requested)),
        (causes.shutdown, how(Cause::Shutdown)),
        (causes.end_of_recovery, how(Cause::EndOfRecovery)),
        (causes.shutdown_or_recovery, how(Cause::ShutdownOrRecovery)),
        (unknown, "of unknown cause"),
        (causes.before, "before this WAL"),
    ];
    all.into_iter().filter(|(count, _)| *count > 0).collect()
}

fn began(summary: &CheckpointSummary) -> Option<String> {
    let causes: Vec<String> =
        causes(&summary.causes).iter().map(|(count, how)| format!("{count} {how}")).collect();
    if causes.is_empty() {
        return None;
    }
    let mut text = format!("{}: {}", counted(summary.checkpoints, "checkpoint"), causes.join(", "));
    if let Some(share) = summary.forced_ratio {
        text.push_str(&format!(
            "; {} of those that a running server began came by volume or on request, before \
             checkpoint_timeout was over",
            fraction(Some(share))
        ));
    }
    Some(text)
}

fn apart(summary: &CheckpointSummary, style: &Show) -> Option<String> {
    let bytes = summary.spacing_bytes.as_ref()?;
    let mut text = format!(
        "Apart: {} of WAL at the median, {} to {}",
        style.bytes(bytes.median),
        style.bytes(bytes.min),
        style.bytes(bytes.max)
    );
    if let Some(seconds) = &summary.spacing_seconds {
        let (median, min, max) = (seconds.median, seconds.min, seconds.max);
        text.push_str(&format!("; {}, {} to {}", duration(median), duration(min), duration(max)));
    }
    if let Some(seconds) = summary.spread_seconds {
        text.push_str(&format!("; each takes {seconds:.1} s to its record"));
    }
    Some(text)
}

fn images(summary: &CheckpointSummary) -> Option<String> {
    summary.fpi_first_tenth_ratio?;
    let shares = |shares: [Option<f64>; 3]| shares.map(fraction).join(", ");
    let mut text = format!(
        "Images in the first 10, 25, 50 % of a cycle's WAL: {}",
        shares([
            summary.fpi_first_tenth_ratio,
            summary.fpi_first_quarter_ratio,
            summary.fpi_first_half_ratio,
        ])
    );
    if summary.fpi_first_tenth_time_ratio.is_some() {
        let of_time = [
            summary.fpi_first_tenth_time_ratio,
            summary.fpi_first_quarter_time_ratio,
            summary.fpi_first_half_time_ratio,
        ];
        text.push_str(&format!("; of its time: {}", shares(of_time)));
    }
    Some(text)
}

/// How evenly a cycle's WAL is written, and what follows for the pages that its checkpoint writes.
fn pace(summary: &CheckpointSummary) -> Option<String> {
    let pace = summary.wal_pace_exponent?;
    let (beyond, half) =
        (summary.wal_pace_beyond_full_page_writes?, fraction(summary.half_of_wal_time_ratio));
    let follows = if pace > 1.0 + EVEN {
        "faster at its beginning"
    } else if pace < 1.0 - EVEN {
        "faster at its end"
    } else {
        "evenly"
    };
    Some(format!(
        "Pace: half of a cycle's WAL is written in the first {half} of its time, so a checkpoint that keeps \
         up with the WAL writes pages {follows}.\nElapsed time is about WAL written to the power of \
         {pace:.2} (1: an even pace; {beyond:+.2} from 1.5, the value assumed for full_page_writes)"
    ))
}

fn cost(summary: &CheckpointSummary, style: &Show) -> Option<String> {
    let (count, bytes) = (summary.brought_fpi_count?, summary.brought_fpi_bytes?);
    let images = grouped(count.round() as u64);
    let bytes = style.bytes(bytes.round() as u64);
    let unit = if style.human { "" } else { " bytes" };
    Some(format!("One more checkpoint brings about {images} images, {bytes}{unit}"))
}

fn switches(summary: &CheckpointSummary, style: &Show) -> Option<String> {
    if summary.switches == 0 {
        return None;
    }
    let unused = style.bytes(summary.switch_bytes);
    let segments = counted(summary.switches, "segment");
    let mut text = format!("{segments} switched early left {unused} unused");
    // One or two are no habit.
    if let Some(bytes) = summary.switch_bytes_per_day.filter(|_| summary.switches >= HABIT) {
        text.push_str(&format!(", {} a day", human_bytes(bytes as u64)));
    }
    let padding = summary.archive_timeout_seconds.zip(summary.archive_timeout_bytes_per_day);
    if let Some((seconds, bytes)) = padding {
        let (bytes, every) = (human_bytes(bytes as u64), duration(seconds));
        text.push_str(&format!("; {bytes} a day of it {every} apart, as archive_timeout"));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_tells_when_pages_are_written() {
        let told = |exponent: f64| {
            let summary = CheckpointSummary {
                wal_pace_exponent: Some(exponent),
                wal_pace_beyond_full_page_writes: Some(exponent - 1.5),
                half_of_wal_time_ratio: Some(0.25),
                ..CheckpointSummary::default()
            };
            pace(&summary).expect("a pace")
        };
        assert!(told(0.5).contains("writes pages faster at its end."), "{}", told(0.5));
        assert!(told(1.0).contains("writes pages evenly."), "{}", told(1.0));
        assert!(told(1.0).contains("-0.50 from"), "{}", told(1.0));
        assert!(told(2.0).contains("writes pages faster at its beginning."), "{}", told(2.0));
    }
}
