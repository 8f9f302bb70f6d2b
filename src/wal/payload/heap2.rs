//! Changes of several rows, and of rows that nobody sees any more (Heap2 in
//! `src/include/access/heapam_xlog.h`): multi-insertions, marks in the visibility map, locks of
//! newer versions. What vacuum and pruning take away is in [`super::prune`].

use super::heap::INIT_PAGE;
use crate::wal::block::RelFileLocator;
use crate::wal::cursor::{Cursor, List};
use crate::wal::data_page::heap_tuple::{ItemPointer, TupleBody};
use crate::wal::version::{Release, Version};

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
    (super::prune::FIRST..=VISIBLE).contains(&opcode)
}

/// Whether a record prunes a page as it is read, or by vacuum up to 16: what vacuum writes later has
/// types of its own.
pub fn prunes_alone(opcode: u8) -> bool {
    opcode == super::prune::FIRST
}

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

/// A page is all-visible; block 0 is its page of the visibility map, block 1 the page itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visible {
    /// The newest xid that must be visible to all.
    pub conflict_xid: u32,
    /// What is set: 0x01 all-visible, 0x02 all-frozen (9.6 and later).
    pub flags: u8,
}

impl Visible {
    /// Reads the main data; `None` if it is too short.
    pub fn parse(main_data: &[u8], version: &Version) -> Option<Visible> {
        let mut cursor = Cursor::new(main_data);
        let conflict_xid = cursor.field()?;
        let flags = if version.since(Release::V9_6) { cursor.field()? } else { 0x01 };
        Some(Visible { conflict_xid, flags })
    }
}

/// Which command of a transaction changed a catalog row (wal_level logical).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewCid {
    /// The top-level transaction.
    pub top_xid: u32,
    /// The catalog's file.
    pub relation: RelFileLocator,
    /// The row.
    pub tid: ItemPointer,
}

impl NewCid {
    /// Reads the main data; `None` if it is too short.
    pub fn parse(main_data: &[u8]) -> Option<NewCid> {
        let mut cursor = Cursor::new(main_data);
        let top_xid = cursor.field()?;
        // cmin, cmax and the combo command id.
        cursor.take(12)?;
        let relation = cursor.field()?;
        Some(NewCid { top_xid, relation, tid: ItemPointer::parse(cursor.rest())? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wal::version::VERSIONS;

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
    }

    #[test]
    fn in_a_new_page_rows_count_from_1() {
        let insert = MultiInsert::parse(0xD0, &[0, 0, 2, 0]).expect("two");
        let offsets: Vec<_> = insert.tuples(&ROWS).map(|(offset, _)| offset).collect();
        assert_eq!(offsets, [1, 2]);
    }

    #[test]
    fn marks_have_flags_since_9_6() {
        let want = |flags| Some(Visible { conflict_xid: 7, flags });
        assert_eq!(Visible::parse(&[7, 0, 0, 0], &VERSIONS[0]), want(1));
        assert_eq!(Visible::parse(&[7, 0, 0, 0, 3], &VERSIONS[7]), want(3));
        assert_eq!(Visible::parse(&[7, 0, 0, 0], &VERSIONS[7]), None);
    }

    #[test]
    fn a_command_id_names_the_row() {
        let mut data = [0u8; 34];
        (data[0], data[16], data[30], data[32]) = (7, 9, 4, 5);
        let cid = NewCid::parse(&data).expect("34 bytes");
        assert_eq!((cid.top_xid, cid.relation.tablespace), (7, 9));
        assert_eq!(cid.tid, ItemPointer { block: 4, offset: 5 });
        assert_eq!(NewCid::parse(&data[..33]), None);
    }
}
