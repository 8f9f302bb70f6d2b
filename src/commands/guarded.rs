//! Guards work on files that other runs have written. Any number in such a file may be wrong, and sums or
//! differences of them may overflow and panic; the file is then refused. Releases check for overflow in the
//! crates that build a report (Cargo.toml) and where rows of sums are added (`sums!`). They unwind nothing:
//! the handler of panics itself says so and ends the program.

use super::conclude;
use crate::failure::{Exit, Failure};
use crate::output::end_now;
use std::panic;
use std::sync::Mutex;

/// Held by the thread that refuses.
static REFUSING: Mutex<()> = Mutex::new(());

/// Does `work`; where anything panics in it, the program ends with what `refuse` says.
pub fn guarded<T>(
    work: impl FnOnce() -> T,
    refuse: impl Fn() -> Result<Exit, Failure> + Send + Sync + 'static,
) -> T {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |_| {
        // Others that panic meanwhile wait until the program has ended.
        let _only = REFUSING.lock();
        end_now(conclude(refuse()));
    }));
    let done = work();
    panic::set_hook(usual);
    done
}
