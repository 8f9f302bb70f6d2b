//! Updates that are not HOT: why, what they cost, and what there would be without them.

use crate::advice::rules::{LEAST_SHARE, LOCK_BYTES};
use crate::model::Report;
use crate::model::filters::Filters;
use crate::model::update::UpdateCost;
use crate::model::who::WholeTableRow;
use walstat_analyse::ratios::ratio;

/// So many updates of a sort tell what one costs.
const SAMPLE: u64 = 100;

/// Tenths of a page that are left free at most.
const MOST_TENTHS: u64 = 5;

/// Updates that are not HOT, by what would cure them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(in crate::advice) struct Split {
    /// They changed an indexed column.
    pub(in crate::advice) indexed: f64,
    /// They found no room in their page, and changed no indexed column.
    pub(in crate::advice) no_room: f64,
    /// They found no room; whether they changed an indexed column, nobody knows.
    pub(in crate::advice) unknown: f64,
}

impl Split {
    /// Of a table. An update that stayed in its page and was not HOT changed an indexed column; among
    /// those that left it for want of room as many did as among those that had room.
    pub(in crate::advice) fn of(row: &WholeTableRow) -> Split {
        let had_room = row.updates.saturating_sub(row.updates_new_page);
        let stayed = had_room.saturating_sub(row.hot_updates) as f64;
        let moved = row.updates_new_page as f64;
        if moved > 0.0 && had_room < SAMPLE {
            return Split { indexed: stayed, no_room: 0.0, unknown: moved };
        }
        let share = stayed / had_room.max(1) as f64;
        let indexed = stayed + moved * share;
        Split { indexed, no_room: moved * (1.0 - share), unknown: 0.0 }
    }

    fn add(&mut self, other: Split) {
        self.indexed += other.indexed;
        self.no_room += other.no_room;
        self.unknown += other.unknown;
    }

    /// Whether room cures a good part of them, or may.
    pub(in crate::advice) fn has_use_of_room(&self) -> bool {
        let moved = self.no_room + self.unknown;
        moved > 0.0 && moved >= LEAST_SHARE * (moved + self.indexed)
    }

    /// What helps, what cures more first; both where nothing is known.
    pub(in crate::advice) fn choose(&self, indexes: String, room: String) -> Vec<String> {
        let indexes = Some(indexes).filter(|_| self.advises_indexes());
        let room = Some(room).filter(|_| self.advises_room());
        let mut cures: Vec<String> = indexes.into_iter().chain(room).collect();
        if self.no_room + self.unknown > self.indexed {
            cures.reverse();
        }
        cures
    }

    /// Whether to drop indexes is among what helps.
    pub(in crate::advice) fn advises_indexes(&self) -> bool {
        *self == Split::default() || self.has_indexed()
    }

    /// The same of room.
    pub(in crate::advice) fn advises_room(&self) -> bool {
        *self == Split::default() || self.has_use_of_room()
    }

    /// Whether anybody changes an indexed column, as far as is known.
    pub(in crate::advice) fn has_indexed(&self) -> bool {
        let all = self.indexed + self.no_room + self.unknown;
        self.indexed > 0.0 && self.indexed >= LEAST_SHARE * all
    }
}

pub(in crate::advice) fn split_of(rows: &[&WholeTableRow]) -> Split {
    let mut all = Split::default();
    rows.iter().for_each(|row| all.add(Split::of(row)));
    all
}

/// Whether filters leave out records that belong to an update: of indexes, pruning, locks.
fn is_partly_seen(filters: &Filters) -> bool {
    let a_relation_alone = filters.relation.is_some() && filters.table != Some(true);
    let a_place = filters.block.is_some() || filters.fork.is_some();
    let a_kind = !filters.rmgr.is_empty() || !filters.record.is_empty();
    a_relation_alone || a_place || a_kind || filters.fullpage == Some(true)
}

/// What a HOT update of a table costs without images, and any other, where there were enough of them.
pub(in crate::advice) fn prices(
    report: &Report,
    row: &WholeTableRow,
) -> (Option<f64>, Option<f64>) {
    if is_partly_seen(&report.input.filters) {
        return (None, None);
    }
    let costs = &row.update_bytes;
    let each = |cost: &UpdateCost| {
        let bytes = cost.total_bytes.saturating_sub(cost.fpi_bytes);
        ratio(bytes, cost.updates).filter(|_| cost.updates >= SAMPLE)
    };
    (each(&costs.hot), each(&costs.non_hot))
}

