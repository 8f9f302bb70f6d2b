//! The columns of `walstat records`, in their order: names, kinds, and what stands in them.

use std::borrow::Cow;
use std::sync::Arc;
use walstat_format::block::{BlockRef, Image, Parts};
use walstat_format::fork::Fork;
use walstat_format::lsn::Lsn;
use walstat_format::version::Version;

pub use walstat_format::payload::Time;

/// A record; with `--blocks` one of the blocks that it refers to.
#[derive(Debug, Clone)]
pub struct Row {
    /// Where it starts.
    pub lsn: Lsn,
    /// After its last byte.
    pub end_lsn: Lsn,
    /// Transaction; 0: none.
    pub xid: u32,
    /// Resource manager.
    pub rmgr: Cow<'static, str>,
    /// Type.
    pub record: Cow<'static, str>,
    /// Total length.
    pub total_bytes: u32,
    /// Sums over its parts.
    pub parts: Parts,
    /// Blocks that it refers to.
    pub block_refs: u32,
    /// The block that the row is of; without `--blocks` the first.
    pub block: Option<BlockRef>,
    /// Bytes of the hole in that block's image; without `--blocks` they are not looked for.
    pub hole_bytes: Option<u32>,
    /// The time that it states, or that the last transaction before it has stated that ended.
    pub time: Option<Time>,
    /// What the block's relation is called.
    pub names: Option<Arc<RelationNames>>,
    /// The release that wrote it.
    pub version: &'static Version,
}

/// What a relation is called, and what it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationNames {
    /// The schema of its table, of its own where the table is not known.
    pub schema: Option<Box<str>>,
    /// The table that it belongs to.
    pub table: Option<Box<str>>,
    /// Its own name.
    pub relation: Box<str>,
    /// Whether it is an index.
    pub is_index: bool,
}

/// What stands in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A place in the WAL.
    Lsn,
    /// A number of up to 32 bits.
    Number,
    /// A word or a name.
    Text,
    /// A moment.
    Time,
    /// Yes or no.
    Flag,
}

/// What stands in a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'r> {
    /// Of [`Kind::Lsn`].
    Lsn(Lsn),
    /// Of [`Kind::Number`].
    Number(u32),
    /// Of [`Kind::Text`].
    Text(&'r str),
    /// Of [`Kind::Time`].
    Time(Time),
    /// Of [`Kind::Flag`].
    Flag(bool),
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What stands in it.
    pub kind: Kind,
    /// Whether a field can be empty.
    pub has_nulls: bool,
    /// Its field in a row.
    pub field: fn(&Row) -> Option<Value<'_>>,
}

/// What the columns of rows a block reference begin with, that others do not have.
pub const BLOCK_ID: &str = "block_id";

/// The columns of a row a record, or of a row a block reference.
pub fn columns(blocks: bool) -> Vec<Column> {
    // A block reference has its own `block_data_bytes`.
    let of_record = RECORD.iter().filter(|column| !blocks || column.name != BLOCK_DATA_BYTES);
    let of_block = BLOCK.iter().filter(|_| blocks);
    of_record.chain(PLACE).chain(of_block).copied().collect()
}

const BLOCK_DATA_BYTES: &str = "block_data_bytes";

const RECORD: &[Column] = &[
    column("lsn", Kind::Lsn, |row| Some(Value::Lsn(row.lsn))),
    column("end_lsn", Kind::Lsn, |row| Some(Value::Lsn(row.end_lsn))),
    column("xid", Kind::Number, |row| number(row.xid)),
    column("rmgr", Kind::Text, |row| Some(Value::Text(&row.rmgr))),
    column("record", Kind::Text, |row| Some(Value::Text(&row.record))),
    column("total_bytes", Kind::Number, |row| number(row.total_bytes)),
    column("record_bytes", Kind::Number, |row| number(row.total_bytes - row.parts.fpi_bytes)),
    column("fpi_bytes", Kind::Number, |row| number(row.parts.fpi_bytes)),
    column("fpi_count", Kind::Number, |row| number(row.parts.fpi_count)),
    column("main_data_bytes", Kind::Number, |row| number(row.parts.main_data_bytes)),
    column(BLOCK_DATA_BYTES, Kind::Number, |row| number(row.parts.block_data_bytes)),
    column("block_refs", Kind::Number, |row| number(row.block_refs)),
];

