//! `walstat records`: one row a record, written while the WAL is read.

use super::read::{self, Read};
use crate::args::records::{RecordsArgs, RecordsFormat};
use crate::commands::problems::PROBLEMS_TOLD;
use crate::commands::relation_files;
use crate::failure::{Exit, Failure};
use crate::output::inputs::refuse_to_overwrite;
use crate::output::{Stream, file_of, tell};
use crate::render::closing::problem_line;
use crate::render::records::{Form, RecordLine, head, row};
use crate::render::visible::visible;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use walstat_analyse::deferred_log;
use walstat_format::fork::Fork;
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;
use walstat_format::record::Record;
use walstat_format::rmgr;
use walstat_names::catalog::names::Names;
use walstat_read::scan::observe::Observe;
use walstat_read::scan::observer::Observer;
use walstat_report::build::{self, rfc3339};

/// How many rows are held back at most, in case a server was writing and they have to be read again.
const HELD_MAX: usize = 500_000;

/// Runs the command.
pub fn run(args: &RecordsArgs) -> Result<Exit, Failure> {
    let output = file_of(args.output.as_deref());
    refuse_to_overwrite(output, args.source.inputs().chain(args.names.inputs()))?;
    let (filters, named) = relation_files::filters(&args.source, &args.filters, &args.names)?;
    let named = named.map_or_else(|| relation_files::names(&args.source, &args.names), Ok)?;
    for warning in &named.1 {
        tell(&format!("walstat: {}", visible(warning)));
    }
    let form = match args.format {
        RecordsFormat::Table => Form::Table,
        RecordsFormat::Csv => Form::Csv,
        RecordsFormat::Ndjson => Form::Ndjson,
    };
    let mut writer = Writer { out: Stream::begin(output)?, form, last: None, failed: None };
    writer.failed = head(form, &mut writer.out).err();
    let is_over = AtomicBool::new(false);
    let shared = Arc::new(Shared { writer: Mutex::new(writer), is_over, names: named.0 });
    let prototype = Rows::new(&shared);
    let found = read::found(&args.source)?;
    let window = read::window(&args.source, &found)?;
    let observer = Observer::new(prototype);
    let Read { plan, scanned, .. } =
        read::read_in(&args.source, found, window, &filters, &observer)?;
    let problems = scanned.problems;
    if let Ok(rows) = scanned.observer.into_inner::<Rows>() {
        rows.finish();
    }
    for problem in problems.iter().take(PROBLEMS_TOLD) {
        tell(&problem_line(&build::problem(&plan, problem)));
    }
    let more = problems.len().saturating_sub(PROBLEMS_TOLD);
    if more > 0 {
        tell(&format!("PROBLEM {more} more: walstat check tells all"));
    }
    let mut writer = shared.writer.lock().unwrap_or_else(PoisonError::into_inner);
    let failed = writer.failed.take();
    let out = std::mem::replace(&mut writer.out, Stream::nothing());
    out.end(failed)?;
    Ok(if problems.is_empty() { Exit::Done } else { Exit::Damage })
}

/// Writes rows in WAL order.
struct Writer {
    out: Stream,
    form: Form,
    /// The last record written: if the scan starts again, records up to it are not written twice.
    last: Option<Lsn>,
    failed: Option<io::Error>,
}

/// The output, which all runs write to.
struct Shared {
    writer: Mutex<Writer>,
    /// Writing has failed: nobody reads the rest.
    is_over: AtomicBool,
    /// Names of relations.
    names: Names,
}

impl Shared {
    fn write(&self, rows: impl Iterator<Item = Row>) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Writer { out, form, last, failed } = &mut *writer;
        for Row { lsn, line, .. } in rows {
            if failed.is_some() || last.is_some_and(|last| lsn <= last) {
                continue;
            }
            *last = Some(lsn);
            *failed = row(&line, *form, out).err();
        }
        self.is_over.store(failed.is_some(), Ordering::Relaxed);
    }
}

/// A record.
#[derive(Clone)]
struct Row {
    lsn: Lsn,
    line: RecordLine,
}

/// Rows that may not be written yet.
#[derive(Clone)]
struct Rows {
    rows: Vec<Row>,
    /// How many of them come before the first time that this run states: theirs is told by the run before.
    untimed: usize,
    /// The last time that a transaction has stated, counted or not.
    time: Option<Time>,
    /// How many of them lie before the first place where records are missing. If a server was writing
    /// there, the scan starts again, and finds the missing records.
    sure: Option<usize>,
    shared: Arc<Shared>,
}

impl Rows {
    fn new(shared: &Arc<Shared>) -> Rows {
        let shared = Arc::clone(shared);
        Rows { rows: Vec::new(), untimed: 0, time: None, sure: None, shared }
    }

    /// Takes note of the time that a record states, if it does.
    fn tick(&mut self, record: &Record<'_>) {
        if let Some((time, _)) = deferred_log::stated_time(record) {
            if self.time.is_none() {
                self.untimed = self.rows.len();
            }
            self.time = Some(time);
        }
    }

    /// The last row has come.
    fn finish(self) {
        self.shared.write(self.rows.into_iter());
    }
}

impl Observe for Rows {
    const KEEPS: bool = true;

    fn observe(&mut self, record: &Record<'_>) {
        if !self.shared.is_over.load(Ordering::Relaxed) {
            self.tick(record);
            let line = line(record, self.time, &self.shared.names);
            self.rows.push(Row { lsn: record.lsn, line });
        }
    }

    fn passed_over(&mut self, record: &Record<'_>) {
        self.tick(record);
    }

    fn lost(&mut self, _range: Range<Lsn>) {
        self.sure.get_or_insert(self.rows.len());
    }

    fn merge(&mut self, mut later: Rows) {
        let sure = later.sure.map(|sure| self.rows.len() + sure);
        self.sure = self.sure.or(sure);
        let untimed = if later.time.is_some() { later.untimed } else { later.rows.len() };
        if self.time.is_none() {
            self.untimed = self.rows.len() + untimed;
        } else if let Some(time) = self.time.and_then(rfc3339) {
            let rows = later.rows.iter_mut().take(untimed);
            rows.for_each(|row| row.line.time = Some(time.clone()));
        }
        self.time = later.time.or(self.time);
        self.rows.append(&mut later.rows);
    }

    fn settle(&mut self) {
        let sure = match self.sure {
            Some(sure) if self.rows.len() - sure.min(self.rows.len()) < HELD_MAX => sure,
            _ => self.rows.len(),
        };
        let sure = sure.min(self.rows.len());
        self.shared.write(self.rows.drain(..sure));
        self.sure = self.sure.map(|_| 0);
    }
}

fn line(record: &Record<'_>, time: Option<Time>, names: &Names) -> RecordLine {
    let parts = &record.parts;
    let total = record.header.total_bytes;
    let first = record.blocks().next();
    let relation = first.and_then(|block| names.relation(block.relation));
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
        time: time.and_then(rfc3339),
        schema: relation.and_then(|relation| relation.schema.as_deref().map(str::to_owned)),
        relation: relation.map(|relation| relation.name.to_string()),
    }
}
