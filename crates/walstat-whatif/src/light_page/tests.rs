//! What is kept of a page, held against the whole page while both are changed.

use super::rows::RowState;
use super::*;
use crate::light_page::rows::Header;
use crate::page::Packing;
use proptest::prelude::*;
use walstat_format::data_page::heap_tuple::{TUPLE_HEADER_BYTES, field};
use walstat_format::data_page::index_tuple::AM_RESERVED;

fn light(page: &Page) -> Option<LightPage> {
    LightRoom::default().read(&page.view()).cloned()
}

/// States and lengths of all items, and where redirected ones lead.
fn items(page: &Page) -> Vec<Item> {
    let place = |item: &Item| if item.has_storage() { 0 } else { item.offset };
    let items = (1..=page.items()).filter_map(|n| page.item(n));
    items.map(|item| Item { offset: place(&item), ..item }).collect()
}

fn header(xmax: u8, infomask: u8) -> Header {
    let mut header = [0; TUPLE_HEADER_BYTES];
    header[field::XMAX] = xmax;
    header[field::INFOMASK + 1] = infomask;
    header[field::HOFF] = 24;
    header
}

fn row(len: usize, xmax: u8, columns: u8) -> Vec<u8> {
    let mut row = vec![columns; len];
    row[..TUPLE_HEADER_BYTES].copy_from_slice(&header(xmax, 0));
    row
}

/// What may happen to a table's page; numbers are taken as they are.
#[derive(Debug, Clone)]
enum Change {
    Add { number: u16, bytes: usize, xmax: u8 },
    Append { bytes: usize },
    Mark { number: u16, xmax: u8, infomask: u8 },
    Set { number: u16, item: Item },
    Pack,
    Cut { keep: u16 },
}

fn change() -> impl Strategy<Value = Change> {
    let redirect = |offset| Item { state: ItemState::Redirect, offset, bytes: 0 };
    let bare = prop_oneof![Just(Item::UNUSED), Just(Item::DEAD), (1u16..30).prop_map(redirect),];
    prop_oneof![
        1 => (1u16..60, 24usize..80, 0u8..3)
            .prop_map(|(number, bytes, xmax)| Change::Add { number, bytes, xmax }),
        8 => prop_oneof![Just(40usize), 24usize..80].prop_map(|bytes| Change::Append { bytes }),
        4 => (1u16..60, 0u8..3, 0u8..4)
            .prop_map(|(number, xmax, infomask)| Change::Mark { number, xmax, infomask }),
        2 => (1u16..60, bare).prop_map(|(number, item)| Change::Set { number, item }),
        1 => Just(Change::Pack),
        1 => (0u16..2).prop_map(|keep| Change::Cut { keep }),
    ]
}

fn on_page(page: &mut Page, change: &Change) -> Option<()> {
    match *change {
        Change::Add { number, bytes, xmax } => page.add(number, &row(bytes, xmax, 7)),
        Change::Append { bytes } => page.add(page.items() + 1, &row(bytes, 0, 7)),
        Change::Mark { number, xmax, infomask } => {
            *page.tuple_mut(number)?.first_chunk_mut()? = header(xmax, infomask);
            Some(())
        }
        Change::Set { number, item } => {
            page.item(number)?;
            page.set_item(number, item)
        }
        Change::Pack => page.pack(Packing::ByPlace),
        Change::Cut { keep } => page.cut_unused(keep),
    }
}

fn on_light(page: &mut LightPage, change: &Change) -> Option<()> {
    match *change {
        Change::Add { number, bytes, xmax } => page.add_row(number, &header(xmax, 0), bytes),
        Change::Append { bytes } => page.add_row(page.items() + 1, &header(0, 0), bytes),
        Change::Mark { number, xmax, infomask } => {
            page.change_row(number, |own| *own = header(xmax, infomask))
        }
        Change::Set { number, item } => page.set_item(number, item),
        Change::Pack => page.pack(),
        Change::Cut { keep } => page.cut_unused(keep),
    }
}

