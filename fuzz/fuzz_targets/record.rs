//! Fuzz target: one record and small texts. What is checked stands in `checks/record.rs`.
#![no_main]

#[path = "../checks/mod.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::record::run(data));
