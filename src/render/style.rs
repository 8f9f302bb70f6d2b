//! How results look to people: what was asked for, and the form of every table.

use super::number::human_bytes;
use comfy_table::{CellAlignment, Table, presets};

/// Bars from low to high.
pub const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// How to show a report to people.
#[derive(Debug, Clone, Copy)]
pub struct Show {
    /// Bytes as `3.42 MB` rather than as digits.
    pub human: bool,
    /// Bars may be drawn.
    pub bars: bool,
    /// Add the column of main data and headers alone.
    pub main_data: bool,
    /// Say more.
    pub verbose: bool,
    /// Columns that a line may have.
    pub width: usize,
}

impl Show {
    /// Bytes in the form asked for.
    pub fn bytes(&self, bytes: u64) -> String {
        if self.human { human_bytes(bytes) } else { bytes.to_string() }
    }
}

/// A table without lines: the first column to the left, all others to the right.
pub fn plain(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(headings.iter().copied());
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 1));
        if index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Sets a column to the left.
pub fn left(table: &mut Table, column: usize) {
    if let Some(column) = table.column_mut(column) {
        column.set_cell_alignment(CellAlignment::Left);
    }
}