proptest! {
    #[test]
    fn a_table_s_page_changes_as_the_whole_one_does(
        changes in proptest::collection::vec(change(), 1..120),
    ) {
        let mut whole = Page::new(2048, 0).expect("a page");
        let mut kept = LightPage::table(2048).expect("a page");
        for change in changes {
            let mut next = whole.clone();
            let done = on_page(&mut next, &change);
            let mut light_next = kept.clone();
            prop_assert_eq!(on_light(&mut light_next, &change), done, "{:?}", change);
            if done.is_none() {
                // The page is void then.
                continue;
            }
            (whole, kept) = (next, light_next);
            prop_assert_eq!(kept.length(), whole.view().length());
            let numbers = 1..=whole.items();
            let own: Vec<_> = numbers.clone().filter_map(|n| kept.item(n)).collect();
            prop_assert_eq!(own, items(&whole));
            let states: Vec<_> = numbers.map(|n| RowState::of(whole.tuple(n)?)).collect();
            prop_assert_eq!(kept.row_states(), states);
            let again = kept.page(vec![1; 9000]).expect("a page");
            prop_assert_eq!(items(&again), items(&whole));
            prop_assert_eq!(again.view().length(), whole.view().length());
        }
    }

    #[test]
    fn entries_come_into_a_b_tree_s_page_as_into_the_whole_one(
        entries in proptest::collection::vec((0u16..400, 1usize..4, any::<bool>()), 1..120),
    ) {
        let mut whole = Page::new(2048, PLACE_BYTES).expect("a page");
        let mut kept = light(&whole).expect("a B-tree's");
        for (index, (place, eights, is_list)) in entries.into_iter().enumerate() {
            let list = if is_list { AM_RESERVED } else { 0 };
            let info = (8 + 8 * eights as u16) | list;
            let lead = index as u16;
            let mut entry = [[0, lead, 1, info].map(u16::to_le_bytes).concat(), vec![0; 8 * eights]].concat();
            if is_list {
                entry[8..].fill(index as u8);
            }
            let number = place % (whole.items() + 2);
            let done = whole.clone().insert(number, &entry);
            prop_assert_eq!(kept.clone().insert_entry(number, &entry), done);
            if done.is_some() {
                whole.insert(number, &entry).expect("room");
                kept.insert_entry(number, &entry).expect("room");
            }
            prop_assert_eq!(kept.length(), whole.view().length());
            let again = kept.page(Vec::new()).expect("a page");
            prop_assert_eq!(items(&again), items(&whole));
            let numbers = 1..=whole.items();
            prop_assert!(numbers.clone().all(|n| again.tuple(n) == whole.tuple(n)));
            prop_assert_eq!(light(&whole).and_then(|again| again.page(Vec::new())), Some(again));
        }
    }
}

#[test]
fn rows_that_are_alike_are_kept_once() {
    let mut page = Page::new(8192, 0).expect("a page");
    for number in 0..100 {
        page.append(&row(61, 0, number)).expect("room");
    }
    page.append(&row(61, 7, 1)).expect("room");
    page.set_item(4, Item::DEAD).expect("there");
    let light = light(&page).expect("a table's");
    let again = light.page(vec![1; 9000]).expect("a page");
    assert_eq!(again.tuple(1), Some(&row(61, 0, 0)[..]), "its columns are gone");
    assert_eq!(again.tuple(101), Some(&row(61, 7, 0)[..]));
    assert!(format!("{light:?}").matches("xmax").count() <= 4, "{light:?}");
}

#[test]
fn what_a_page_becomes_is_the_other_one() {
    let mut table = Page::new(8192, 0).expect("a page");
    table.append(&row(61, 0, 1)).expect("room");
    let mut tree = Page::new(8192, PLACE_BYTES).expect("a page");
    tree.append(&[[0, 0, 1, 0, 1, 0, 16, 0], [9; 8]].concat()).expect("room");
    tree.put_u32(tree.special() + 4, 77).expect("there");
    let (table, tree) = (light(&table).expect("a table's"), light(&tree).expect("a B-tree's"));
    for (own, other) in [(&table, &tree), (&tree, &table), (&tree, &tree)] {
        let mut page = own.clone();
        page.become_like(other);
        assert_eq!(&page, other);
    }
    let again = tree.page(Vec::new()).expect("a page");
    assert_eq!(again.view().field::<u32>(again.special() + 4), Some(77));
}

#[test]
fn other_pages_and_nonsense_are_not_kept_so() {
    assert!(light(&Page::new(8192, 8).expect("a page")).is_none());
    let mut gist = Page::new(8192, PLACE_BYTES).expect("a page");
    gist.put_u16(8190, 0xFF81).expect("there");
    assert!(light(&gist).is_none());
    let mut page = Page::new(8192, 0).expect("a page");
    page.append(&row(61, 0, 0)).expect("room");
    page.append(&row(61, 0, 0)).expect("room");
    assert!(light(&page).is_some());
    let first = page.item(1).expect("there");
    page.set_item(2, Item { bytes: 100, ..first }).expect("there");
    assert!(light(&page).is_none(), "it reaches beyond the page");
}
