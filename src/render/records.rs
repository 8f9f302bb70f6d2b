//! `walstat records`: one row a record, for SQL and for whoever looks closer.

use super::csv;
use super::number::grouped;
use super::time::moment;
use super::visible::visible;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, Write};

/// A record. The place is that of its first block; null without any.
#[derive(Debug, Clone, Serialize)]
pub struct RecordLine {
    /// Where it starts.
    pub lsn: String,
    /// After its last byte.
    pub end_lsn: String,
    /// Transaction; 0: none.
    pub xid: u32,
    /// Resource manager.
    pub rmgr: Cow<'static, str>,
    /// Type.
    pub record: Cow<'static, str>,
    /// Total length.
    pub total_bytes: u32,
    /// Without images.
    pub record_bytes: u32,
    /// Images.
    pub fpi_bytes: u32,
    /// Images.
    pub fpi_count: u32,
    /// Main data.
    pub main_data_bytes: u32,
    /// Block data.
    pub block_data_bytes: u32,
    /// Blocks that it refers to.
    pub block_refs: u32,
    /// Tablespace of the first.
    pub tablespace: Option<u32>,
    /// Its database.
    pub database: Option<u32>,
    /// Its file number.
    pub relfilenode: Option<u32>,
    /// Its fork.
    pub fork: Option<String>,
    /// Its number.
    pub block: Option<u32>,
    /// The time that it states, or that the last transaction before it has stated that ended.
    pub time: Option<String>,
    /// Schema of the relation that the first block is of.
    pub schema: Option<String>,
    /// Name of that relation, where it is known.
    pub relation: Option<String>,
}

/// Formats of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Table,
    /// With headings.
    Csv,
    /// One object a line.
    Ndjson,
}

/// The keys of a row, in their order.
const KEYS: &str = "lsn,end_lsn,xid,rmgr,record,total_bytes,record_bytes,fpi_bytes,fpi_count,\
                    main_data_bytes,block_data_bytes,block_refs,tablespace,database,relfilenode,\
                    fork,block,time,schema,relation";

/// Writes what comes before all rows.
pub fn head(form: Form, out: &mut dyn Write) -> io::Result<()> {
    match form {
        Form::Table => writeln!(
            out,
            "{:<12} {:<19} {:>10} {:<24} {:>8} {:>8} {:<30}",
            "LSN", "time", "xid", "record", "size", "FPI", "block"
        ),
        Form::Csv => writeln!(out, "{KEYS}"),
        Form::Ndjson => Ok(()),
    }
}

/// Writes a row.
pub fn row(line: &RecordLine, form: Form, out: &mut dyn Write) -> io::Result<()> {
    match form {
        Form::Table => table(line, out),
        Form::Csv => csv_row(line, out),
        Form::Ndjson => {
            serde_json::to_writer(&mut *out, line).map_err(io::Error::from)?;
            writeln!(out)
        }
    }
}

fn table(line: &RecordLine, out: &mut dyn Write) -> io::Result<()> {
    let place = match (line.tablespace, line.database, line.relfilenode, line.block) {
        (Some(tablespace), Some(database), Some(file), Some(block)) => {
            let fork = line.fork.as_deref().filter(|fork| *fork != "main").unwrap_or_default();
            let more = match line.block_refs {
                0 | 1 => String::new(),
                count => format!(" +{}", count - 1),
            };
            let file = match (&line.schema, &line.relation) {
                (Some(schema), Some(name)) => format!("{schema}.{name}"),
                (None, Some(name)) => name.clone(),
                (_, None) => format!("{tablespace}/{database}/{file}"),
            };
            format!("{} {fork}{block}{more}", visible(&file))
        }
        _ => String::new(),
    };
    let name = format!("{}/{}", line.rmgr, line.record);
    let text = format!(
        "{:<12} {:<19} {:>10} {name:<24} {:>8} {:>8} {place}",
        line.lsn,
        moment(line.time.as_deref()),
        line.xid,
        grouped(line.record_bytes.into()),
        grouped(line.fpi_bytes.into()),
    );
    writeln!(out, "{}", text.trim_end())
}

/// Only a name may need quotes.
fn csv_row(line: &RecordLine, out: &mut dyn Write) -> io::Result<()> {
    let number = |number: Option<u32>| number.map_or_else(String::new, |number| number.to_string());
    let name = |name: &Option<String>| name.as_deref().map_or_else(String::new, csv::quoted);
    writeln!(
        out,
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
        line.lsn,
        line.end_lsn,
        line.xid,
        line.rmgr,
        line.record,
        line.total_bytes,
        line.record_bytes,
        line.fpi_bytes,
        line.fpi_count,
        line.main_data_bytes,
        line.block_data_bytes,
        line.block_refs,
        number(line.tablespace),
        number(line.database),
        number(line.relfilenode),
        line.fork.as_deref().unwrap_or_default(),
        number(line.block),
        line.time.as_deref().unwrap_or_default(),
        name(&line.schema),
        name(&line.relation),
    )
}
