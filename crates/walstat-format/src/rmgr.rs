//! Resource managers and record names, from the one data file `rmgr-names.tsv`.
//!
//! A record type is a resource manager and a slot, the high half of `xl_info`. The names are
//! those that `pg_waldump --stats=record` prints, checked against its output in the tests. The
//! numbers of types are in the file of their resource manager in [`crate::payload`].

use crate::block::needed::NeededBlocks;
use crate::payload::{btree, gin, gist, heap, heap2, rmgr_info, spgist, xact, xlog};
use crate::version::{FIRST_CUSTOM_RMGR, VERSIONS, Version};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Resource manager of checkpoints, switches and page images (`rmgrlist.h`, like all below).
pub const XLOG: u8 = 0;
/// Resource manager of commits and aborts; its types are in [`crate::payload::xact`].
pub const TRANSACTION: u8 = 1;
/// Resource manager of files made and cut off.
pub const STORAGE: u8 = 2;
/// Resource manager of the commit log.
pub(crate) const CLOG: u8 = 3;
/// Resource manager of databases made and dropped.
pub const DATABASE: u8 = 4;
/// Resource manager of tablespaces made and dropped.
pub const TABLESPACE: u8 = 5;
/// Resource manager of multixacts.
pub const MULTIXACT: u8 = 6;
/// Resource manager of the map of catalogs to files.
pub const RELMAP: u8 = 7;
/// Resource manager of what a standby has to know.
pub const STANDBY: u8 = 8;
/// Resource manager of what does not fit into [`HEAP`]: vacuum, many rows at once.
pub const HEAP2: u8 = 9;
/// Resource manager of rows.
pub const HEAP: u8 = 10;
/// Resource manager of B-trees.
pub const BTREE: u8 = 11;
/// Resource manager of hash indexes.
pub const HASH: u8 = 12;
/// Resource manager of GIN indexes.
pub const GIN: u8 = 13;
/// Resource manager of GiST indexes.
pub const GIST: u8 = 14;
/// Resource manager of sequences.
pub const SEQUENCE: u8 = 15;
/// Resource manager of SP-GiST indexes.
pub const SPGIST: u8 = 16;
/// Resource manager of BRIN indexes.
pub const BRIN: u8 = 17;
/// Resource manager of the times of commits.
pub(crate) const COMMIT_TS: u8 = 18;
/// Resource manager of the progress of replication.
pub(crate) const REPLICATION_ORIGIN: u8 = 19;
/// Resource manager of extensions that log the differences of pages (9.6 and later).
pub const GENERIC: u8 = 20;
/// Resource manager of what `pg_logical_emit_message` writes.
pub const LOGICAL_MESSAGE: u8 = 21;
/// Resource managers of the built-in index types.
pub const INDEXES: [u8; 6] = [BTREE, HASH, GIN, GIST, SPGIST, BRIN];

/// A record type: what a row of the statistics counts.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct RecordType {
    /// Resource manager id.
    pub rmgr: u8,
    /// 0 to 15: the high half of `xl_info`, as the release's own tool counts it.
    pub slot: u8,
}

impl RecordType {
    /// Whether it is the image of a page in which only hint bits changed.
    pub fn is_hint_image(self) -> bool {
        self.rmgr == XLOG && self.info() == xlog::FPI_FOR_HINT
    }

    /// Whether a transaction commits by it.
    pub fn is_commit(self) -> bool {
        self.rmgr == TRANSACTION && xact::commits(self.info())
    }

    /// The type of a record. Bit 0x80 of a transaction record says only that more follows, and
    /// most releases leave it out of the type.
    #[inline(always)]
    pub fn of(rmgr: u8, info: u8, version: &Version) -> RecordType {
        let slots = if rmgr == TRANSACTION { version.transaction_slots } else { 0x0F };
        RecordType { rmgr, slot: (info >> 4) & slots }
    }

    /// The slot as it stands in `xl_info`.
    pub fn info(self) -> u8 {
        self.slot << 4
    }

    /// The slot without its highest bit: for [`HEAP`], [`HEAP2`] and [`TRANSACTION`], where that
    /// bit is not part of the type.
    pub fn opcode(self) -> u8 {
        self.info() & heap::OPCODE_MASK
    }

