//! Each record of B-trees in each of its layouts.

use super::*;
use crate::wal::version::VERSIONS;

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn shorts(values: &[u16]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn all(list: List<'_, u16>) -> Vec<u16> {
    list.iter().collect()
}

#[test]
fn types_that_moved_are_told_apart() {
    let of = |info, index: usize| Insertion::of(info, &VERSIONS[index]);
    assert_eq!(of(0x00, 0), Some(Insertion::Leaf { splits_posting_list: false }));
    assert_eq!(of(0x50, 2), Some(Insertion::Split { new_entry_left: true }));
    assert_eq!(of(0x60, 3), Some(Insertion::Split { new_entry_left: false }));
    assert_eq!(of(0x50, 5), Some(Insertion::Leaf { splits_posting_list: true }));
    assert_eq!(of(0x60, 5), None);
    assert_eq!((of(0x20, 7), of(0xC0, 7)), (Some(Insertion::Inner), None));
}

#[test]
fn splits_gained_a_field_with_13() {
    let data = [words(&[1]), shorts(&[5, 6, 7])].concat();
    let split = |posting| Some(Split { level: 1, first_right: 5, new_item: 6, posting });
    assert_eq!(Split::parse(&data[..8], &VERSIONS[4]), split(0));
    assert_eq!(Split::parse(&data, &VERSIONS[5]), split(7));
    assert_eq!(Split::parse(&data[..8], &VERSIONS[5]), None);
    assert_eq!(Insert::parse(&data[4..]), Some(Insert { offset: 5 }));
    assert_eq!(Insert::parse(&data[..1]), None);
}

#[test]
fn deletions_are_read_in_each_layout() {
    let offsets = shorts(&[3, 4]);
    let old = [words(&[1663, 5, 9, 2]), offsets.clone()].concat();
    let delete = Removal::delete(&old, None, &VERSIONS[3]).expect("up to 11");
    assert_eq!((delete.conflict_xid, all(delete.deleted)), (None, vec![3, 4]));
    assert_eq!(Removal::delete(&old[..19], None, &VERSIONS[3]), None);
    let v12 = [words(&[7, 2]), offsets.clone()].concat();
    let delete = Removal::delete(&v12, None, &VERSIONS[4]).expect("12");
    assert_eq!((delete.conflict_xid, all(delete.deleted)), (Some(7), vec![3, 4]));
    let v13 = words(&[7, 2]);
    let delete = Removal::delete(&v13, Some(&offsets), &VERSIONS[5]).expect("13");
    assert_eq!(all(delete.deleted), [3, 4]);
    let v14 = [words(&[7]), shorts(&[1, 1])].concat();
    let data = shorts(&[3, 4, 1, 0]);
    for index in [6, 8] {
        let delete = Removal::delete(&v14, Some(&data), &VERSIONS[index]).expect("14 and later");
        assert_eq!((all(delete.deleted), all(delete.updated)), (vec![3], vec![4]));
        assert_eq!(delete.updates, [1, 0, 0, 0]);
    }
    assert_eq!(Removal::delete(&v14, Some(&data[..3]), &VERSIONS[6]), None);
    let image = Removal::delete(&v14, None, &VERSIONS[6]).expect("an image instead");
    assert!(image.deleted.is_empty());
}

#[test]
fn vacuum_is_read_in_both_layouts() {
    let data = shorts(&[3, 4]);
    let vacuum = Removal::vacuum(&words(&[100]), Some(&data), &VERSIONS[4]).expect("up to 12");
    assert_eq!(all(vacuum.deleted), [3, 4]);
    let vacuum = Removal::vacuum(&shorts(&[1, 1]), Some(&data), &VERSIONS[5]).expect("13");
    assert_eq!((all(vacuum.deleted), all(vacuum.updated)), (vec![3], vec![4]));
    assert_eq!(Removal::vacuum(&shorts(&[1, 2]), Some(&data), &VERSIONS[5]), None);
}

#[test]
fn merged_entries_are_intervals() {
    let data = shorts(&[3, 4, 9, 2]);
    let dedup = Dedup::parse(&shorts(&[2]), Some(&data)).expect("two");
    assert_eq!(dedup.intervals.iter().collect::<Vec<_>>(), [(3, 4), (9, 2)]);
    assert_eq!(Dedup::parse(&shorts(&[3]), Some(&data)), None);
    assert!(Dedup::parse(&shorts(&[3]), None).is_some_and(|dedup| dedup.intervals.is_empty()));
}

#[test]
fn pages_leave_the_tree() {
    let half = [shorts(&[5, 0xEEEE]), words(&[1, 2, 3, 4])].concat();
    let want = MarkHalfDead { parent_offset: 5, leaf: 1, left: 2, right: 3, top_parent: 4 };
    assert_eq!(MarkHalfDead::parse(&half), Some(want));
    assert_eq!(MarkHalfDead::parse(&half[..19]), None);
    let old = words(&[1, 2, 5, 6, 7, 700]);
    let want = UnlinkPage {
        left: 1,
        right: 2,
        level: None,
        safe_xid: 700,
        leaf_left: 5,
        leaf_right: 6,
        leaf_top_parent: 7,
    };
    assert_eq!(UnlinkPage::parse(&old, &VERSIONS[5]), Some(want));
    let new = words(&[1, 2, 3, 0xEEEE, 700, 0, 5, 6, 7]);
    let want = UnlinkPage { level: Some(3), ..want };
    assert_eq!(UnlinkPage::parse(&new, &VERSIONS[6]), Some(want));
    assert_eq!(UnlinkPage::parse(&new[..35], &VERSIONS[6]), None);
}

#[test]
fn roots_and_used_pages() {
    assert_eq!(NewRoot::parse(&words(&[3, 1])), Some(NewRoot { root: 3, level: 1 }));
    assert_eq!(NewRoot::parse(&words(&[3])), None);
    let reuse = ReusePage::parse(&words(&[1663, 5, 9, 4, 700])).expect("20 bytes");
    assert_eq!((reuse.relation.relfilenode, reuse.block), (9, 4));
    assert_eq!(ReusePage::parse(&words(&[1663, 5, 9])), None);
}
