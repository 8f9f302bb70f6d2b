//! Made-up WAL for tests.

mod record;
mod trace;

pub(crate) use record::Bytes;
pub(crate) use trace::{Kind, Made, any_record, base};
