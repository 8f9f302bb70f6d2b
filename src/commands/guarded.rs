//! Guards work on files that other runs have written. Any number in such a file may be wrong, and sums or
//! differences of them may overflow and panic; the file is then refused. In what is shipped that is so where
//! a report is put together of them, and not in the crates that count records: Cargo.toml says which.

use crate::failure::Failure;
use std::panic;

/// Does `work`; what panics in it is refused with `refused`.
pub fn guarded<T>(
    work: impl FnOnce() -> Result<T, Failure>,
    refused: impl FnOnce() -> Failure,
) -> Result<T, Failure> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let result = panic::catch_unwind(panic::AssertUnwindSafe(work));
    panic::set_hook(hook);
    result.unwrap_or_else(|_| Err(refused()))
}
