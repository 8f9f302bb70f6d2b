//! Whole records given to what learns names from them.

use super::whole::{Block, Whole};
use walstat_format::data_page::restore::PageRestorer;
use walstat_format::version::Version;
use walstat_names::catalog::catalog_changes::CatalogChanges;
use walstat_names::catalog::event::{BlockParts, Page, RecordParts};

/// Shows all records to `changes`.
pub fn learn(changes: &mut CatalogChanges, records: &[Whole], version: &'static Version) {
    for record in records {
        let pages: Vec<Option<Vec<u8>>> =
            record.blocks.iter().map(|block| page(block, changes, version)).collect();
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
        changes.observe(&RecordParts {
            version,
            header: record.header,
            end: record.end,
            main_data: &record.main_data,
            blocks: &blocks,
        });
    }
}

/// The page of an image that is replayed and of a catalog.
fn page(block: &Block, changes: &CatalogChanges, version: &Version) -> Option<Vec<u8>> {
    let image = block.reference.image.as_ref()?;
    let may_be_catalog = changes.may_be_catalog(block.reference.relation);
    if !may_be_catalog || !version.image_flags.is_applied(image.info) {
        return None;
    }
    let mut restorer = PageRestorer::default();
    let page = restorer.page(image, &block.image, version.image_flags);
    Some(page.expect("a page").to_vec())
}