    /// The name after the slash, `HOT_UPDATE`; a slot without one is `UNKNOWN (a0)`.
    pub fn name(self, version: &Version) -> Cow<'static, str> {
        match NAMES.row(self, version) {
            Some(row) => Cow::Borrowed(row.name),
            None => Cow::Owned(format!("UNKNOWN ({:x})", self.info())),
        }
    }
}

/// Record types of indexes that only vacuum writes, by resource manager and the high half of `xl_info`.
/// Hash and GiST have none: a statement cleans by the same.
const INDEX_VACUUM: [(u8, u8); 12] = [
    (BTREE, btree::opcode::VACUUM),
    (BTREE, btree::opcode::MARK_PAGE_HALFDEAD),
    (BTREE, btree::opcode::UNLINK_PAGE),
    (BTREE, btree::opcode::UNLINK_PAGE_META),
    (BTREE, btree::opcode::META_CLEANUP),
    (GIN, gin::opcode::VACUUM_PAGE),
    (GIN, gin::opcode::VACUUM_DATA_LEAF_PAGE),
    (GIN, gin::opcode::DELETE_PAGE),
    (GIST, gist::opcode::PAGE_DELETE),
    (SPGIST, spgist::opcode::VACUUM_LEAF),
    (SPGIST, spgist::opcode::VACUUM_ROOT),
    (SPGIST, spgist::opcode::VACUUM_REDIRECT),
];

/// Whether vacuum alone writes such a record, whatever it is called in the release. Of pruning up to 16
/// the type does not say it: `PRUNE` (`CLEAN` up to 13) is of statements too.
#[inline(always)]
pub fn is_of_vacuum(rmgr: u8, info: u8) -> bool {
    match rmgr {
        HEAP2 => {
            let opcode = info & heap::OPCODE_MASK;
            heap2::cleans(opcode) && !heap2::prunes_alone(opcode)
        }
        BTREE | GIN | GIST | SPGIST => INDEX_VACUUM.contains(&(rmgr, rmgr_info(info))),
        _ => false,
    }
}

/// Resource managers whose records have a flag beside their type, which redo masks: a page that is made anew,
/// or that more follows.
pub(crate) const FLAGGED: [u8; 4] = [TRANSACTION, HEAP2, HEAP, BRIN];

/// Whether redo of the release knows such a record; with another one recovery ends (`unknown op code`).
/// Redo of [`XLOG`] and [`GENERIC`] passes over what it does not know, and what that of an extension knows
/// nobody can tell.
pub fn is_replayed(rmgr: u8, info: u8, version: &Version) -> bool {
    if [XLOG, GENERIC].contains(&rmgr) || rmgr >= FIRST_CUSTOM_RMGR {
        return version.has_rmgr(rmgr);
    }
    version.has_rmgr(rmgr) && NAMES.row(redo_type(rmgr, info), version).is_some()
}

/// The blocks that redo of the release asks of such a record; nothing of one that it does not know, or that
/// an extension's resource manager writes.
pub fn needed_blocks(rmgr: u8, info: u8, version: &Version) -> NeededBlocks {
    let row = NAMES.row(redo_type(rmgr, info), version);
    row.map(|row| row.needed).unwrap_or_default()
}

/// The type of a record as redo knows it.
fn redo_type(rmgr: u8, info: u8) -> RecordType {
    let flags = if FLAGGED.contains(&rmgr) { !heap::OPCODE_MASK } else { 0 };
    RecordType { rmgr, slot: rmgr_info(info & !flags) >> 4 }
}

/// Whether a record puts new rows, or new versions of rows, into a page.
pub fn inserts_rows(rmgr: u8, info: u8) -> bool {
    let opcode = info & heap::OPCODE_MASK;
    match rmgr {
        HEAP => [heap::INSERT, heap::UPDATE, heap::HOT_UPDATE].contains(&opcode),
        HEAP2 => opcode == heap2::MULTI_INSERT,
        _ => false,
    }
}

/// The name of a resource manager: `Heap`, or `custom128` for an extension's.
pub fn name(rmgr: u8) -> Cow<'static, str> {
    match NAMES.rmgrs.get(usize::from(rmgr)) {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(format!("custom{rmgr:03}")),
    }
}

