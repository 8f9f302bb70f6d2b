//! `walstat follow -f openmetrics` and `--listen`: counters since the start, as the textfile collector of
//! `node_exporter` and Prometheus read them. They never go back while it runs.

use super::openmetrics::{MEASURES, begin, gauge, head_of, sample};
use std::io::{self, Write};
use walstat_report::model::Numbers;
use walstat_report::model::follow::{KindSums, Moment};

/// What is counted of a kind of transactions: the metric's name, what it is, the value.
type Count = (&'static str, &'static str, fn(&KindSums) -> u64);

/// Writes all metrics of a moment.
pub fn render(moment: &Moment, out: &mut dyn Write) -> io::Result<()> {
    begin(1, out)?;
    let rows = [(Vec::new(), moment.numbers)];
    family("", "", &[], &rows, out)?;
    counter("walstat_commits_total", "Commits", moment.commits, out)?;
    let help = "Bytes of WAL that were gone before they were read";
    counter("walstat_lost_bytes_total", help, moment.lost_bytes, out)?;
    gauges(moment, out)?;
    let rows = moment.rmgrs.iter().map(|row| (vec![row.rmgr.clone()], row.numbers));
    family("rmgr_", ", by resource manager", &["rmgr"], &rows.collect::<Vec<_>>(), out)?;
    let rows = moment.tables.iter().map(|row| {
        (vec![row.database.clone(), row.schema.clone(), row.table.clone()], row.numbers)
    });
    let labels = ["database", "schema", "table"];
    let help = ", by table with its indexes and TOAST";
    family("table_", help, &labels, &rows.collect::<Vec<_>>(), out)?;
    let labels = ["database", "kind"];
    let kind = |row: &KindSums| vec![row.database.clone(), row.kind.clone()];
    let rows = moment.kinds.iter().map(|row| (kind(row), row.numbers));
    let help = ", by kind of transaction, of those that have ended";
    family("kind_", help, &labels, &rows.collect::<Vec<_>>(), out)?;
    let counts: [Count; 2] = [
        ("walstat_kind_transactions_total", "Transactions that have ended, by kind", |k| {
            k.transactions
        }),
        ("walstat_kind_aborted_total", "Those of them that were rolled back, by kind", |k| {
            k.aborted
        }),
    ];
    for (name, help, value) in counts {
        head_of("counter", name, help, out)?;
        for row in &moment.kinds {
            sample(name, &labels, &kind(row), value(row), out)?;
        }
    }
    writeln!(out, "# EOF")
}

fn gauges(moment: &Moment, out: &mut dyn Write) -> io::Result<()> {
    let oldest = moment.oldest_transaction.as_ref().map_or(0, |oldest| oldest.bytes);
    let known = [
        (
            "walstat_position_lsn_bytes",
            "LSN after the last counted record",
            Some(moment.position_bytes),
        ),
        ("walstat_start_lsn_bytes", "LSN of the first counted record", Some(moment.start_bytes)),
        (
            "walstat_behind_bytes",
            "WAL from the position to the newest byte there is",
            Some(moment.behind_bytes),
        ),
        ("walstat_timeline", "The timeline that is being read", Some(u64::from(moment.timeline))),
        (
            "walstat_checkpoint_distance_bytes",
            "WAL since the last redo point",
            moment.checkpoint_distance_bytes,
        ),
        (
            "walstat_checkpoint_fpi_bytes",
            "Bytes of full page images since the last redo point, as far as they were counted",
            moment.fpi_bytes_since_redo,
        ),
        (
            "walstat_oldest_transaction_bytes",
            "WAL since the first record of the oldest transaction that has not ended",
            Some(oldest),
        ),
    ];
    for (name, help, value) in known {
        if let Some(value) = value {
            head_of("gauge", name, help, out)?;
            sample(name, &[], &[], value, out)?;
        }
    }
    match moment.bytes_per_second {
        Some(rate) => {
            gauge("walstat_bytes_per_second", "WAL a second since it was told before", rate, out)
        }
        None => Ok(()),
    }
}

/// A family by rows.
fn family(
    of: &str,
    by: &str,
    labels: &[&str],
    rows: &[(Vec<String>, Numbers)],
    out: &mut dyn Write,
) -> io::Result<()> {
    for (name, help, value) in MEASURES {
        let name = format!("walstat_{of}{name}_total");
        head_of("counter", &name, &format!("{help}{by}"), out)?;
        for (values, numbers) in rows {
            sample(&name, labels, values, value(numbers), out)?;
        }
    }
    Ok(())
}

fn counter(name: &str, help: &str, value: u64, out: &mut dyn Write) -> io::Result<()> {
    head_of("counter", name, help, out)?;
    sample(name, &[], &[], value, out)
}
