//! Fuzz target: pages and runs. What is checked stands in `checks/segment.rs`.
#![no_main]

#[path = "../checks/mod.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::segment::run(data));
