//! The filters of the command line, as in `pg_waldump`: a record has to pass all of them.

use super::time_span::TimeSpan;
use walstat_format::block::{BlockRef, RelFileLocator};
use walstat_format::record::Record;
use walstat_read::scan::observe::Select;

/// What a record must be to be counted; empty fields let everything pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filters {
    /// One of these resource managers.
    pub rmgrs: Vec<u8>,
    /// One of these record names, in any case, with the resource manager (`Heap/UPDATE`) or
    /// without.
    pub records: Vec<String>,
    /// This xid in the record header.
    pub xid: Option<u32>,
    /// A block reference to this relation.
    pub relation: Option<RelationFilter>,
    /// A block reference to this block.
    pub block: Option<u32>,
    /// A block reference to this fork.
    pub fork: Option<u8>,
    /// A block reference into this database.
    pub database: Option<u32>,
    /// At least one image.
    pub full_page: bool,
    /// A time in this span.
    pub span: Option<TimeSpan>,
}

/// The files that are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RelationFilter {
    /// How they were asked for.
    pub text: String,
    /// Whether their tables' indexes and TOAST are meant too.
    pub whole_table: bool,
    /// The files, ascending.
    pub files: Vec<RelFileLocator>,
}

impl Filters {
    /// Whether every record passes.
    pub fn is_empty(&self) -> bool {
        *self == Filters::default()
    }

    /// Whether nothing but the time of a record decides.
    pub fn are_of_time_alone(&self) -> bool {
        self.span.is_some() && Filters { span: None, ..self.clone() }.is_empty()
    }

    fn has_block_filter(&self) -> bool {
        self.relation.is_some()
            || self.block.is_some()
            || self.fork.is_some()
            || self.database.is_some()
    }

    /// Relation, block and fork must meet in one block reference.
    fn accepts_block(&self, block: &BlockRef) -> bool {
        let asked = self.relation.as_ref();
        asked.is_none_or(|asked| asked.files.binary_search(&block.relation).is_ok())
            && self.block.is_none_or(|number| block.block == number)
            && self.fork.is_none_or(|fork| block.fork == fork)
            && self.database.is_none_or(|database| block.relation.database == database)
    }

    fn accepts_name(&self, record: &Record<'_>) -> bool {
        let record_type = record.record_type();
        let name = record_type.name(record.version);
        let rmgr = walstat_format::rmgr::name(record_type.rmgr);
        self.records.iter().any(|wanted| match wanted.split_once('/') {
            Some((of, record)) => {
                rmgr.eq_ignore_ascii_case(of) && name.eq_ignore_ascii_case(record)
            }
            None => name.eq_ignore_ascii_case(wanted),
        })
    }
}

impl Select for Filters {
    fn accepts(&self, record: &Record<'_>) -> bool {
        let header = &record.header;
        if !self.rmgrs.is_empty() && !self.rmgrs.contains(&header.rmgr) {
            return false;
        }
        if self.xid.is_some_and(|xid| xid != header.xid) {
            return false;
        }
        if self.span.as_ref().is_some_and(|span| !span.holds(record)) {
            return false;
        }
        if self.full_page && record.parts.fpi_count == 0 {
            return false;
        }
        if !self.records.is_empty() && !self.accepts_name(record) {
            return false;
        }
        if !self.has_block_filter() {
            return true;
        }
        record.blocks().any(|block| self.accepts_block(&block))
    }
}
