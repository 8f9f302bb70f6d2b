//! `walstat records`: one row a record, written while the WAL is read.

use super::name_args::NameArgs;
use super::output::{Stream, spare_inputs};
use super::read::read;
use super::source_args::{FilterArgs, SourceArgs};
use super::{Exit, Failure, relation};
use crate::render::records::{Form, RecordLine, head, row};
use crate::scan::record::{Observe, Record};
use crate::wal::fork::Fork;
use crate::wal::lsn::Lsn;
use crate::wal::rmgr;
use clap::{Args, ValueEnum};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Arguments of `walstat records`.
#[derive(Debug, Args)]
#[command(
    after_help = "walstat records pg_wal -R public.orders -f csv | psql -c '\\copy wal FROM STDIN CSV HEADER'"
)]
pub struct RecordsArgs {
    /// What to read
    #[command(flatten)]
    pub source: SourceArgs,
    /// Which records
    #[command(flatten)]
    pub filters: FilterArgs,
    /// Names of relations, for --relation
    #[command(flatten)]
    pub names: NameArgs,
    /// Format
    #[arg(
        short,
        long,
        value_name = "F",
        value_enum,
        default_value_t = RecordsFormat::Table,
        help_heading = "Output"
    )]
    pub format: RecordsFormat,
    /// Write to this file, whole or not at all
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
}

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RecordsFormat {
    /// For people
    Table,
    /// One line a record, with headings
    Csv,
    /// One object a line
    Ndjson,
}

/// Runs the command.
pub fn run(args: &RecordsArgs) -> Result<Exit, Failure> {
    spare_inputs(args.output.as_deref(), args.source.inputs())?;
    let (filters, _) = relation::filters(&args.source, &args.filters, &args.names)?;
    let form = match args.format {
        RecordsFormat::Table => Form::Table,
        RecordsFormat::Csv => Form::Csv,
        RecordsFormat::Ndjson => Form::Ndjson,
    };
    let writer = Arc::new(Mutex::new(Writer {
        out: Stream::begin(args.output.as_deref())?,
        form,
        last: None,
        failed: None,
    }));
    let prototype = Rows { rows: Vec::new(), writer: Arc::clone(&writer) };
    writer.lock().unwrap_or_else(PoisonError::into_inner).begin();
    let mut read = read(&args.source, &filters, &prototype)?;
    read.scanned.observer.settle();
    for problem in &read.scanned.problems {
        eprintln!(
            "walstat: {}: found {}, expected {}",
            problem.segment, problem.found, problem.expected
        );
    }
    let damaged = !read.scanned.problems.is_empty();
    drop((read, prototype));
    let writer = Arc::into_inner(writer)
        .map(|writer| writer.into_inner().unwrap_or_else(PoisonError::into_inner));
    if let Some(writer) = writer {
        writer.out.end(writer.failed)?;
    }
    Ok(if damaged { Exit::Damage } else { Exit::Done })
}

/// Writes rows in WAL order.
struct Writer {
    out: Stream,
    form: Form,
    /// The last record written. Where a server was writing the scan is begun anew: what was written stays.
    last: Option<Lsn>,
    failed: Option<io::Error>,
}

impl Writer {
    fn begin(&mut self) {
        let written = head(self.form, &mut self.out);
        self.failed = written.err();
    }

    fn write(&mut self, rows: Vec<(Lsn, RecordLine)>) {
        for (lsn, line) in rows {
            if self.failed.is_some() || self.last.is_some_and(|last| lsn <= last) {
                continue;
            }
            self.last = Some(lsn);
            self.failed = row(&line, self.form, &mut self.out).err();
        }
    }
}

/// Rows that may not be written yet.
#[derive(Clone)]
struct Rows {
    rows: Vec<(Lsn, RecordLine)>,
    writer: Arc<Mutex<Writer>>,
}

impl Observe for Rows {
    const KEEPS: bool = true;

    fn observe(&mut self, record: &Record<'_>) {
        self.rows.push((record.lsn, line(record)));
    }

    fn merge(&mut self, mut later: Rows) {
        self.rows.append(&mut later.rows);
    }

    fn settle(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).write(rows);
    }
}

fn line(record: &Record<'_>) -> RecordLine {
    let parts = &record.parts;
    let total = record.header.total_bytes;
    let first = record.blocks().next();
    RecordLine {
        lsn: record.lsn.to_string(),
        end_lsn: record.end.to_string(),
        xid: record.header.xid,
        rmgr: rmgr::name(record.header.rmgr),
        record: record.record_type().name(record.version),
        total_bytes: total,
        record_bytes: total - parts.fpi_bytes,
        fpi_bytes: parts.fpi_bytes,
        fpi_count: parts.fpi_count,
        main_data_bytes: parts.main_data_bytes,
        block_data_bytes: parts.block_data_bytes,
        block_refs: record.blocks().count() as u32,
        tablespace: first.map(|block| block.relation.tablespace),
        database: first.map(|block| block.relation.database),
        relfilenode: first.map(|block| block.relation.relfilenode),
        fork: first.map(|block| {
            Fork::of(block.fork).map_or_else(|| block.fork.to_string(), |fork| fork.to_string())
        }),
        block: first.map(|block| block.block),
    }
}
