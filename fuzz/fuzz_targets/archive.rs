//! Fuzz target: compressed and archived bytes. What is checked stands in `checks/archive.rs`.
#![no_main]

#[path = "../checks/mod.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::archive::run(data));
