//! Pages of which nothing has to be right: a server logs corrupt ones, under checksums that are.

use proptest::collection::vec;
use proptest::prelude::*;
use walstat_format::data_page::{LAYOUT_VERSION, PAGE_HEADER_BYTES, field};

/// Numbers as records and pages have them, and any others.
pub(crate) fn any_number() -> impl Strategy<Value = u16> {
    prop_oneof![6 => 0u16..12, 2 => (0u16..8).prop_map(|n| 8 * n), 1 => 0x2000u16..0x2010, 2 => any::<u16>()]
}

/// Numbers, byte for byte.
pub(crate) fn any_bytes(words: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    vec(any_number(), words)
        .prop_map(|words| words.into_iter().flat_map(u16::to_le_bytes).collect())
}

/// The bytes of a page: as many as a page has, with a header and line pointers that may be right.
pub(crate) fn any_page() -> impl Strategy<Value = Vec<u8>> {
    let size = prop_oneof![4 => Just(1024usize), 2 => Just(8192), 1 => Just(32768)];
    size.prop_flat_map(|size| {
        let content = any_bytes(1..60);
        let pointers = vec(any_pointer(size as u32), 0..30);
        (Just(size), any_parts(size as u16), pointers, content).prop_map(page)
    })
}

/// `pd_lower`, `pd_upper` and `pd_special`.
fn any_parts(size: u16) -> impl Strategy<Value = [u16; 3]> {
    let from = PAGE_HEADER_BYTES as u16;
    let special = (0u16..4).prop_map(move |words| size - 8 * words);
    let in_order = (from..from + 120, size / 2..size - 64, special);
    prop_oneof![
        6 => in_order.prop_map(|(lower, upper, special)| [lower & !1, upper & !7, special]),
        2 => [0..=size, 0..=size, 0..=size],
        1 => any::<[u16; 3]>(),
    ]
}

/// A line pointer: 15 bits of offset, 2 of state, 15 of length.
fn any_pointer(size: u32) -> impl Strategy<Value = u32> {
    let plausible = (size / 2..size, 0u32..4, 0u32..80);
    let plausible = plausible.prop_map(|(at, state, bytes)| at & !7 | state << 15 | bytes << 17);
    prop_oneof![4 => plausible, 1 => any::<u32>()]
}

fn page((size, parts, pointers, content): (usize, [u16; 3], Vec<u32>, Vec<u8>)) -> Vec<u8> {
    let mut page: Vec<u8> = content.into_iter().cycle().take(size).collect();
    let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
    for (at, part) in [field::LOWER, field::UPPER, field::SPECIAL].into_iter().zip(parts) {
        put(at, &part.to_le_bytes());
    }
    put(field::PAGESIZE_VERSION, &(size as u16 | LAYOUT_VERSION).to_le_bytes());
    for (at, pointer) in (PAGE_HEADER_BYTES..).step_by(4).zip(pointers) {
        put(at, &pointer.to_le_bytes());
    }
    page
}
