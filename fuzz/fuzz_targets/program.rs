//! Fuzz target: the whole program. What is checked stands in `checks/program.rs`.
#![no_main]

#[path = "../checks/mod.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::program::run(data));
