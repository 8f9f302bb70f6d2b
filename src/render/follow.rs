//! `walstat follow` for people who read a log: a line each time.

use super::number::{UNKNOWN, counted, human_bytes};
use super::time::{clock, date, moment};
use super::visible::visible;
use std::borrow::Cow;
use std::io::{self, Write};
use walstat_report::model::follow::{HappeningRow, KindSums, Moment, Now, PgWal, TableNow, UNREAD};
use walstat_report::model::percent::percent;

/// So many tables are named in a line.
const TABLES: usize = 3;

/// Writes what happened, and a line of what came since the one before.
pub fn render(moment: &Moment, now: &Now, out: &mut dyn Write) -> io::Result<()> {
    for happening in moment.happenings.iter().filter(|of| of.event != "checkpoint") {
        let time = happening.time.as_deref().unwrap_or(&moment.time);
        writeln!(out, "{} {}", beside(time, &moment.time), happening_line(happening))?;
    }
    let Moment { start_lsn, position_lsn, numbers, .. } = moment;
    write!(out, "{} {position_lsn}", clock(&moment.time))?;
    match moment.bytes_per_second {
        Some(rate) => {
            write!(out, "  {}/s", human_bytes(rate as u64))?;
            write!(out, "  images {}", share(now.numbers.fpi_bytes, now.numbers.total_bytes))?;
        }
        None => {
            let records = counted(numbers.count, "record");
            write!(out, "  {records}, {} since {start_lsn}", human_bytes(numbers.total_bytes))?;
            write!(out, "  images {}", share(numbers.fpi_bytes, numbers.total_bytes))?;
        }
    }
    if let Some(distance) = moment.checkpoint_distance_bytes {
        write!(out, "  checkpoint {} ago", human_bytes(distance))?;
    }
    if moment.lost_bytes > 0 {
        write!(out, "  lost {}", human_bytes(moment.lost_bytes))?;
    }
    if let Some(pg_wal) = &moment.pg_wal {
        write!(out, "  pg_wal {}{}", human_bytes(pg_wal.bytes), kept_by(pg_wal))?;
    }
    let tables = largest_tables(now);
    let tables = tables.iter().take(TABLES).map(|table| {
        format!(
            "{} {}",
            table_name(table, &now.tables),
            share(table.numbers.total_bytes, now.numbers.total_bytes)
        )
    });
    let tables: Vec<String> = tables.collect();
    if moment.bytes_per_second.is_some() && !tables.is_empty() {
        write!(out, "  {}", tables.join(", "))?;
    }
    writeln!(out)
}

/// How many segments are kept in `pg_wal`, and by what most.
fn kept_by(pg_wal: &PgWal) -> String {
    let unread = match pg_wal.keepers.iter().find(|keeper| keeper.keeper == UNREAD) {
        Some(unread) => format!(" ({})", visible(&unread.text)),
        None => String::new(),
    };
    let mut keepers = pg_wal.keepers.iter().filter(|keeper| keeper.segments > 0);
    let Some(first) = keepers.next() else { return unread };
    let name = first.name.as_deref().map(|name| format!(" {}", visible(name)));
    let more = match keepers.count() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    // What a standby's recovery keeps is not beyond what recovery needs.
    let segments = counted(pg_wal.kept_segments.max(first.segments), "segment");
    let keeper = first.keeper.replace("replication_slot", "slot");
    format!(" ({segments} kept by {keeper}{}{more}){unread}", name.unwrap_or_default())
}

/// What happened, in a line.
pub fn happening_line(happening: &HappeningRow) -> String {
    visible(&happening.text).into_owned()
}

/// A time with its date, if that is another one than that of `now`.
fn beside<'t>(time: &'t str, now: &str) -> Cow<'t, str> {
    if date(time) == date(now) { clock(time).into() } else { moment(Some(time)).into() }
}

/// Tables that wrote, most first; what belongs to no table is none.
pub fn largest_tables(now: &Now) -> Vec<&TableNow> {
    let has_name = |table: &&TableNow| table.labels.iter().any(|label| !label.is_empty());
    let mut tables: Vec<&TableNow> = now.tables.iter().filter(has_name).collect();
    tables.sort_by_key(|table| std::cmp::Reverse(table.numbers.total_bytes));
    tables
}

