//! Waiting for what another program does.

use crate::support::patience::PATIENCE;
use std::time::{Duration, Instant};

/// Waits until something is so.
#[track_caller]
pub fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}: not after {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
