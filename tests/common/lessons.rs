//! Whole records given to what learns names from them.

use super::whole::{Block, Whole};
use walstat::wal::catalog::event::{BlockParts, Page, RecordParts};
use walstat::wal::catalog::lessons::Lessons;
use walstat::wal::data_page::restore::PageRestorer;
use walstat::wal::version::Version;

/// Shows all records to `lessons`.
pub fn learn(lessons: &mut Lessons, records: &[Whole], version: &'static Version) {
    for record in records {
        let pages: Vec<Option<Vec<u8>>> =
            record.blocks.iter().map(|block| page(block, lessons, version)).collect();
        let blocks: Vec<BlockParts<'_>> = record
            .blocks
            .iter()
            .zip(&pages)
            .map(|(block, page)| BlockParts {
                reference: block.reference,
                page: match page {
                    Some(page) => Page::Restored(page),
                    None => Page::None,
                },
                data: &block.data,
            })
            .collect();
        lessons.observe(&RecordParts {
            version,
            header: record.header,
            end: record.end,
            main_data: &record.main_data,
            blocks: &blocks,
        });
    }
}

/// The page of an image that is replayed and of a catalog.
fn page(block: &Block, lessons: &Lessons, version: &Version) -> Option<Vec<u8>> {
    let image = block.reference.image.as_ref()?;
    let may_be_catalog = lessons.may_be_catalog(block.reference.relation);
    if !may_be_catalog || !version.image_flags.is_applied(image.info) {
        return None;
    }
    let mut restorer = PageRestorer::default();
    let page = restorer.page(image, &block.image, version.image_flags);
    Some(page.expect("a page").to_vec())
}
