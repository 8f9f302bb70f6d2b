//! Rows of `walstat records` as one Parquet file: in groups of bounded size, each with its columns one after
//! the other, in pages compressed with Zstandard. What a group has at least and at most is said beside each
//! column, so that engines skip the groups that a question is not about.

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;
use walstat_report::model::records::{Column, Kind, Row, Value};

/// Rows of a group: as many as DuckDB, too, reads at a time.
const GROUP_ROWS: usize = 122_880;
/// Texts that are handed to the library at a time.
const BATCH: usize = 8192;

/// Writes groups of rows.
pub struct Groups {
    writer: SerializedFileWriter<Vec<u8>>,
    columns: Vec<Buffer>,
    rows: usize,
}

impl Groups {
    /// Begins a file with these columns.
    pub fn begin(columns: Vec<Column>) -> io::Result<Groups> {
        let schema = parse_message_type(&message(&columns)).map_err(io_error)?;
        let properties = Arc::new(properties(&columns));
        let writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), properties);
        let columns = columns.into_iter().map(Buffer::of).collect();
        Ok(Groups { writer: writer.map_err(io_error)?, columns, rows: 0 })
    }

    /// Takes a row.
    pub fn row(&mut self, row: &Row, out: &mut dyn Write) -> io::Result<()> {
        self.columns.iter_mut().for_each(|column| column.take(row));
        self.rows += 1;
        if self.rows < GROUP_ROWS { Ok(()) } else { self.write(out) }
    }

    /// All rows were taken.
    pub fn end(mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.rows > 0 {
            self.write(out)?;
        }
        let rest = self.writer.into_inner().map_err(io_error)?;
        out.write_all(&rest)
    }

    /// Writes a group.
    fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.rows = 0;
        self.group().map_err(io_error)?;
        self.writer.flush()?;
        // Places in the file are counted by the library: what it has written can go.
        out.write_all(&std::mem::take(self.writer.inner_mut()))
    }

    fn group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            if let Some(writer) = group.next_column()? {
                column.write(writer)?;
            }
        }
        group.close().map(|_| ())
    }
}

/// The schema, as Parquet writes it.
fn message(columns: &[Column]) -> String {
    let fields = columns.iter().map(|column| {
        let repetition = if column.has_nulls { "optional" } else { "required" };
        let (physical, logical) = match column.kind {
            Kind::Lsn => ("int64", " (INTEGER(64,false))"),
            Kind::Number => ("int32", " (INTEGER(32,false))"),
            Kind::Text => ("binary", " (STRING)"),
            Kind::Time => ("int64", " (TIMESTAMP(MICROS,true))"),
            Kind::Flag => ("boolean", ""),
        };
        format!("{repetition} {physical} {}{logical};", column.name)
    });
    format!("message walstat {{ {} }}", fields.collect::<Vec<_>>().join(" "))
}

fn properties(columns: &[Column]) -> WriterProperties {
    let by_lsn = SortingColumn { column_idx: 0, descending: false, nulls_first: false };
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("walstat {}", walstat_report::model::VERSION))
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_sorting_columns(Some(vec![by_lsn]));
    // What rises all the time has no values that come again.
    let rising = |column: &&Column| [Kind::Lsn, Kind::Time].contains(&column.kind);
    for column in columns.iter().filter(rising) {
        properties = properties
            .set_column_dictionary_enabled(column.name.into(), false)
            .set_column_encoding(column.name.into(), Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}

/// The fields of a column in the rows that are not written yet.
struct Buffer {
    column: Column,
    values: Values,
    /// For each row 1, or 0 where the field is empty; of a column that can be.
    levels: Vec<i16>,
}

/// Fields that are not empty.
enum Values {
    /// Of 64 bits.
    Wide(Vec<i64>),
    Number(Vec<i32>),
    Text(Texts),
    Flag(Vec<bool>),
}

/// Texts: each different one once.
#[derive(Default)]
struct Texts {
    different: Vec<ByteArray>,
    places: HashMap<Box<str>, u32>,
    fields: Vec<u32>,
}

impl Buffer {
    fn of(column: Column) -> Buffer {
        let values = match column.kind {
            Kind::Lsn | Kind::Time => Values::Wide(Vec::new()),
            Kind::Number => Values::Number(Vec::new()),
            Kind::Text => Values::Text(Texts::default()),
            Kind::Flag => Values::Flag(Vec::new()),
        };
        Buffer { column, values, levels: Vec::new() }
    }

    fn take(&mut self, row: &Row) {
        let field = (self.column.field)(row);
        if self.column.has_nulls {
            self.levels.push(field.is_some().into());
        }
        match (&mut self.values, field) {
            (Values::Wide(values), Some(Value::Lsn(lsn))) => values.push(lsn.0.cast_signed()),
            (Values::Wide(values), Some(Value::Time(time))) => values.push(time.0),
            (Values::Number(values), Some(Value::Number(number))) => {
                values.push(number.cast_signed());
            }
            (Values::Text(texts), Some(Value::Text(text))) => texts.push(text),
            (Values::Flag(values), Some(Value::Flag(flag))) => values.push(flag),
            // A field is of its column's kind.
            (_, _) => {}
        }
    }

    fn write(&mut self, mut writer: SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = std::mem::take(&mut self.levels);
        let levels = self.column.has_nulls.then_some(&levels[..]);
        match &mut self.values {
            Values::Wide(values) => all::<Int64Type>(&mut writer, values, levels)?,
            Values::Number(values) => all::<Int32Type>(&mut writer, values, levels)?,
            Values::Flag(values) => all::<BoolType>(&mut writer, values, levels)?,
            Values::Text(texts) => texts.write(&mut writer, levels)?,
        }
        writer.close()
    }
}

fn all<T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    values: &mut Vec<T::T>,
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    writer.typed::<T>().write_batch(values, levels, None)?;
    values.clear();
    Ok(())
}

