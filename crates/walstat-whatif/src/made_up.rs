//! Made-up WAL for tests.

mod record;
mod trace;

pub use record::Bytes;
pub use trace::{Kind, Made, any_record, base};
