//! Guards work on files that other runs have written. Any number in such a file may be wrong, and sums or
//! differences of them may overflow and panic; the file is then refused. In what is shipped that is so where
//! a report is put together of them, and not in the crates that count records: Cargo.toml says which.
//! Nothing is unwound there, so the refusal is the last that the program does.

use super::conclude;
use crate::failure::{Exit, Failure};
use crate::output::end_now;
use std::panic;

/// Does `work`; where anything panics in it, the program ends with what `refuse` says.
pub fn guarded<T>(
    work: impl FnOnce() -> T,
    refuse: impl Fn() -> Result<Exit, Failure> + Send + Sync + 'static,
) -> T {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |_| end_now(conclude(refuse()))));
    let done = work();
    panic::set_hook(usual);
    done
}
