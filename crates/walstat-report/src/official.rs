//! What `pg_waldump` of the release that wrote the WAL prints around its table; see
//! `pg_waldump.c` of each release.

use super::model::view::Official;
use walstat_format::lsn::Lsn;
use walstat_format::version::{Tool, Version};
use walstat_read::input::plan::Plan;
use walstat_read::scan::outcome::Outcome;

/// The lines around the table; `start`: where the range starts, if it was given.
pub(crate) fn lines<O>(
    version: &Version,
    start: Option<Lsn>,
    plan: &Plan,
    outcome: &Outcome<O>,
) -> Official {
    let tool = version.tool;
    let range = outcome.first.zip(outcome.counted_end).filter(|_| tool.range_line);
    let range_line = range.map(|(first, end)| {
        format!("WAL statistics between {} and {}:", lsn(tool, first), lsn(tool, end))
    });
    let segment_bytes = u64::from(plan.geometry.segment_bytes);
    let skipped = start
        .zip(outcome.first)
        .filter(|(start, first)| first > start && !start.0.is_multiple_of(segment_bytes));
    Official {
        range_line,
        skip_line: skipped.map(|(start, first)| skip_line(tool, start, first)),
        silent_if_empty: tool.range_line,
    }
}

fn lsn(tool: Tool, lsn: Lsn) -> String {
    if tool.padded_lsn { lsn.to_string() } else { lsn.unpadded().to_string() }
}

/// The line about bytes before the first record, and whether it goes to standard error.
fn skip_line(tool: Tool, start: Lsn, first: Lsn) -> (String, bool) {
    let bytes = first.0 - start.0;
    let unit = if bytes == 1 && tool.singular_byte { "byte" } else { "bytes" };
    let (start, first) = (lsn(tool, start), lsn(tool, first));
    let prefix = if tool.skip_on_stderr { "pg_waldump: " } else { "" };
    let line =
        format!("{prefix}first record is after {start}, at {first}, skipping over {bytes} {unit}");
    (line, tool.skip_on_stderr)
}
