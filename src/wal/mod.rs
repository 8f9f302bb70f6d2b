//! Floor 1, the format: borrowed views over bytes. No files, no statistics, no allocation a
//! record.

pub mod block;
pub mod catalog;
pub mod crc;
pub mod cursor;
pub mod data_page;
pub mod fork;
pub mod image;
pub mod lsn;
pub mod page;
pub mod payload;
pub mod record;
pub mod rmgr;
pub mod segment;
pub mod version;