impl Texts {
    fn push(&mut self, text: &str) {
        let place = self.places.get(text).copied().unwrap_or_else(|| {
            let place = self.different.len() as u32;
            self.different.push(ByteArray::from(text));
            self.places.insert(text.into(), place);
            place
        });
        self.fields.push(place);
    }

    /// Writes a batch after the other, so that the whole of them is never there.
    fn write(
        &mut self,
        writer: &mut SerializedColumnWriter<'_>,
        levels: Option<&[i16]>,
    ) -> Result<(), ParquetError> {
        let typed = writer.typed::<ByteArrayType>();
        let mut all = self.fields.iter().filter_map(|place| self.different.get(*place as usize));
        let mut batch = |texts: usize, levels: Option<&[i16]>| {
            let texts: Vec<ByteArray> = all.by_ref().take(texts).cloned().collect();
            typed.write_batch(&texts, levels, None)
        };
        match levels {
            None => {
                for fields in self.fields.chunks(BATCH) {
                    batch(fields.len(), None)?;
                }
            }
            Some(levels) => {
                for levels in levels.chunks(BATCH) {
                    let texts = levels.iter().filter(|level| **level == 1).count();
                    batch(texts, Some(levels))?;
                }
            }
        }
        *self = Texts::default();
        Ok(())
    }
}

/// A failure of the library; in memory nothing else fails.
fn io_error(error: ParquetError) -> io::Error {
    io::Error::other(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::file::statistics::Statistics;
    use std::borrow::Cow;
    use walstat_format::block::Parts;
    use walstat_format::lsn::Lsn;
    use walstat_format::version::VERSIONS;
    use walstat_report::model::records::columns;

    fn row(number: u64) -> Row {
        Row {
            // Beyond what a signed number can say.
            lsn: Lsn(u64::MAX - 1_000_000_000 + number * 48),
            end_lsn: Lsn(u64::MAX - 1_000_000_000 + number * 48 + 47),
            xid: 4_000_000_000,
            rmgr: Cow::Borrowed("Heap"),
            record: Cow::Borrowed("INSERT"),
            total_bytes: 47,
            parts: Parts::default(),
            block_refs: 0,
            block: None,
            hole_bytes: None,
            time: None,
            names: None,
            version: &VERSIONS[0],
        }
    }

    #[test]
    fn groups_are_bounded_and_say_what_they_hold() {
        let rows = 2 * GROUP_ROWS + 1;
        let mut groups = Groups::begin(columns(false)).expect("begun");
        let mut file = Vec::new();
        for number in 0..rows as u64 {
            groups.row(&row(number), &mut file).expect("taken");
            assert!(groups.rows < GROUP_ROWS && groups.writer.inner().is_empty() || number == 0);
        }
        groups.end(&mut file).expect("written");
        let bytes = file.len();
        let mut stored = tempfile::tempfile().expect("a file");
        stored.write_all(&file).expect("written");
        let reader = SerializedFileReader::new(stored).expect("Parquet");
        let metadata = reader.metadata();
        let groups: Vec<i64> = metadata.row_groups().iter().map(|group| group.num_rows()).collect();
        assert_eq!(groups, [GROUP_ROWS as i64, GROUP_ROWS as i64, 1]);
        let mut next = row(0).lsn.0;
        for group in metadata.row_groups() {
            let Some(Statistics::Int64(lsn)) = group.column(0).statistics() else { panic!("none") };
            assert_eq!(lsn.min_opt().map(|lsn| lsn.cast_unsigned()), Some(next));
            next += group.num_rows() as u64 * 48;
            assert_eq!(lsn.max_opt().map(|lsn| lsn.cast_unsigned()), Some(next - 48));
            let codecs = group.columns().iter().map(|column| column.compression());
            assert!(codecs.into_iter().all(|codec| matches!(codec, Compression::ZSTD(_))));
            let text =
                group.columns().iter().find(|column| column.column_path().string() == "rmgr");
            let encodings: Vec<Encoding> = text.expect("there").encodings().collect();
            assert!(encodings.contains(&Encoding::RLE_DICTIONARY), "{encodings:?}");
        }
        assert!(bytes < rows * 2, "{bytes} bytes of {rows} rows that are alike");
    }
}
