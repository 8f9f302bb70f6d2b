//! Lists and entries of SP-GiST indexes, all of them in the main data.

use super::{Checked, each_is_possible, is_possible, is_redone, whole};
use crate::contradiction::{BlockFault, Contradiction};
use crate::cursor::{Cursor, List, at};
use crate::payload::spgist::{self, opcode};
use crate::record::Record;

/// Bytes before the columns of a leaf entry, and before the nodes of an inner one.
const LEAF_BYTES: usize = 12;
const INNER_BYTES: usize = 8;

pub(super) fn checked(record: &Record<'_>, main: &[u8]) -> Checked {
    match record.header.rmgr_info() {
        opcode::ADD_LEAF => add_leaf(record, main),
        opcode::MOVE_LEAFS => move_leafs(record, main),
        opcode::ADD_NODE => add_node(record, main),
        opcode::SPLIT_TUPLE => split_tuple(record, main),
        opcode::PICKSPLIT => picksplit(record, main),
        opcode::VACUUM_LEAF => vacuum_leaf(record, main),
        opcode::VACUUM_ROOT if is_redone(record, 0) => {
            super::deleted(&whole(list_at(main, 12, whole(at(main, 0))?))?)
        }
        opcode::VACUUM_REDIRECT if is_redone(record, 0) => {
            whole(spgist::redirects(main, record.version)).map(|_| ())
        }
        _ => Ok(()),
    }
}

fn list_at(main: &[u8], from: usize, count: u16) -> Option<List<'_, u16>> {
    Cursor::new(main.get(from..)?).list(count.into())
}

/// Whether redo changes a page: it is made anew where the byte at `is_new` says so, or not restored.
fn changes(record: &Record<'_>, main: &[u8], is_new: usize, id: u8) -> bool {
    main.get(is_new).is_some_and(|byte| *byte != 0) || is_redone(record, id)
}

/// A leaf entry, which begins with how long it is.
fn leaf(cursor: &mut Cursor<'_>) -> Option<()> {
    let bytes: u32 = at(cursor.rest(), 0)?;
    cursor.take((bytes as usize >> 2).max(LEAF_BYTES)).map(|_| ())
}

/// An inner entry, which says how long it is after the number of its nodes.
fn inner(cursor: &mut Cursor<'_>) -> Option<()> {
    let bytes: u16 = at(cursor.rest(), 4)?;
    cursor.take(usize::from(bytes).max(INNER_BYTES)).map(|_| ())
}

/// Offset numbers of entries that go, in any order (`spgPageIndexMultiDelete`).
fn deleted(offsets: &List<'_, u16>) -> Checked {
    each_is_possible(offsets)?;
    let mut sorted: Vec<u16> = offsets.iter().collect();
    sorted.sort_unstable();
    let is_twice = sorted.len() > 2 && sorted.windows(2).any(|pair| pair[0] == pair[1]);
    if is_twice { Err(Contradiction::NotRising) } else { Ok(()) }
}

fn add_leaf(record: &Record<'_>, main: &[u8]) -> Checked {
    let field = |place: usize| whole(at::<u16>(main, place));
    let [new, head, parent] = [field(2)?, field(4)?, field(6)?];
    if changes(record, main, 0, 0) {
        whole(main.get(10..).and_then(|rest| leaf(&mut Cursor::new(rest))))?;
        is_possible(new, 1)?;
        is_possible(head, 0)?;
    }
    if is_redone(record, 1) { is_possible(parent, 0) } else { Ok(()) }
}

fn move_leafs(record: &Record<'_>, main: &[u8]) -> Checked {
    let moves: u16 = whole(at(main, 0))?;
    let replaces_dead = whole(main.get(3))?;
    let inserts = if *replaces_dead != 0 { 1 } else { u32::from(moves) + 1 };
    let mut cursor = Cursor::new(whole(main.get(20..))?);
    let gone = whole(cursor.list(moves.into()))?;
    let new = whole(cursor.list(inserts))?;
    if is_redone(record, 0) {
        deleted(&gone)?;
    }
    if changes(record, main, 2, 1) {
        each_is_possible(&new)?;
        (0..inserts).try_for_each(|_| whole(leaf(&mut cursor)))?;
    }
    if is_redone(record, 2) { is_possible(whole(at(main, 6))?, 0) } else { Ok(()) }
}

fn add_node(record: &Record<'_>, main: &[u8]) -> Checked {
    let field = |place: usize| whole(at::<u16>(main, place));
    whole(main.get(20..).and_then(|rest| inner(&mut Cursor::new(rest))))?;
    if is_redone(record, 0) {
        is_possible(field(0)?, 1)?;
    }
    if !record.blocks().any(|block| block.id == 1) {
        return Ok(());
    }
    // The parent is on a third page.
    if main.get(5) == Some(&2) && !record.blocks().any(|block| block.id == 2) {
        return Err(Contradiction::Block(2, BlockFault::None));
    }
    if changes(record, main, 4, 1) { is_possible(field(2)?, 1) } else { Ok(()) }
}

fn split_tuple(record: &Record<'_>, main: &[u8]) -> Checked {
    let mut cursor = Cursor::new(whole(main.get(6..))?);
    whole(inner(&mut cursor).and_then(|()| inner(&mut cursor)))?;
    if is_redone(record, 0) {
        is_possible(whole(at(main, 0))?, 1)?;
    }
    let is_on_same_page = main.get(5).is_some_and(|byte| *byte != 0);
    let changes = if is_on_same_page { is_redone(record, 0) } else { changes(record, main, 4, 1) };
    if changes { is_possible(whole(at(main, 2))?, 1) } else { Ok(()) }
}

fn picksplit(record: &Record<'_>, main: &[u8]) -> Checked {
    let field = |place: usize| whole(at::<u16>(main, place));
    let [gone, new] = [field(2)?, field(4)?];
    let mut cursor = Cursor::new(whole(main.get(28..))?);
    let gone = whole(cursor.list(gone.into()))?;
    let places = whole(cursor.list::<u16>(new.into()))?;
    // On which of two pages each goes.
    let pages = whole(cursor.take(new.into()))?;
    whole(inner(&mut cursor))?;
    (0..new).try_for_each(|_| whole(leaf(&mut cursor)))?;
    let is_set = |place: usize| main.get(place).is_some_and(|byte| *byte != 0);
    if !is_set(0) && !is_set(6) && is_redone(record, 0) {
        deleted(&gone)?;
    }
    let is_changed = [changes(record, main, 6, 0), changes(record, main, 7, 1)];
    for (offset, page) in places.iter().zip(pages) {
        if is_changed[usize::from(*page != 0)] {
            is_possible(offset, 1)?;
        }
    }
    if changes(record, main, 10, 2) { is_possible(field(8)?, 1) } else { Ok(()) }
}

/// Entries that become dead, become placeholders, move, and are chained otherwise.
fn vacuum_leaf(record: &Record<'_>, main: &[u8]) -> Checked {
    if !is_redone(record, 0) {
        return Ok(());
    }
    let mut cursor = Cursor::new(whole(main.get(16..))?);
    for place in [0, 2, 4] {
        deleted(&whole(cursor.list(whole(at::<u16>(main, place))?.into()))?)?;
    }
    let [moved, chained] = [whole(at::<u16>(main, 4))?, whole(at::<u16>(main, 6))?];
    let rest = u32::from(moved) + 2 * u32::from(chained);
    whole(cursor.list::<u16>(rest)).map(|_| ())
}
