//! Changes of several rows, and of rows that nobody sees any more (Heap2 in
//! `src/include/access/heapam_xlog.h`): multi-insertions, marks in the visibility map, locks of
//! newer versions. What vacuum and pruning take away is in [`super::prune`].

use super::heap::INIT_PAGE;
use crate::cursor::{Cursor, List, at};
use crate::data_page::heap_tuple::TupleBody;

/// Named as in 17 and later; `CLEAN` up to 13, `PRUNE` in 14 to 16.
pub(super) const PRUNE_ON_ACCESS: u8 = 0x10;
/// Named as in 17 and later; `FREEZE_PAGE` up to 13, `VACUUM` in 14 to 16.
pub(super) const PRUNE_VACUUM_SCAN: u8 = 0x20;
/// Named as in 17 and later; `CLEANUP_INFO` up to 13, `FREEZE_PAGE` in 14 to 16.
pub(super) const PRUNE_VACUUM_CLEANUP: u8 = 0x30;
/// Types of pruning, vacuum and freezing, the names of which differ: what [`super::prune`] reads. Pages are
/// also pruned by the statements that come across them.
pub const PRUNES: [u8; 3] = [PRUNE_ON_ACCESS, PRUNE_VACUUM_SCAN, PRUNE_VACUUM_CLEANUP];
/// Pages of the visibility map are marked (up to 18).
pub const VISIBLE: u8 = 0x40;
/// Several rows are inserted into one page.
pub const MULTI_INSERT: u8 = 0x50;
/// The newer version of a locked row is locked: [`super::heap::Lock`].
pub const LOCK_UPDATED: u8 = 0x60;
/// Which command of a transaction changed a catalog row, for logical decoding.
pub const NEW_CID: u8 = 0x70;

/// Whether a record takes rows away that nobody sees any more, freezes rows, or marks their page:
/// the kinds of [`super::prune`] and [`VISIBLE`], whatever they are called in the release.
pub fn cleans(opcode: u8) -> bool {
    opcode == VISIBLE || PRUNES.contains(&opcode)
}

/// Whether a record prunes a page that a statement came across, or up to 16 vacuum too: what vacuum
/// writes later has types of its own.
pub fn prunes_alone(opcode: u8) -> bool {
    opcode == PRUNE_ON_ACCESS
}

/// Bytes of `xl_multi_insert_tuple`, before each row.
const ROW_HEADER_BYTES: usize = 7;

/// Several rows are inserted; the rows are the data of block 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MultiInsert<'a> {
    /// [`super::heap::insert_flag`].
    pub flags: u8,
    /// How many.
    pub count: u16,
    /// Their line pointers; none where the page is made anew, for then they are 1 to `count`.
    offsets: Option<List<'a, u16>>,
}

impl<'a> MultiInsert<'a> {
    /// Reads the main data; `None` if it is too short.
    pub fn parse(info: u8, main_data: &'a [u8]) -> Option<MultiInsert<'a>> {
        let mut cursor = Cursor::new(main_data);
        let flags = cursor.field()?;
        cursor.take(1)?;
        let count = cursor.field()?;
        let offsets = match info & INIT_PAGE {
            0 => Some(cursor.list(u32::from(count))?),
            _ => None,
        };
        Some(MultiInsert { flags, count, offsets })
    }

    /// The line pointers of the rows, in order.
    pub fn offsets(&self) -> impl Iterator<Item = u16> + use<'a> {
        let (count, offsets) = (self.count, self.offsets);
        let numbered = (1..=count).filter(move |_| offsets.is_none());
        numbered.chain(offsets.unwrap_or_default().iter())
    }

    /// Where in the data of block 0 the rows end; `None`: the data end before.
    pub fn rows_end(&self, block_data: &[u8]) -> Option<usize> {
        (0..self.count).try_fold(0_usize, |end, _| {
            let begin = end.next_multiple_of(2);
            let bytes: u16 = at(block_data, begin)?;
            let end = begin + ROW_HEADER_BYTES + usize::from(bytes);
            (end <= block_data.len()).then_some(end)
        })
    }

    /// Line pointers and rows, from the data of block 0; it ends early where the data do.
    pub fn tuples(&self, block_data: &'a [u8]) -> impl Iterator<Item = (u16, TupleBody<'a>)> {
        let mut cursor = Cursor::new(block_data);
        let bytes = block_data.len();
        self.offsets().map_while(move |offset| {
            // Each begins at an even place of the data.
            cursor.take((bytes - cursor.rest().len()) % 2)?;
            Some((offset, multi_insert_tuple(&mut cursor)?))
        })
    }
}

/// `xl_multi_insert_tuple` and its row.
fn multi_insert_tuple<'a>(cursor: &mut Cursor<'a>) -> Option<TupleBody<'a>> {
    let bytes: u16 = cursor.field()?;
    let (infomask2, infomask) = cursor.field()?;
    let hoff = cursor.field()?;
    let beyond = cursor.take(usize::from(bytes))?;
    TupleBody { infomask2, infomask, hoff, beyond }.checked()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two rows of 3 and 2 bytes of columns; the second begins at an even place.
    const ROWS: [u8; 23] = [
        4, 0, 1, 0, 0, 0, 24, 0xEE, b'o', b'n', b'e', 0xDD, 3, 0, 1, 0, 0, 0, 24, 0xEE, b't', b'w',
        0xDD,
    ];

    #[test]
    fn rows_of_a_multi_insertion_begin_at_even_places() {
        let main = [8, 0xEE, 2, 0, 7, 0, 9, 0];
        let insert = MultiInsert::parse(0x50, &main).expect("two");
        let rows: Vec<_> =
            insert.tuples(&ROWS).map(|(offset, body)| (offset, body.data())).collect();
        assert_eq!(rows, [(7, &b"one"[..]), (9, &b"tw"[..])]);
        assert_eq!(MultiInsert::parse(0x50, &main[..7]), None);
        assert_eq!(insert.tuples(&ROWS[..20]).count(), 1);
        assert_eq!((insert.rows_end(&ROWS), insert.rows_end(&ROWS[..21])), (Some(22), None));
    }

    #[test]
    fn in_a_new_page_rows_count_from_1() {
        let insert = MultiInsert::parse(0xD0, &[0, 0, 2, 0]).expect("two");
        let offsets: Vec<_> = insert.tuples(&ROWS).map(|(offset, _)| offset).collect();
        assert_eq!(offsets, [1, 2]);
    }
}
