//! SP-GiST indexes (`spgRedo*` in `src/backend/access/spgist/spgxlog.c`). All that a record says
//! stands in its main data; no image replaces any of it.

use super::Redo;
use crate::page::{Packing, Page};
use walstat_format::cursor::{Cursor, List, at};
use walstat_format::payload::spgist;
use walstat_format::payload::spgist::opcode;

/// `SpGistPageOpaqueData`: flags, redirections, placeholders, page id.
const SPECIAL_BYTES: usize = 8;
/// `SGDTSIZE`: what stands in for a tuple that is gone.
const DEAD_BYTES: u32 = 16;
const REDIRECT: u32 = 1;
const DEAD: u32 = 2;
const PLACEHOLDER: u32 = 3;

pub(crate) fn apply(redo: Redo<'_>, before: Option<Page>) -> Option<Page> {
    let mut page = redo.page(before, SPECIAL_BYTES)?;
    match redo.record.info() {
        opcode::CREATE_INDEX if redo.block.id > 0 => {}
        opcode::ADD_LEAF => add_leaf(redo, &mut page)?,
        opcode::MOVE_LEAFS => move_leaves(redo, &mut page)?,
        opcode::ADD_NODE => add_node(redo, &mut page)?,
        opcode::SPLIT_TUPLE => split_tuple(redo, &mut page)?,
        opcode::PICKSPLIT => pick_split(redo, &mut page)?,
        opcode::VACUUM_LEAF => vacuum_leaf(redo, &mut page)?,
        opcode::VACUUM_ROOT => {
            let main = redo.record.main_data();
            let gone = Cursor::new(main.get(12..)?).list(u32::from(at::<u16>(main, 0)?))?;
            page.remove_all(&gone.iter().collect::<Vec<u16>>(), redo.packing())?;
        }
        opcode::VACUUM_REDIRECT => vacuum_redirect(redo, &mut page)?,
        _ => return None,
    }
    Some(page)
}

/// A leaf tuple says its length in the upper 30 bits of its first word.
fn leaf<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let bytes = at::<u32>(cursor.rest(), 0)? >> 2;
    cursor.take(bytes as usize)
}

/// An inner tuple says it in its third half-word.
fn inner<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let bytes: u16 = at(cursor.rest(), 4)?;
    cursor.take(bytes.into())
}

/// Puts a tuple in, in place of a placeholder if there is one (`addOrReplaceTuple`).
fn add_or_replace(page: &mut Page, number: u16, tuple: &[u8]) -> Option<()> {
    if number <= page.items() {
        page.remove(number)?;
    }
    page.insert(number, tuple)
}

/// Replaces tuples by shorter ones that say that they are gone: the first one named in another
/// way than the others (`spgPageIndexMultiDelete`).
fn replace_by_dead(
    page: &mut Page,
    numbers: List<'_, u16>,
    first: u32,
    rest: u32,
    packing: Packing,
) -> Option<()> {
    let named: Vec<u16> = numbers.iter().collect();
    let Some(&first_named) = named.first() else { return Some(()) };
    let mut sorted = named;
    sorted.sort_unstable();
    page.remove_all(&sorted, packing)?;
    sorted.iter().try_for_each(|&number| {
        let state = if number == first_named { first } else { rest };
        page.insert(number, &dead_tuple(state))
    })
}

fn dead_tuple(state: u32) -> [u8; DEAD_BYTES as usize] {
    let mut tuple = [0; DEAD_BYTES as usize];
    if let Some(word) = tuple.first_chunk_mut::<4>() {
        *word = (DEAD_BYTES << 2 | state).to_le_bytes();
    }
    tuple
}

fn add_leaf(redo: Redo<'_>, page: &mut Page) -> Option<()> {
    let main = redo.record.main_data();
    if redo.block.id != 0 {
        return Some(());
    }
    let (number, head): (u16, u16) = at(main, 2)?;
    let tuple = leaf(&mut Cursor::new(main.get(10..)?))?;
    if number == head {
        // In place of a dead one.
        page.remove(number)?;
        return page.insert(number, tuple);
    }
    add_or_replace(page, number, tuple)
}

fn move_leaves(redo: Redo<'_>, page: &mut Page) -> Option<()> {
    let main = redo.record.main_data();
    let moves: u16 = at(main, 0)?;
    let replaces_dead: bool = at(main, 3)?;
    let is_build: bool = at(main, 16)?;
    let mut cursor = Cursor::new(main.get(20..)?);
    let deleted = cursor.list::<u16>(u32::from(moves))?;
    let inserted = cursor.list::<u16>(if replaces_dead { 1 } else { u32::from(moves) + 1 })?;
    match redo.block.id {
        0 => {
            let first = if is_build { PLACEHOLDER } else { REDIRECT };
            replace_by_dead(page, deleted, first, PLACEHOLDER, redo.packing())
        }
        1 => inserted.iter().try_for_each(|number| {
            let tuple = leaf(&mut cursor)?;
            add_or_replace(page, number, tuple)
        }),
        _ => Some(()),
    }
}