/// The id of the resource manager of this name, in any case: `heap`, `custom128`.
pub fn by_name(text: &str) -> Option<u8> {
    let built_in = NAMES.rmgrs.iter().position(|name| name.eq_ignore_ascii_case(text));
    let custom = || {
        let digits = text.to_ascii_lowercase().strip_prefix("custom")?.to_owned();
        let plain = digits.len() == 3 && digits.bytes().all(|b| b.is_ascii_digit());
        digits.parse::<u8>().ok().filter(|&id| plain && id >= FIRST_CUSTOM_RMGR)
    };
    built_in.and_then(|id| u8::try_from(id).ok()).or_else(custom)
}

/// The names of all built-in resource managers, by id.
pub fn built_in() -> &'static [&'static str] {
    &NAMES.rmgrs
}

/// The names of all record types of all releases, without the resource manager.
pub fn record_names() -> impl Iterator<Item = &'static str> {
    NAMES.rows.values().flatten().map(|row| row.name)
}

/// Whether any release has a record of this name (without the resource manager), in any case.
pub fn has_record_named(text: &str) -> bool {
    record_names().any(|name| name.eq_ignore_ascii_case(text))
}

struct Names {
    rmgrs: Vec<&'static str>,
    rows: HashMap<RecordType, Vec<Row>>,
}

struct Row {
    name: &'static str,
    since: usize,
    until: usize,
    needed: NeededBlocks,
}

static NAMES: LazyLock<Names> = LazyLock::new(|| Names::parse(include_str!("rmgr-names.tsv")));

impl Names {
    /// Reads the data file: `rmid rmgr info name since until blocks forks`, separated by tabs, below one line
    /// of headings. A line that is not of that form is left out; a test counts them. `blocks`: the ids of the
    /// blocks that redo reads whatever else the record says, `-` where it is none; `forks`: a word where
    /// these are not all in the main fork.
    fn parse(text: &'static str) -> Names {
        let mut names = Names { rmgrs: Vec::new(), rows: HashMap::new() };
        for line in text.lines().skip(1) {
            names.add(line);
        }
        names
    }

    fn add(&mut self, line: &'static str) -> Option<()> {
        let mut fields = line.split('\t');
        let rmgr: u8 = fields.next()?.parse().ok()?;
        let rmgr_name = fields.next()?;
        let info = u8::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok()?;
        let name = fields.next()?;
        let since = release(fields.next()?)?;
        let until = match fields.next() {
            None | Some("") => VERSIONS.len() - 1,
            Some(text) => release(text)?,
        };
        let (blocks, forks) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
        let needed = NeededBlocks::parse(blocks, forks)?;
        if usize::from(rmgr) == self.rmgrs.len() {
            self.rmgrs.push(rmgr_name);
        }
        let slot = RecordType { rmgr, slot: info >> 4 };
        self.rows.entry(slot).or_default().push(Row { name, since, until, needed });
        Some(())
    }

    fn row(&self, record: RecordType, version: &Version) -> Option<&Row> {
        let rows = self.rows.get(&record)?;
        rows.iter().find(|row| (row.since..=row.until).contains(&version.index))
    }
}