/// Kinds of transactions that ended, most bytes first.
pub fn largest_kinds(now: &Now) -> Vec<&KindSums> {
    let mut kinds: Vec<&KindSums> =
        now.kinds.iter().filter(|kind| kind.numbers.total_bytes > 0).collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.numbers.total_bytes));
    kinds
}

/// A table as people call it; with its database where `all` have one of this name in another database too.
pub fn table_name(table: &TableNow, all: &[TableNow]) -> String {
    let [database, schema, name] = &table.labels;
    let is_namesake = |other: &TableNow| {
        let [other_database, other_schema, other_name] = &other.labels;
        (other_schema, other_name) == (schema, name) && other_database != database
    };
    let parts = match schema.as_str() {
        _ if all.iter().any(is_namesake) => vec![database, schema, name],
        "" | "public" => vec![name],
        _ => vec![schema, name],
    };
    let parts = parts.into_iter().filter(|part| !part.is_empty()).map(String::as_str);
    visible(&parts.collect::<Vec<_>>().join(".")).into_owned()
}

/// A kind as people call it; with its database where `all` have this kind in another database too.
pub fn kind_name(kind: &KindSums, all: &[&KindSums]) -> String {
    match kind.kind.strip_prefix("none: ") {
        Some("other") => "no transaction: pruning, hint bits and the like".to_owned(),
        Some(maintenance) => format!("no transaction: {maintenance}"),
        None => {
            let is_namesake =
                |other: &&KindSums| other.kind == kind.kind && other.database != kind.database;
            match all.iter().any(is_namesake) {
                true => format!("{}: {}", kind.database, kind.kind),
                false => kind.kind.clone(),
            }
        }
    }
}

/// A share in percent; a dash of nothing.
pub fn share(part: u64, whole: u64) -> String {
    if whole == 0 { UNKNOWN.to_owned() } else { percent(part as f64 / whole as f64, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_report::model::follow::Keeper;

    #[test]
    fn a_line_says_what_keeps_segments() {
        let keeper = |keeper: &str, name: Option<&str>, segments| Keeper {
            keeper: keeper.into(),
            name: name.map(str::to_owned),
            segments,
            ..Keeper::default()
        };
        let keepers = vec![
            keeper("replication_slot", Some("dead"), 9),
            keeper("archiving", None, 3),
            keeper("invalid_slot", Some("gone"), 0),
        ];
        let pg_wal = PgWal { bytes: 320 << 20, kept_segments: 9, keepers, ..PgWal::default() };
        let moment = Moment { pg_wal: Some(pg_wal), ..Moment::default() };
        let mut line = Vec::new();
        render(&moment, &Now::default(), &mut line).expect("written");
        let line = String::from_utf8(line).expect("text");
        let told = "pg_wal 320 MB (9 segments kept by slot dead and 1 more)";
        assert!(line.contains(told), "{line}");
        let standby = PgWal { keepers: vec![keeper("recovery", None, 79)], ..PgWal::default() };
        assert_eq!(kept_by(&standby), " (79 segments kept by recovery)");
    }

    #[test]
    fn namesakes_in_two_databases_are_told_apart() {
        let table = |labels: [&str; 3]| TableNow {
            labels: labels.map(str::to_owned),
            ..TableNow::default()
        };
        let all = [["a", "public", "t"], ["b", "public", "t"], ["b", "s", "t"]].map(table);
        let names = all.each_ref().map(|own| table_name(own, &all));
        assert_eq!(names, ["a.public.t", "b.public.t", "s.t"]);
        assert_eq!(table_name(&all[0], &all[2..]), "t");
        let kind = |database: &str| KindSums {
            database: database.into(),
            kind: "INSERT t".into(),
            transactions: 1,
            aborted: 0,
            numbers: Default::default(),
        };
        let (a, b) = (kind("a"), kind("b"));
        assert_eq!(kind_name(&a, &[&a, &b]), "a: INSERT t");
        assert_eq!(kind_name(&a, &[&a]), "INSERT t");
    }

    #[test]
    fn the_time_of_another_day_has_its_date() {
        let now = "2026-11-21T09:12:01.000000Z";
        assert_eq!(beside("2026-11-21T08:00:00.5Z", now), "08:00:00");
        assert_eq!(beside("2026-11-20T08:00:00.5Z", now), "2026-11-20 08:00:00");
    }
}