fn add_node(redo: Redo<'_>, page: &mut Page) -> Option<()> {
    let main = redo.record.main_data();
    let (number, new): (u16, u16) = at(main, 0)?;
    let tuple = inner(&mut Cursor::new(main.get(20..)?))?;
    let in_place = redo.record.block(1).is_none();
    match redo.block.id {
        0 if in_place => {
            page.remove(number)?;
            page.insert(number, tuple)
        }
        0 => {
            let is_build: bool = at(main, 16)?;
            page.remove(number)?;
            page.insert(number, &dead_tuple(if is_build { PLACEHOLDER } else { REDIRECT }))
        }
        1 => add_or_replace(page, new, tuple),
        _ => Some(()),
    }
}

fn split_tuple(redo: Redo<'_>, page: &mut Page) -> Option<()> {
    let main = redo.record.main_data();
    let (prefix_at, postfix_at): (u16, u16) = at(main, 0)?;
    let same_page: bool = at(main, 5)?;
    let mut cursor = Cursor::new(main.get(6..)?);
    let (prefix, postfix) = (inner(&mut cursor)?, inner(&mut cursor)?);
    if redo.block.id == 1 {
        return add_or_replace(page, postfix_at, postfix);
    }
    page.remove(prefix_at)?;
    page.insert(prefix_at, prefix)?;
    if same_page { add_or_replace(page, postfix_at, postfix) } else { Some(()) }
}

fn pick_split(redo: Redo<'_>, page: &mut Page) -> Option<()> {
    let main = redo.record.main_data();
    let (deletes, inserts): (u16, u16) = at(main, 2)?;
    let mut cursor = Cursor::new(main.get(28..)?);
    let deleted = cursor.list::<u16>(u32::from(deletes))?;
    let inserted = cursor.list::<u16>(u32::from(inserts))?;
    let to_destination = cursor.take(inserts.into())?;
    let inner = inner(&mut cursor)?;
    let (number, is_build): (u16, bool) = (at(main, 8)?, at(main, 24)?);
    let leaves = |page: &mut Page, wanted: bool, cursor: &mut Cursor<'_>| {
        inserted.iter().zip(to_destination).try_for_each(|(number, selected)| {
            let tuple = leaf(cursor)?;
            if (*selected != 0) == wanted { add_or_replace(page, number, tuple) } else { Some(()) }
        })
    };
    match redo.block.id {
        0 => {
            if !redo.block.will_init {
                let first = if is_build { PLACEHOLDER } else { REDIRECT };
                replace_by_dead(page, deleted, first, PLACEHOLDER, redo.packing())?;
            }
            leaves(page, false, &mut cursor)
        }
        1 => leaves(page, true, &mut cursor),
        2 => add_or_replace(page, number, inner),
        _ => Some(()),
    }
}

fn vacuum_leaf(redo: Redo<'_>, page: &mut Page) -> Option<()> {
    let main = redo.record.main_data();
    let (dead, placeholders): (u16, u16) = at(main, 0)?;
    let moves = u32::from(at::<u16>(main, 4)?);
    let mut cursor = Cursor::new(main.get(16..)?);
    let dead = cursor.list::<u16>(u32::from(dead))?;
    let placeholders = cursor.list::<u16>(u32::from(placeholders))?;
    let (from, to) = (cursor.list::<u16>(moves)?, cursor.list::<u16>(moves)?);
    let packing = redo.packing();
    // Each of the dead ones stays the head of its chain.
    replace_by_dead(page, dead, DEAD, DEAD, packing)?;
    replace_by_dead(page, placeholders, PLACEHOLDER, PLACEHOLDER, packing)?;
    for (from, to) in from.iter().zip(to.iter()) {
        let (source, target) = (page.item(from)?, page.item(to)?);
        page.set_item(from, target)?;
        page.set_item(to, source)?;
    }
    replace_by_dead(page, from, PLACEHOLDER, PLACEHOLDER, packing)
}

fn vacuum_redirect(redo: Redo<'_>, page: &mut Page) -> Option<()> {
    let main = redo.record.main_data();
    let first: u16 = at(main, 2)?;
    for number in spgist::redirects(main, redo.record.version)?.iter() {
        let tuple = page.tuple_mut(number)?;
        *tuple.first_chunk_mut::<4>()? = (DEAD_BYTES << 2 | PLACEHOLDER).to_le_bytes();
    }
    if first == 0 {
        return Some(());
    }
    let gone: Vec<u16> = (first..=page.items()).collect();
    page.remove_all(&gone, redo.packing())
}
