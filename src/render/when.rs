//! The block WHEN of the first screen: how WAL grew, how far checkpoints are apart and why, what a
//! crash would cost, and how many commits there were.

use super::number::{counted, grouped, human_bytes};
use super::style::Show;
use super::when_tables::moment;
use crate::report::model::Report;
use crate::report::model::when::{Causes, Overview, Range};
use std::io::{self, Write};

const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Writes the block, if anything is known of when.
pub fn render(report: &Report, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let Some(when) = &report.when else { return Ok(()) };
    let Some((first, last)) = report.range.first_time.as_ref().zip(report.range.last_time.as_ref())
    else {
        return Ok(());
    };
    let line = if style.bars { format!("{} ", sparkline(&when.growth)) } else { "to ".to_owned() };
    let is_one_day = date(first) == date(last);
    let told = |time| if is_one_day { clock(time).to_owned() } else { moment(Some(time)) };
    write!(out, "WHEN  {} {line}{}", told(first), told(last))?;
    if let (Some(rate), Some(time)) = (when.peak_rate, &when.peak_time) {
        write!(out, "   peak about {}/s at {}", human_bytes(rate), told(time))?;
    }
    writeln!(out)?;
    for line in lines(report) {
        writeln!(out, "  {line}")?;
    }
    writeln!(out)
}

/// What there is to say, a line for each thing.
pub fn lines(report: &Report) -> Vec<String> {
    let Some(when) = &report.when else { return Vec::new() };
    let lines = [checkpoints(when), recovery(when), commits(when)];
    let told = lines.into_iter().flatten();
    told.flat_map(|text| text.split('\n').map(str::trim).map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

/// `2026-11-21`.
fn date(time: &str) -> &str {
    time.split_once('T').map_or(time, |(date, _)| date)
}

/// `09:12:01`.
fn clock(time: &str) -> &str {
    let clock = time.split_once('T').map_or(time, |(_, clock)| clock);
    clock.split(['.', 'Z']).next().unwrap_or(clock)
}

/// A line of bars for amounts.
fn sparkline(amounts: &[u64]) -> String {
    let most = amounts.iter().max().copied().unwrap_or(0).max(1);
    let level = |amount: u64| (u128::from(amount) * 7).div_ceil(u128::from(most)) as usize;
    amounts.iter().filter_map(|amount| EIGHTHS.get(level(*amount))).collect()
}

fn checkpoints(when: &Overview) -> Option<String> {
    if when.checkpoints == 0 {
        return Some("no checkpoint ends in this WAL".to_owned());
    }
    let mut text = counted(when.checkpoints, "checkpoint");
    if let Some(spacing) = &when.spacing_seconds {
        text.push_str(&format!(", {} apart", duration(spacing.median)));
    }
    let causes = causes(&when.causes);
    if let [cause] = causes.as_slice() {
        text.push_str(&format!(", {}", cause.1));
    }
    if let Some(share) = when.fpi_first_quarter_ratio {
        let share = share * 100.0;
        text.push_str(&format!("; {share:.0} % of the images in the first quarter of a cycle"));
    }
    if causes.len() > 1 {
        let causes: Vec<String> =
            causes.iter().map(|(count, how)| format!("{count} {how}")).collect();
        text.push_str(&format!("\n  {}", causes.join(", ")));
    }
    Some(text)
}

/// How many began by which cause: those that there are.
pub fn causes(causes: &Causes) -> Vec<(u64, &'static str)> {
    let all = [
        (causes.time, "by time"),
        (causes.wal, "by volume"),
        (causes.requested, "asked for"),
        (causes.shutdown, "at a shutdown"),
        (causes.end_of_recovery, "after recovery"),
        (causes.unknown, "of unknown cause"),
    ];
    all.into_iter().filter(|(count, _)| *count > 0).collect()
}

fn recovery(when: &Overview) -> Option<String> {
    let bytes = human_bytes(when.worst_recovery_bytes?);
    let Range { low, high } = when.worst_recovery_seconds.as_ref()?;
    let decimals = if *high < 10.0 { 1 } else { 0 };
    Some(format!("a crash would replay up to {bytes}: {low:.decimals$} to {high:.decimals$} s"))
}

fn commits(when: &Overview) -> Option<String> {
    let (mean, peak) = (when.mean_commits?, when.peak_commits?);
    Some(format!("{mean:.1} commits a second on average, {} at most", grouped(peak)))
}

/// `5 min 2 s`.
pub fn duration(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0) => "less than a second".to_owned(),
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_spans_are_told_short() {
        assert_eq!(clock("2026-11-21T09:12:01.000000Z"), "09:12:01");
        let told = [1, 60, 302, 3600, 5400].map(duration);
        assert_eq!(told, ["1 s", "1 min", "5 min 2 s", "1 h 0 min", "1 h 30 min"]);
    }

    #[test]
    fn the_peak_of_a_sparkline_is_full() {
        assert_eq!(sparkline(&[0, 1, 50, 100]), "▁▂▅█");
        assert_eq!(sparkline(&[]), "");
    }
}
