//! Made-up WAL for tests.

mod page;
mod record;
mod trace;

pub(crate) use page::{any_bytes, any_number, any_page};
pub(crate) use record::Bytes;
pub(crate) use trace::{Kind, Made, any_record, base};
