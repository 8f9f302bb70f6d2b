//! From segments to records, in LSN order. Knows nothing of what is counted.

pub mod alone;
pub mod books;
mod copies;
mod damage;
pub mod ending;
mod fast;
mod join;
mod joined_runs;
pub mod memory;
pub mod observe;
pub mod observer;
pub mod outcome;
mod page_buffer;
pub mod pages;
mod parallel;
pub mod partial;
pub(crate) mod pending;
pub mod read;
pub mod reader;
mod resync;
pub mod round;
pub mod run;
pub mod scope;
pub mod seek;
pub mod streamed;
mod timeline_switches;
mod verify;
