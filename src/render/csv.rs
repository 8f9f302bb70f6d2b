//! `--format csv`: one table, one line a row, the keys of the JSON as headings.

use crate::report::model::{Report, Row};
use std::io::{self, Write};

const SUMS: [&str; 12] = [
    "count",
    "record_bytes",
    "fpi_bytes",
    "total_bytes",
    "main_data_bytes",
    "block_data_bytes",
    "header_bytes",
    "fpi_count",
    "fpi_records",
    "fpi_apply_count",
    "fpi_check_count",
    "uncompressed_fpi_bytes",
];

fn sums(row: &Row) -> [u64; 12] {
    [
        row.count,
        row.record_bytes,
        row.fpi_bytes,
        row.total_bytes,
        row.main_data_bytes,
        row.block_data_bytes,
        row.header_bytes,
        row.fpi_count,
        row.fpi_records,
        row.fpi_apply_count,
        row.fpi_check_count,
        row.uncompressed_fpi_bytes,
    ]
}

/// Writes the table of record types if there is one, else that of resource managers.
pub fn render(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    if let Some(records) = &report.records {
        writer.write_record(["rmgr", "record", "info"].into_iter().chain(SUMS))?;
        for line in records {
            let labels = [line.rmgr.clone(), line.record.clone(), line.info.clone()];
            let numbers = sums(&line.row).map(|n| n.to_string());
            writer.write_record(labels.into_iter().chain(numbers))?;
        }
    } else if let Some(rmgrs) = &report.rmgrs {
        writer.write_record(["rmgr", "id"].into_iter().chain(SUMS))?;
        for line in rmgrs {
            let labels = [line.rmgr.clone(), line.id.to_string()];
            let numbers = sums(&line.row).map(|n| n.to_string());
            writer.write_record(labels.into_iter().chain(numbers))?;
        }
    }
    writer.flush()
}
