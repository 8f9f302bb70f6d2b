//! Floor 3, segments → records, in LSN order. Knows nothing of what is counted.

pub mod body;
pub mod books;
pub mod copies;
pub mod damage;
pub mod ending;
mod fast;
mod join;
pub mod outcome;
pub mod pages;
pub mod parallel;
pub mod partial;
pub mod pending;
mod promise;
pub mod read;
pub mod reader;
pub mod record;
mod resync;
pub mod run;
pub mod scope;
pub mod seek;
pub mod streamed;
pub mod stretch;
pub mod turns;
pub mod verify;
pub mod window;
