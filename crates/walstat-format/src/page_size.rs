//! Sizes that a server's data pages can have (`BLCKSZ`).

/// The smallest page a server can have.
pub const MIN_PAGE_BYTES: usize = 1024;

/// The largest page a server can have.
pub const MAX_PAGE_BYTES: usize = 32 << 10;

/// The size of every release's default, where nothing tells it.
pub const DEFAULT_PAGE_BYTES: usize = 8192;

/// Whether a server can have pages of that size.
pub fn is_page_size(bytes: usize) -> bool {
    bytes.is_power_of_two() && (MIN_PAGE_BYTES..=MAX_PAGE_BYTES).contains(&bytes)
}