fn release(name: &str) -> Option<usize> {
    VERSIONS.iter().position(|v| v.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(rmgr: u8, info: u8, release_name: &str) -> String {
        let version = &VERSIONS[release(release_name).expect("known release")];
        let record = RecordType::of(rmgr, info, version);
        format!("{}/{}", name(rmgr), record.name(version))
    }

    #[test]
    fn every_line_of_the_data_file_is_read() {
        let lines = include_str!("rmgr-names.tsv").lines().count() - 1;
        assert_eq!(NAMES.rows.values().map(Vec::len).sum::<usize>(), lines);
        assert_eq!(NAMES.rmgrs.len(), 22);
        assert_eq!(NAMES.rmgrs[21], "LogicalMessage");
    }

    #[test]
    fn names_follow_the_release() {
        assert_eq!(named(9, 0x10, "13"), "Heap2/CLEAN");
        assert_eq!(named(9, 0x10, "16"), "Heap2/PRUNE");
        assert_eq!(named(9, 0x10, "17"), "Heap2/PRUNE_ON_ACCESS");
        assert_eq!(named(10, 0xC3, "15"), "Heap/HOT_UPDATE+INIT");
        assert_eq!(named(0, 0xC0, "15"), "XLOG/UNKNOWN (c0)");
        assert_eq!(named(130, 0x10, "15"), "custom130/UNKNOWN (10)");
        assert_eq!(named(1, 0x80, "15"), "Transaction/COMMIT");
        assert_eq!(named(1, 0xF0, "15"), "Transaction/UNKNOWN (70)");
        assert_eq!(named(1, 0xF0, "9.5"), "Transaction/UNKNOWN (f0)");
    }

    /// Numbers that the code knows are those of the data file.
    #[test]
    fn constants_are_the_data_files() {
        for (id, text) in [
            (XLOG, "XLOG"),
            (TRANSACTION, "Transaction"),
            (HEAP2, "Heap2"),
            (HEAP, "Heap"),
            (BTREE, "Btree"),
            (HASH, "Hash"),
            (GIN, "Gin"),
            (GIST, "Gist"),
            (SPGIST, "SPGist"),
            (BRIN, "BRIN"),
            (LOGICAL_MESSAGE, "LogicalMessage"),
        ] {
            assert_eq!(name(id), text);
        }
        for (id, info, text) in [
            (XLOG, xlog::CHECKPOINT_SHUTDOWN, "CHECKPOINT_SHUTDOWN"),
            (XLOG, xlog::CHECKPOINT_ONLINE, "CHECKPOINT_ONLINE"),
            (XLOG, xlog::SWITCH, "SWITCH"),
            (XLOG, xlog::BACKUP_END, "BACKUP_END"),
            (XLOG, xlog::FPI_FOR_HINT, "FPI_FOR_HINT"),
            (XLOG, xlog::FPI, "FPI"),
            (XLOG, xlog::FPI_MULTI, "FPI_MULTI"),
            (HEAP, heap::UPDATE, "UPDATE"),
            (HEAP, heap::HOT_UPDATE, "HOT_UPDATE"),
            (HEAP, heap::LOCK, "LOCK"),
            (HEAP2, heap2::PRUNES[0], "CLEAN"),
            (HEAP2, heap2::PRUNES[1], "FREEZE_PAGE"),
            (HEAP2, heap2::PRUNES[2], "CLEANUP_INFO"),
            (HEAP2, heap2::VISIBLE, "VISIBLE"),
            (HEAP2, heap2::MULTI_INSERT, "MULTI_INSERT"),
            (HEAP2, heap2::LOCK_UPDATED, "LOCK_UPDATED"),
        ] {
            assert_eq!(named(id, info, "9.5"), format!("{}/{text}", name(id)));
        }
    }

    #[test]
    fn redo_masks_the_flags_beside_a_type() {
        let of = |name: &str| VERSIONS.iter().find(|version| version.name == name);
        for (rmgr, info, name, is_known) in [
            (HEAP, 0x90, "15", true),
            (HEAP2, 0xC0, "18", true),
            (HEAP2, 0xC0, "19", false),
            (TRANSACTION, 0xF0, "19", false),
            (BRIN, 0xB0, "9.5", true),
            (BRIN, 0xE0, "19", false),
            (BTREE, 0x80, "9.5", true),
            (BTREE, 0xF0, "19", false),
            (HASH, 0x00, "9.6", false),
            (XLOG, 0xF0, "9.5", true),
            (GENERIC, 0xF0, "9.6", true),
            (GENERIC, 0x00, "9.5", false),
            (FIRST_CUSTOM_RMGR, 0xF0, "15", true),
            (FIRST_CUSTOM_RMGR, 0xF0, "14", false),
            (64, 0x00, "19", false),
        ] {
            let version = of(name).expect("a release");
            assert_eq!(is_replayed(rmgr, info, version), is_known, "{rmgr} 0x{info:X} in {name}");
        }
    }

    #[test]
    fn resource_managers_are_found_by_name() {
        assert_eq!(by_name("hEAP2"), Some(9));
        assert_eq!(by_name("custom200"), Some(200));
        assert_eq!(by_name("custom100"), None);
        assert_eq!(by_name("custom+30"), None);
        assert_eq!(by_name("nonsense"), None);
    }
}
