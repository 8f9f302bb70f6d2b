//! The block WHEN of the first screen: how WAL grew, how far checkpoints are apart and why, what a
//! crash would cost, and how many commits there were.

use super::checkpoints::causes;
use super::number::{counted, grouped, human_bytes};
use super::style::{BARS, Show};
use super::time::{clock, date, duration, moment, seconds_between};
use std::io::{self, Write};
use walstat_report::model::Report;
use walstat_report::model::percent::percent;
use walstat_report::model::settings::{SettingValues, Settings};
use walstat_report::model::size::megabytes_setting;
use walstat_report::model::when::how;
use walstat_report::model::when::{Overview, Range};

/// Writes the block, if anything is known of when.
pub fn render(report: &Report, style: &Show, out: &mut dyn Write) -> io::Result<()> {
    let Some(when) = &report.when else { return Ok(()) };
    let Some((first, last)) = report.range.first_time.as_ref().zip(report.range.last_time.as_ref())
    else {
        return Ok(());
    };
    // Bars of what was spread evenly over hours would say what nobody knows.
    let bars = style.bars && when.peak_rate.is_some();
    let line = if bars { format!("{} ", sparkline(&when.growth)) } else { "to ".to_owned() };
    let is_one_day = date(first) == date(last);
    let told = |time| if is_one_day { clock(time).to_owned() } else { moment(Some(time)) };
    write!(out, "WHEN  {} {line}{}", told(first), told(last))?;
    if let (Some(rate), Some(time)) = (when.peak_rate, &when.peak_time) {
        write!(out, "   peak about {}/s at {}", human_bytes(rate), told(time))?;
    } else if when.mean_rate.is_some() {
        write!(out, "   peak unknown: most of the WAL states no time")?;
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
    let settings = report.settings.as_ref().and_then(settings);
    let lines = [checkpoints(when), settings, recovery(when), commits(when)];
    let told = lines.into_iter().flatten();
    told.flat_map(|text| text.split('\n').map(str::trim).map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

/// A line of bars for amounts.
fn sparkline(amounts: &[u64]) -> String {
    let most = amounts.iter().max().copied().unwrap_or(0).max(1);
    let level = |amount: u64| (u128::from(amount) * 7).div_ceil(u128::from(most)) as usize;
    amounts.iter().filter_map(|amount| BARS.get(level(*amount))).collect()
}

fn checkpoints(when: &Overview) -> Option<String> {
    if when.checkpoints == 0 {
        return Some("no checkpoint ends in this WAL".to_owned());
    }
    let mut text = counted(when.checkpoints, "checkpoint");
    let apart = when.spacing_seconds.as_ref().map(|spacing| duration(spacing.median));
    let causes = causes(&when.causes);
    match (causes.as_slice(), &apart, when.spacing_cause) {
        ([(_, how)], Some(apart), _) => text.push_str(&format!(", {apart} apart, {how}")),
        ([(_, how)], None, _) => text.push_str(&format!(", {how}")),
        (_, Some(apart), None) => {
            text.push_str(&format!(", {apart} apart where most of the WAL is"));
        }
        _ => {}
    }
    if let Some(share) = when.fpi_first_quarter_ratio {
        let share = percent(share, 0);
        text.push_str(&format!("; {share} of the images in the first quarter of a cycle"));
    }
    if causes.len() > 1 {
        // How far apart is said of those that it is true of.
        let of = when.spacing_cause.map(how);
        let cause = |(count, how): &(u64, &'static str)| match &apart {
            Some(apart) if of == Some(*how) => format!("{count} {how} ({apart} apart)"),
            _ => format!("{count} {how}"),
        };
        let causes: Vec<String> = causes.iter().map(cause).collect();
        text.push_str(&format!("\n  {}", causes.join(", ")));
    }
    Some(text)
}

/// The settings that checkpoints and WAL depend on most; `None` where none of them is known.
fn settings(found: &Settings) -> Option<String> {
    let SettingValues { checkpoint_timeout, max_wal_size, archive_timeout, .. } = found.values;
    let SettingValues { full_page_writes, wal_compression, autovacuum, .. } = &found.values;
    let seconds = |name: &str, value: Option<u64>| match value {
        Some(0) => None,
        value => value.map(|value| format!("{name} {value}s")),
    };
    let told = [
        seconds("checkpoint_timeout", checkpoint_timeout),
        max_wal_size.map(|bytes| format!("max_wal_size {}", megabytes_setting(bytes))),
        wal_compression.as_ref().map(|codec| format!("wal_compression {codec}")),
        full_page_writes.filter(|is_on| !is_on).map(|_| "full_page_writes off".to_owned()),
        seconds("archive_timeout", archive_timeout),
        autovacuum.filter(|is_on| !is_on).map(|_| "autovacuum off".to_owned()),
    ];
    let told: Vec<String> = told.into_iter().flatten().collect();
    (!told.is_empty()).then(|| format!("set now: {}", told.join(", ")))
}

fn recovery(when: &Overview) -> Option<String> {
    let bytes = human_bytes(when.worst_recovery_bytes?);
    let Range { low, high } = when.worst_recovery_seconds.as_ref()?;
    let seconds = seconds_between(*low, *high);
    Some(format!("a crash would replay up to {bytes}: {seconds}"))
}

fn commits(when: &Overview) -> Option<String> {
    let (mean, peak) = (when.mean_commits?, when.peak_commits?);
    Some(format!("{mean:.1} commits a second on average, {} at most", grouped(peak)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_of_a_sparkline_is_full() {
        assert_eq!(sparkline(&[0, 1, 50, 100]), "▁▂▅█");
        assert_eq!(sparkline(&[]), "");
    }
}
