//! Tests of what vacuum freezes.

use super::*;
use crate::made_up::Bytes;
use crate::page::Page;
use walstat_format::payload::xlog::FPI_FOR_HINT;
use walstat_format::rmgr::{HEAP2, XLOG};

const PRUNE: u8 = 0x10;
const FREEZE_PAGE: u8 = 0x30;
const PAGE: FirstBlock = FirstBlock { fork: 0, number: 9 };

fn take(freezing: &mut Freezing, rmgr_and_info: (u8, u8), has_image: bool) -> Freeze {
    let page = Page::new(8192, 0).expect("a page");
    let main = if rmgr_and_info.0 == HEAP2 { &[0; 9][..] } else { &[] };
    let mut bytes = Bytes::new(rmgr_and_info, 3, has_image.then_some(&page), &[], main);
    let record = bytes.parse();
    let block = record.blocks.first().expect("a block");
    freezing.of(&record, block, PAGE)
}

#[test]
fn rows_are_frozen_for_the_image_of_the_pruning_before() {
    for (has_image, is_for_image) in [(true, true), (false, false)] {
        let mut freezing = Freezing::default();
        take(&mut freezing, (HEAP2, PRUNE), has_image);
        let freeze = take(&mut freezing, (HEAP2, FREEZE_PAGE), false);
        assert_eq!(freeze, Freeze { is_for_image, effect: None });
    }
}

#[test]
fn pruning_after_an_image_for_hint_bits_hands_it_on() {
    let mut freezing = Freezing::default();
    take(&mut freezing, (XLOG, FPI_FOR_HINT), true);
    let pruned = take(&mut freezing, (HEAP2, PRUNE), false);
    assert_eq!(pruned.effect, Some(RecordEffect::PrunesAfterHint));
    assert!(take(&mut freezing, (HEAP2, FREEZE_PAGE), false).is_for_image);
    assert!(!take(&mut freezing, (HEAP2, FREEZE_PAGE), false).is_for_image, "once");
}