/// Bytes that HOT updates of these tables would have saved at most: how many of them a page has room for, and
/// which indexes can be dropped, nobody knows. `None` where it is not known what an update costs.
pub(in crate::advice) fn saved(report: &Report, rows: &[&WholeTableRow]) -> Option<u64> {
    if is_partly_seen(&report.input.filters) {
        return None;
    }
    let sum: f64 = rows.iter().map(|row| saved_of(report, row)).sum();
    Some(sum.round() as u64).filter(|sum| *sum > 0)
}

/// The same of one: index entries of updates that its cures may make HOT, with what vacuum writes of them;
/// where it is room that they want, the lock of the row before it is moved, and what its own record, with the
/// image of the page that the row goes to, has more than that of a HOT one without an image. The image of the
/// page that the row leaves stands with that lock, and comes all the same, but for the room in it.
pub(in crate::advice) fn saved_of(report: &Report, row: &WholeTableRow) -> f64 {
    let are_known = row.update_bytes.non_hot.updates > 0;
    let holes = if are_known { holes(report, row, cured_by_room(row)) } else { 0.0 };
    saved_of_updates(row) + holes
}

/// Updates that found no room, if room cures a good part of those that were not HOT.
fn cured_by_room(row: &WholeTableRow) -> f64 {
    let split = Split::of(row);
    if split.has_use_of_room() { split.no_room + split.unknown } else { 0.0 }
}

/// The same without what is smaller of images that are written anyway.
pub(in crate::advice) fn saved_of_updates(row: &WholeTableRow) -> f64 {
    let split = Split::of(row);
    let moved = cured_by_room(row);
    let changed = if split.has_indexed() { split.indexed } else { 0.0 };
    let (hot, non_hot) = (&row.update_bytes.hot, &row.update_bytes.non_hot);
    if non_hot.updates == 0 {
        return 0.0;
    }
    let each = |bytes: u64, updates: u64| bytes as f64 / updates.max(1) as f64;
    let index = each(non_hot.index_bytes, non_hot.updates);
    let lock = each(non_hot.lock_bytes, non_hot.updates).min(LOCK_BYTES as f64);
    let plain = each(hot.heap_bytes.saturating_sub(hot.fpi_bytes), hot.updates);
    let more = each(non_hot.heap_bytes, non_hot.updates) - plain;
    let more = if hot.updates >= SAMPLE { more.max(0.0) } else { 0.0 };
    let vacuum = each(row.vacuum_bytes, row.updates + row.deletes);
    (moved + changed) * (index + vacuum) + moved * (lock + more)
}

/// Images of the indexes of a table that updates onto another page bring at most, each one in every index,
/// where no other update puts an entry there.
pub(in crate::advice) fn index_images_of_moved(row: &WholeTableRow) -> f64 {
    let moved = row.updates_new_page as f64;
    let images = row.indexes.iter().map(|index| {
        let numbers = &index.part.numbers;
        numbers.fpi_bytes as f64 * (moved / numbers.fpi_count.max(1) as f64).min(1.0)
    });
    images.sum()
}

/// What images of the table are smaller by where rows are to have room: it is left out of them.
fn holes(report: &Report, row: &WholeTableRow, moved: f64) -> f64 {
    let images = row.heap.as_ref().map_or(0, |heap| heap.numbers.fpi_bytes);
    if moved > 0.0 { images as f64 * tenths_for(report, row) as f64 / 10.0 } else { 0.0 }
}

/// Room for a row at least, of a table, in tenths of a page.
pub(in crate::advice) fn tenths_for(report: &Report, row: &WholeTableRow) -> u64 {
    let page_bytes = u64::from(report.data_page_bytes());
    (logged_row_bytes(row) * 10).div_ceil(page_bytes).clamp(1, MOST_TENTHS)
}

/// What a row is logged with, in the mean. Those that are inserted, as those that are written anew with their
/// table, are among them.
fn logged_row_bytes(row: &WholeTableRow) -> u64 {
    let heap_bytes = row.heap.as_ref().map_or(0, |heap| heap.block_data_bytes);
    heap_bytes / (row.updates_new_page + row.inserts).max(1)
}

/// What a row takes of a page beside what is logged of it: most of its header, and its item pointer.
const ROW_OVERHEAD_BYTES: u64 = 18 + 4;

/// How many rows of a table a page has room for.
pub(in crate::advice) fn rows_of_page(report: &Report, row: &WholeTableRow) -> f64 {
    let page_bytes = f64::from(report.data_page_bytes());
    page_bytes / (logged_row_bytes(row) + ROW_OVERHEAD_BYTES) as f64
}
