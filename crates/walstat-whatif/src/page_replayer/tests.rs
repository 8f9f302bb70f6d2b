//! Tests of how much is kept.

use super::*;
use crate::made_up::Bytes;
use walstat_format::rmgr::{HEAP, XLOG};

impl PageReplayer {
    /// Whether as much is kept as was counted.
    pub(crate) fn is_counted(&self) -> bool {
        let bytes = self.pages.iter().map(|slot| slot.page.bytes());
        self.held == bytes.sum::<usize>()
    }

    fn kept_pages(&self) -> usize {
        self.pages.iter().filter(|slot| !matches!(slot.page, Kept::Nothing)).count()
    }
}

/// Images of so many new pages of this size, one after the other.
fn after_images(
    mut replayer: PageReplayer,
    rmgr: u8,
    page_bytes: usize,
    count: u32,
) -> PageReplayer {
    let mut page = Page::new(page_bytes, 0).expect("a page");
    page.append(&[0; 40]).expect("room");
    for number in 0..count {
        let mut record = Bytes::new((rmgr, 0xB0), number, Some(&page), &[], &[1, 0, 0]);
        let record = record.parse();
        replayer.roll(&record, &record.blocks[0], number, |_, _| {}).expect("a page");
        assert!(replayer.is_counted() && replayer.held <= replayer.limit);
    }
    replayer
}

#[test]
fn pages_are_kept_within_so_many_bytes_however_large_they_are() {
    for page_bytes in [1024, 8192, 32_768] {
        let within = || PageReplayer::within(10 * 32_768);
        let room = 10 * 32_768 / page_bytes;
        let full = after_images(within(), XLOG, page_bytes, room as u32);
        assert_eq!((full.given_up(), full.kept_pages()), (0, room), "{page_bytes}");
        let more = after_images(within(), XLOG, page_bytes, room as u32 + 1);
        assert!(more.given_up() > 0, "{page_bytes}");
    }
}

#[test]
fn of_light_pages_more_are_kept() {
    let replayer = after_images(PageReplayer::within(40_000).light(true), HEAP, 8192, 400);
    assert_eq!((replayer.given_up(), replayer.kept_pages()), (0, 400));
    let replayer = after_images(PageReplayer::within(40_000).light(true), HEAP, 8192, 4000);
    assert!(replayer.given_up() > 0);
}