const PLACE: &[Column] = &[
    nullable("tablespace", Kind::Number, |row| number(row.block?.relation.tablespace)),
    nullable("database", Kind::Number, |row| number(row.block?.relation.database)),
    nullable("relfilenode", Kind::Number, |row| number(row.block?.relation.relfilenode)),
    nullable("fork", Kind::Text, |row| Some(Value::Text(fork_name(row.block?.fork)))),
    nullable("block", Kind::Number, |row| number(row.block?.block)),
    nullable("time", Kind::Time, |row| row.time.filter(has_date).map(Value::Time)),
    nullable("schema_name", Kind::Text, |row| text(row.names.as_ref()?.schema.as_deref())),
    nullable("table_name", Kind::Text, |row| text(row.names.as_ref()?.table.as_deref())),
    nullable("relation_name", Kind::Text, |row| text(Some(&row.names.as_ref()?.relation))),
    nullable("index_name", Kind::Text, |row| {
        row.names.as_ref().filter(|names| names.is_index).map(|names| Value::Text(&names.relation))
    }),
];

const BLOCK: &[Column] = &[
    nullable(BLOCK_ID, Kind::Number, |row| number(row.block?.id.into())),
    nullable("image_bytes", Kind::Number, |row| number(image_bytes(&row.block?))),
    nullable(BLOCK_DATA_BYTES, Kind::Number, |row| number(row.block?.data_bytes.into())),
    nullable("apply", Kind::Flag, |row| {
        Some(Value::Flag(row.version.image_flags.is_applied(image(row)?.info)))
    }),
    nullable("hole_bytes", Kind::Number, |row| row.hole_bytes.map(Value::Number)),
    nullable("codec", Kind::Text, |row| {
        let codec = row.version.image_flags.compression(image(row)?.info)?;
        Some(Value::Text(codec.name()))
    }),
];

const fn column(name: &'static str, kind: Kind, field: fn(&Row) -> Option<Value<'_>>) -> Column {
    Column { name, kind, has_nulls: false, field }
}

const fn nullable(name: &'static str, kind: Kind, field: fn(&Row) -> Option<Value<'_>>) -> Column {
    Column { name, kind, has_nulls: true, field }
}

fn number<'r>(number: u32) -> Option<Value<'r>> {
    Some(Value::Number(number))
}

fn text(text: Option<&str>) -> Option<Value<'_>> {
    text.map(Value::Text)
}

/// RFC 3339, UTC, microseconds; `None` for a time outside the years that can be written.
pub fn rfc3339(time: Time) -> Option<String> {
    let timestamp = jiff::Timestamp::from_microsecond(time.0).ok()?;
    Some(format!("{timestamp:.6}"))
}

/// Whether a time is one that has a date: a damaged record can state any.
fn has_date(time: &Time) -> bool {
    jiff::Timestamp::from_microsecond(time.0).is_ok()
}

fn image(row: &Row) -> Option<Image> {
    row.block?.image
}

/// Bytes of a block's image; 0 without one.
pub fn image_bytes(block: &BlockRef) -> u32 {
    block.image.map_or(0, |image| image.bytes.into())
}

/// Names of forks that a damaged header can have, too: four bits.
const FORK_NUMBERS: [&str; 16] =
    ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"];

/// The name of a fork; its number if it has none.
pub fn fork_name(number: u8) -> &'static str {
    let named = Fork::of(number).map(Fork::name);
    named.or_else(|| FORK_NUMBERS.get(usize::from(number)).copied()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_columns_have_one_name() {
        for blocks in [false, true] {
            let columns = columns(blocks);
            let names: BTreeSet<&str> = columns.iter().map(|column| column.name).collect();
            assert_eq!(names.len(), columns.len());
        }
    }

    #[test]
    fn a_fork_without_a_name_has_its_number() {
        assert_eq!([0, 2, 4, 15].map(fork_name), ["main", "vm", "4", "15"]);
    }
}
