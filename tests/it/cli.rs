//! The promises of the command line: what it takes, what it says, how it exits. The numbers
//! themselves are held by `oracle.rs` and `books.rs`.

mod asked;
mod bad_input;
mod collected;
mod filters;
mod formats;
mod help;
mod inputs;
mod leaks;
mod output;
mod rules;
#[cfg(unix)]
mod targets;
mod usage;
