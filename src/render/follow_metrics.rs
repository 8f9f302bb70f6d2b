//! `walstat follow -f openmetrics` and `--listen`: counters since the start, as the textfile collector of
//! `node_exporter` and Prometheus read them. They never go back while it runs.

use super::openmetrics::{MEASURES, begin, gauge, head_of, sample};
use std::io::{self, Write};
use walstat_report::model::Numbers;
use walstat_report::model::follow::{Keeper, KindSums, Moment, PgWal, UNREAD};

/// What is counted of a kind of transactions: the metric's name, what it is, the value.
type Count = (&'static str, &'static str, fn(&KindSums) -> u64);

/// What is told of something that keeps segments: the metric's name, what it is, the value.
type Kept = (&'static str, &'static str, fn(&Keeper) -> u64);

/// Writes all metrics of a moment.
pub fn render(moment: &Moment, out: &mut dyn Write) -> io::Result<()> {
    begin(u8::from(moment.up), out)?;
    let rows = [(Vec::new(), moment.numbers)];
    family("", "", &[], &rows, out)?;
    counter("walstat_commits_total", "Commits", moment.commits, out)?;
    let help = "Bytes of WAL that were gone before they were read";
    counter("walstat_lost_bytes_total", help, moment.lost_bytes, out)?;
    gauges(moment, out)?;
    if let Some(of) = &moment.pg_wal {
        pg_wal(of, out)?;
    }
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
    // Where nothing is known of transactions there is no sample.
    let oldest = moment.oldest_transaction.as_ref().map(|oldest| oldest.bytes);
    let oldest = oldest.or(moment.open_transactions_known.then_some(0));
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
            oldest,
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

/// What lies in `pg_wal`, and what keeps it there.
fn pg_wal(pg_wal: &PgWal, out: &mut dyn Write) -> io::Result<()> {
    let whole = [
        ("walstat_pg_wal_segments", "Segments in pg_wal", Some(pg_wal.segments)),
        ("walstat_pg_wal_bytes", "Bytes of the segments in pg_wal", Some(pg_wal.bytes)),
        (
            "walstat_pg_wal_removable_segments",
            "Segments before the last redo point that the next checkpoint removes or reuses",
            pg_wal.removable_segments,
        ),
    ];
    for (name, help, value) in whole {
        if let Some(value) = value {
            head_of("gauge", name, help, out)?;
            sample(name, &[], &[], value, out)?;
        }
    }
    let kept: [Kept; 2] = [
        (
            "walstat_pg_wal_kept_segments",
            "Segments before the last redo point that would go without this, if nothing else kept them",
            |keeper| keeper.segments,
        ),
        ("walstat_pg_wal_kept_bytes", "Bytes of these segments", |keeper| keeper.kept_bytes),
    ];
    for (name, help, value) in kept {
        head_of("gauge", name, help, out)?;
        for keeper in pg_wal.keepers.iter().filter(|keeper| keeper.keeper != UNREAD) {
            let labels = [keeper.keeper.clone(), keeper.name.clone().unwrap_or_default()];
            sample(name, &["keeper", "name"], &labels, value(keeper), out)?;
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_report::model::follow::OpenTransaction;

    fn text(moment: &Moment) -> String {
        let mut text = Vec::new();
        render(moment, &mut text).expect("written");
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn of_transactions_that_are_not_known_there_is_no_sample() {
        let name = "walstat_oldest_transaction_bytes";
        assert!(!text(&Moment::default()).contains(name));
        let none = Moment { open_transactions_known: true, ..Moment::default() };
        assert!(text(&none).contains(&format!("\n{name} 0\n")));
        let open = OpenTransaction { xid: "7".into(), start_lsn: None, bytes: 99 };
        let one = Moment { oldest_transaction: Some(open), ..Moment::default() };
        assert!(text(&one).contains(&format!("\n{name} 99\n")));
    }

    #[test]
    fn what_keeps_segments_has_its_gauges() {
        let keeper = Keeper {
            keeper: "replication_slot".into(),
            name: Some("dead".into()),
            segments: 9,
            kept_bytes: 9 << 20,
            ..Keeper::default()
        };
        let pg_wal = PgWal {
            segments: 20,
            bytes: 20 << 20,
            removable_segments: Some(4),
            keepers: vec![keeper],
            ..PgWal::default()
        };
        let unread = Keeper { keeper: UNREAD.into(), ..Keeper::default() };
        let not_known =
            PgWal { removable_segments: None, keepers: vec![unread], ..PgWal::default() };
        let not_known = self::text(&Moment { pg_wal: Some(not_known), ..Moment::default() });
        assert!(!not_known.contains("removable") && !not_known.contains("unread"), "{not_known}");
        let text = text(&Moment { pg_wal: Some(pg_wal), ..Moment::default() });
        let dashboard = include_str!("../../docs/grafana/walstat-live.json");
        let asked = dashboard.split("\"walstat_pg_wal_").skip(1).map(|rest| rest.split('{').next());
        let asked: Vec<&str> = asked.flatten().collect();
        assert!(asked.len() >= 3, "{asked:?}");
        for name in asked {
            let name = format!("# TYPE walstat_pg_wal_{name} gauge");
            assert!(text.contains(&name), "{name}: {text}");
        }
        for line in [
            "walstat_up 0",
            "walstat_pg_wal_segments 20",
            "walstat_pg_wal_removable_segments 4",
            "walstat_pg_wal_bytes 20971520",
            "walstat_pg_wal_kept_segments{keeper=\"replication_slot\",name=\"dead\"} 9",
            "walstat_pg_wal_kept_bytes{keeper=\"replication_slot\",name=\"dead\"} 9437184",
        ] {
            assert!(text.lines().any(|own| own == line), "{line}: {text}");
        }
    }
}
