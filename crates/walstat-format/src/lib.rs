//! The format of PostgreSQL's WAL, 9.5 to 19: borrowed views over bytes, without files, threads or
//! statistics.
//!
//! ```
//! use walstat_format::{rmgr, segment_records::records_of};
//!
//! fn print(segment: &[u8]) {
//!     for record in records_of(segment).into_iter().flatten() {
//!         let record = record.view();
//!         let name = record.record_type().name(record.version);
//!         println!("{} {}/{name}", record.lsn, rmgr::name(record.header.rmgr));
//!     }
//! }
//! # print(&[]);
//! ```
//!
//! From the segment to the row:
//!
//! | module | holds | PostgreSQL calls it |
//! | --- | --- | --- |
//! | [`segment`], [`lsn`] | names of segment files, positions in the WAL | `XLogFileName`, `XLogRecPtr` |
//! | [`page`] | headers of WAL pages, and whether a page belongs there | `XLogPageHeaderData` |
//! | [`segment_records`] | the records of one segment in memory | |
//! | [`record_header`], [`crc`] | the 24 bytes before a record, its checksum | `XLogRecord`, `xl_crc` |
//! | [`rmgr`] | resource managers, and the names of record types | `rmgrlist.h` |
//! | [`block`], [`image`], [`fork`], `locator` | block references, page images | `XLogRecordBlockHeader` |
//! | [`record`], [`body`] | a valid record, and its bytes across pages | `DecodedXLogRecord` |
//! | [`contradiction`] | records that say what redo cannot do | |
//! | [`payload`] | main data: commits, checkpoints, changes of rows and indexes | `xl_*` |
//! | [`data_page`], `page_size` | pages of tables and indexes, rows, pages from images | `PageHeaderData` |
//! | [`map_page`] | how many blocks a page of a map tells of | `fsm`, `vm` |
//! | [`catalog_layout`] | where the columns of the system catalogs lie | `pg_class` … |
//! | `checkpoint_layout` | where the fields of a checkpoint lie | `CheckPoint` |
//! | [`version`] | what differs between releases: the one table | `XLOG_PAGE_MAGIC` |
//! | [`cursor`] | numbers out of bytes that may be too few | |
//! | [`by_key`] | maps that are written by their keys | |
//! | [`ordered`] | sorting and collecting in little code | |
//! | [`scatter`] | numbers scattered, for tables and samples | |
//! | `listed` | macros for lists that would be written several times | |
//!
//! A DBA's words: an *LSN* is [`lsn::Lsn`]; a *relfilenode* is in [`block::RelFileLocator`]; a
//! *full page image* (FPI) is [`block::Image`], and a page again by `data_page::restore`; a *timeline
//! switch* is [`payload::timeline`]; *hint bits* are [`data_page::heap_tuple::infomask`].
//!
//! Features: `images` (default) restores pages from compressed images, for which it needs a C
//! compiler; `schema` adds JSON Schema to types that reports have; `sample` has rows for tests.

#![warn(unreachable_pub)]

#[macro_use]
mod listed;

pub mod block;
pub mod body;
pub mod by_key;
pub mod catalog_layout;
mod checkpoint_layout;
pub mod contradiction;
pub mod crc;
pub mod cursor;
pub mod data_page;
pub mod fork;
pub mod image;
mod locator;
pub mod lsn;
pub mod map_page;
pub mod ordered;
pub mod page;
mod page_size;
pub mod payload;
pub mod record;
pub mod record_header;
pub mod rmgr;
pub mod scatter;
pub mod segment;
pub mod segment_records;
pub mod version;
