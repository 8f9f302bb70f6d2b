//! How many blocks of a relation a page of its maps tells of.

use crate::data_page;
use crate::version::Version;

const PAGE_HEADER_BYTES: u32 = data_page::PAGE_HEADER_BYTES as u32;
const LEAST_PAGE_BYTES: u32 = data_page::MIN_PAGE_BYTES as u32;
/// What stands before the nodes of a page of the free space map (`FSMPageData`).
const FREE_SPACE_HEAD_BYTES: u32 = 4;

/// Of the free space map, for pages of so many bytes: the leaves of a tree that fills the page
/// (`SlotsPerFSMPage` in `src/include/storage/fsm_internals.h`).
pub const fn blocks_per_free_space_page(page_bytes: u32) -> u32 {
    let page_bytes = if page_bytes < LEAST_PAGE_BYTES { LEAST_PAGE_BYTES } else { page_bytes };
    let nodes = page_bytes - PAGE_HEADER_BYTES - FREE_SPACE_HEAD_BYTES;
    let inner_nodes = page_bytes / 2 - 1;
    nodes - inner_nodes
}

/// Of the visibility map (`HEAPBLOCKS_PER_PAGE` in `src/backend/access/heap/visibilitymap.c`).
pub const fn blocks_per_visibility_page(page_bytes: u32, version: &Version) -> u32 {
    let page_bytes = if page_bytes < LEAST_PAGE_BYTES { LEAST_PAGE_BYTES } else { page_bytes };
    (page_bytes - PAGE_HEADER_BYTES) * 8 / version.pages.visibility_bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::VERSIONS;

    #[test]
    fn pages_of_the_usual_size_tell_of_what_the_server_says() {
        let of = |index: usize| blocks_per_visibility_page(8192, &VERSIONS[index]);
        assert_eq!(blocks_per_free_space_page(8192), 4069);
        assert_eq!(["9.5", "9.6"], [0, 1].map(|index: usize| VERSIONS[index].name));
        assert_eq!((of(0), of(1)), (65_344, 32_672));
    }
}
