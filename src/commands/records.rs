//! `walstat records`: one row a record, written while the WAL is read.

mod rows;

use super::read::{self, Read};
use crate::args::records::{RecordsArgs, RecordsFormat};
use crate::args::values::When;
use crate::commands::problems::tell_first_problems;
use crate::commands::relation_files;
use crate::failure::{Exit, Failure};
use crate::output::inputs::refuse_to_overwrite;
use crate::output::{Stream, file_of, tell, wanted};
use crate::render::records::{Form, RowWriter};
use crate::render::visible::visible;
use rows::Rows;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use walstat_format::lsn::Lsn;
use walstat_names::catalog::names::Names;
use walstat_read::scan::observer::Observer;
use walstat_report::build;
use walstat_report::model::Problem;
use walstat_report::model::records::{Row, columns};

/// Runs the command.
pub fn run(args: &RecordsArgs) -> Result<Exit, Failure> {
    let output = file_of(args.output.as_deref());
    let form = form(args.format, output)?;
    refuse_to_overwrite(output, args.source.inputs().chain(args.names.inputs()))?;
    let (filters, named) = relation_files::filters(&args.source, &args.filters, &args.names)?;
    let named = named.map_or_else(|| relation_files::names(&args.source, &args.names), Ok)?;
    for warning in &named.1 {
        tell(&format!("walstat: {}", visible(warning)));
    }
    let output = Arc::new(Output::begin(output, form, args.blocks, named.0)?);
    let found = read::found(&args.source)?;
    let window = read::window(&args.source, &found)?;
    let observer = Observer::new(Rows::new(&output));
    let Read { plan, scanned, .. } =
        read::read_in(&args.source, found, window, &filters, &observer)?;
    let problems = scanned.problems;
    if let Ok(rows) = scanned.observer.into_inner::<Rows>() {
        rows.finish();
    }
    let told: Vec<Problem> = problems.iter().map(|it| build::problem(&plan, it)).collect();
    tell_first_problems(&told);
    output.end()?;
    Ok(if problems.is_empty() { Exit::Done } else { Exit::Damage })
}

/// What is written; a mistake where this build, or a terminal, cannot have it.
fn form(format: RecordsFormat, output: Option<&Path>) -> Result<Form, Failure> {
    let refused = |text: &str| Err(Failure::Usage(text.to_owned()));
    match format {
        RecordsFormat::Table => Ok(Form::Table),
        RecordsFormat::Csv => Ok(Form::Csv),
        RecordsFormat::Ndjson => Ok(Form::Ndjson),
        RecordsFormat::Parquet if wanted(When::Auto, output.is_some()) => {
            refused("--format parquet is not for a terminal, expected --output FILE")
        }
        #[cfg(feature = "parquet")]
        RecordsFormat::Parquet => Ok(Form::Parquet),
        #[cfg(not(feature = "parquet"))]
        RecordsFormat::Parquet => refused(
            "this walstat was built without --format parquet, expected table, csv or ndjson, or a build \
             with '--features parquet'",
        ),
    }
}

/// Where rows go, from all runs.
struct Output {
    writer: Mutex<Writer>,
    /// Writing has failed: nobody reads the rest.
    is_over: AtomicBool,
    /// Whether a row is a block reference.
    blocks: bool,
    /// Names of relations.
    names: Names,
}

/// Writes rows in WAL order.
struct Writer {
    out: Stream,
    /// `None` once all are written.
    rows: Option<RowWriter>,
    /// The last row written: if the scan starts again, rows up to it are not written twice.
    last: Option<(Lsn, u8)>,
    failed: Option<io::Error>,
}

impl Output {
    fn begin(to: Option<&Path>, form: Form, blocks: bool, names: Names) -> Result<Output, Failure> {
        let mut out = Stream::begin(to)?;
        let (rows, failed) = match RowWriter::begin(form, columns(blocks), &mut out) {
            Ok(rows) => (Some(rows), None),
            Err(error) => (None, Some(error)),
        };
        let is_over = AtomicBool::new(failed.is_some());
        let writer = Mutex::new(Writer { out, rows, last: None, failed });
        Ok(Output { writer, is_over, blocks, names })
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn write(&self, rows: impl Iterator<Item = Row>) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        rows.for_each(|row| writer.row(row));
        self.is_over.store(writer.failed.is_some(), Ordering::Relaxed);
    }

    /// All rows have come.
    fn end(&self) -> Result<(), Failure> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Writer { out, rows, failed, .. } = &mut *writer;
        let mut out = std::mem::replace(out, Stream::nothing());
        let rows = rows.take().filter(|_| failed.is_none());
        let failed = failed.take().or_else(|| rows?.end(&mut out).err());
        out.end(failed)
    }
}

impl Writer {
    fn row(&mut self, row: Row) {
        let Writer { out, rows: Some(rows), last, failed: failed @ None } = self else { return };
        let place = Some((row.lsn, row.block.map_or(0, |block| block.id)));
        if place > *last {
            *last = place;
            *failed = rows.row(&row, out).err();
        }
    }
}
