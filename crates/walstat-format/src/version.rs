//! The one table of what differs between the releases 9.5 and 19.
//!
//! What takes payloads apart, [`super::payload`] and [`super::contradiction`], may ask which release
//! wrote the WAL; all else asks what the table says. Facts are from `src/include/access/` and
//! `src/bin/pg_waldump/` of each release.

use crate::catalog_layout::CatalogLayout;
use crate::checkpoint_layout::CheckpointLayout;
use crate::image::ImageFlags;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The first id of an extension's resource manager (`RM_MIN_CUSTOM_ID` in `access/rmgr.h`).
pub const FIRST_CUSTOM_RMGR: u8 = 128;

/// The releases since which something differs, as places in [`VERSIONS`]; 9.5 is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Release {
    V9_6 = 1,
    V10,
    V11,
    V12,
    V13,
    V14,
    V15,
    V16,
    V17,
    V18,
    V19,
}

/// What one major release writes and how its own tool prints it.
#[derive(Debug)]
pub struct Version {
    /// `XLOG_PAGE_MAGIC`, the first two bytes of every page.
    pub magic: u16,
    /// The release: `9.5` … `19`.
    pub name: &'static str,
    /// Place in [`VERSIONS`]: orders releases.
    pub index: usize,
    /// Bits that may be set in `xlp_info`.
    pub page_flags: u16,
    /// The bit of `xlp_info` that marks a page where recovery replaced a torn record.
    pub overwrite_flag: u16,
    /// The values of wal_level, by the numbers that the WAL has for them.
    pub wal_levels: &'static [&'static str],
    /// Whether archive recovery stops where wal_level becomes minimal (14+). Before, it goes on and
    /// warns that data may be missing; as a hot standby it stops there, too.
    pub minimal_ends_recovery: bool,
    /// The meaning of the bits of `bimg_info`.
    pub image_flags: ImageFlags,
    /// The highest resource manager id that the release defines.
    pub rmgr_max: u8,
    /// Whether ids 128 to 255 belong to extensions.
    pub custom_rmgrs: bool,
    /// Whether a record may carry the xid of its top-level transaction (block id 252).
    pub toplevel_xid: bool,
    /// The bits of a transaction record's type by which the official tool counts: without the
    /// one for `xinfo` from 9.6.22, 10.17, 11.12, 12.7, 13.3 on; every minor of 9.5 counts by it.
    pub(crate) transaction_slots: u8,
    /// Layout of the checkpoint record.
    pub checkpoint: CheckpointLayout,
    /// Layout of the system catalogs.
    pub catalog: &'static CatalogLayout,
    /// The numbers by which `pg_control` names that layout (`CATALOG_VERSION_NO`): the release's, and
    /// those of pre-releases that wrote the same WAL and catalogs.
    pub catalog_versions: &'static [u32],
    /// The directory of WAL.
    pub wal_directory: &'static str,
    /// The directory of the commit log.
    pub commit_log: &'static str,
    /// Bytes of the place where the members of a multixact lie.
    pub multixact_offset_bytes: u8,
    /// What the release does to pages beyond what its records say.
    pub pages: PageHabits,
    /// How the release times and marks checkpoints.
    pub pacing: Pacing,
    /// How the release is told where recovery ends.
    pub recovery: RecoverySettings,
    /// How the release's own tool prints its statistics.
    pub tool: Tool,
}

/// How a release is told where recovery ends.
#[derive(Debug, Clone, Copy)]
pub struct RecoverySettings {
    /// The file with `recovery_target_lsn` and its like.
    pub file: &'static str,
    /// Whether a server follows the latest timeline unless told otherwise (12+); before, it stays on that of
    /// the backup.
    pub follows_latest: bool,
    /// Whether recovery begins where the label says (15+); before, where the checkpoint says that it names.
    pub reads_label_start: bool,
    /// Whether the label has to be of the checkpoint's timeline (11+).
    pub reads_label_timeline: bool,
    /// Whether there is `recovery_target_lsn` (10+).
    pub has_lsn: bool,
    /// Whether the state of a prepared transaction is read from the WAL once more where recovery ends (10+);
    /// before, redo of `PREPARE` writes it to a file.
    pub reads_prepared: bool,
    /// Whether it is read again when the new timeline has begun, as the history of that one has it (16+).
    pub reads_prepared_anew: bool,
    /// Whether a server that does not come to its target fails (13+); else it opens after all of the WAL.
    pub fails_short_of_target: bool,
    /// Whether records are decoded ahead of the one that is replayed (`recovery_prefetch`, 15+).
    pub reads_ahead: bool,
    /// Whether a server that recovers empties `pg_stat` (up to 14), which has to be there for that.
    pub empties_statistics: bool,
}

const fn recovery(index: usize) -> RecoverySettings {
    RecoverySettings {
        file: if index >= Release::V12 as usize { "postgresql.conf" } else { "recovery.conf" },
        follows_latest: index >= Release::V12 as usize,
        reads_label_start: index >= Release::V15 as usize,
        reads_label_timeline: index >= Release::V11 as usize,
        has_lsn: index >= Release::V10 as usize,
        reads_prepared: index >= Release::V10 as usize,
        reads_prepared_anew: index >= Release::V16 as usize,
        fails_short_of_target: index >= Release::V13 as usize,
        reads_ahead: index >= Release::V15 as usize,
        empties_statistics: index < Release::V15 as usize,
    }
}

/// What a release does to pages, and which images it takes of them, beyond what its records say.
#[derive(Debug, Clone, Copy)]
pub struct PageHabits {
    /// Bits that the visibility map has for a block (2 from 9.6 on).
    pub visibility_bits: u32,
    /// An image for a changed hint bit is written whatever full_page_writes says (up to 14).
    pub hint_images_forced: bool,
    /// The visibility map is set by records of its own (up to 18).
    pub visible_records: bool,
    /// A page that is registered without being changed is not stamped (17+).
    pub unchanged_unstamped: bool,
    /// Tuples are packed in the order of their line pointers, not as they lay (14+).
    pub packs_by_item: bool,
    /// Pruning cuts free line pointers off the end (15+).
    pub prune_cuts_items: bool,
    /// The metapage of a BRIN index says where its content ends (11+).
    pub brin_meta_standard: bool,
    /// A deleted B-tree page has an xid of 8 bytes where line pointers would stand (14+).
    pub deleted_pages_keep_xid: bool,
    /// Vacuum freezes rows of a page that got an image when it was pruned, by a record of its own (16).
    pub freezes_after_image: bool,
    /// The same by the record that prunes it (17+).
    pub freezes_with_pruning: bool,
    /// The type of a record that prunes says whether a statement or vacuum did it (17+).
    pub prunes_by_type: bool,
    /// At wal_level logical commands log what caches have to forget (14+).
    pub commands_log_invalidations: bool,
    /// The second pass of vacuum cuts free line pointers off the end (14+).
    pub vacuum_cuts_items: bool,
}

/// How a release times checkpoints, and what it logs of them.
#[derive(Debug, Clone, Copy)]
pub struct Pacing {
    /// checkpoint_completion_target where nobody has set it.
    pub completion_target: f64,
    /// WAL of how many checkpoints max_wal_size has room for, beside the one that runs
    /// (`CalculateCheckpointSegments`).
    pub kept: f64,
    /// Whether a record marks where an online checkpoint begins (`CHECKPOINT_REDO`, 17+). Before,
    /// only the checkpoint's own record tells, when it ends.
    pub marks_redo: bool,
    /// Whether `max_wal_size` without a unit is in segments (9.5 and 9.6).
    pub sizes_in_segments: bool,
    /// Whether a server refuses to start where `max_wal_size` is less than two segments: by the least value
    /// of the parameter in 9.5 and 9.6, by `ReadControlFile` from 11 on. In 10 the least is 2 MB, whatever
    /// the segments.
    pub wants_two_segments: bool,
    /// Whether `max_slot_wal_keep_size` limits what replication slots keep (13+).
    pub limits_slots: bool,
    /// Whether a checkpoint by time is left out if nothing of importance was written since the last
    /// one, snapshots of what is running not counted (10+).
    pub skips_idle: bool,
}

impl Pacing {
    /// A checkpointer with nothing to do looks again after so many seconds (`CheckpointerMain`).
    pub const IDLE_SECONDS: i64 = 15;
    /// `checkpoint_timeout` where nobody has set it.
    pub const DEFAULT_TIMEOUT_SECONDS: i64 = 300;

    /// After so many segments a checkpoint begins by volume (`CalculateCheckpointSegments`).
    pub fn checkpoint_segments(
        &self,
        max_wal_size: u64,
        segment_bytes: u64,
        completion_target: f64,
    ) -> u64 {
        let whole = max_wal_size / segment_bytes.max(1);
        ((whole as f64 / (self.kept + completion_target)) as u64).max(1)
    }

    /// The other way: the least and the most `max_wal_size` for which a checkpoint begins after so many
    /// segments, with the release's own completion target.
    pub fn max_wal_size(&self, segments: u64, segment_bytes: u64) -> (u64, u64) {
        let share = self.kept + self.completion_target;
        let size = |segments: u64| (segments as f64 * share * segment_bytes as f64) as u64;
        // At least one segment, however small the setting is; it is two segments at least.
        let least = if segments <= 1 { 2 * segment_bytes } else { size(segments) };
        (least, size(segments + 1))
    }
}

const fn pacing(index: usize) -> Pacing {
    Pacing {
        completion_target: if index >= Release::V14 as usize { 0.9 } else { 0.5 },
        // From 11 on only the last checkpoint is kept.
        kept: if index >= Release::V11 as usize { 1.0 } else { 2.0 },
        marks_redo: index >= Release::V17 as usize,
        sizes_in_segments: index < Release::V10 as usize,
        wants_two_segments: index != Release::V10 as usize,
        limits_slots: index >= Release::V13 as usize,
        skips_idle: index >= Release::V10 as usize,
    }
}

const fn page_habits(index: usize) -> PageHabits {
    PageHabits {
        visibility_bits: if index >= Release::V9_6 as usize { 2 } else { 1 },
        hint_images_forced: index < Release::V15 as usize,
        visible_records: index < Release::V19 as usize,
        unchanged_unstamped: index >= Release::V17 as usize,
        packs_by_item: index >= Release::V14 as usize,
        prune_cuts_items: index >= Release::V15 as usize,
        brin_meta_standard: index >= Release::V11 as usize,
        deleted_pages_keep_xid: index >= Release::V14 as usize,
        freezes_after_image: index == Release::V16 as usize,
        freezes_with_pruning: index >= Release::V17 as usize,
        prunes_by_type: index >= Release::V17 as usize,
        commands_log_invalidations: index >= Release::V14 as usize,
        vacuum_cuts_items: index >= Release::V14 as usize,
    }
}

/// Habits of the release's own `pg_waldump` (`pg_xlogdump` before 10).
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    /// Prints the range above the table, and nothing at all if no record was counted (15+).
    pub range_line: bool,
    /// Pads the low half of an LSN to eight digits (19).
    pub padded_lsn: bool,
    /// Says `1 byte` rather than `1 bytes` when it skips to the first record (10+).
    pub singular_byte: bool,
    /// Says what it skipped on standard error rather than above the table (17+).
    pub skip_on_stderr: bool,
}

const WAL_LEVELS_9_5: [&str; 4] = ["minimal", "archive", "hot_standby", "logical"];
const WAL_LEVELS: [&str; 3] = ["minimal", "replica", "logical"];

const BKP_REMOVABLE_AND_OVERWRITE: u16 = 0x000F;

const fn tool(index: usize) -> Tool {
    Tool {
        range_line: index >= Release::V15 as usize,
        padded_lsn: index >= Release::V19 as usize,
        singular_byte: index >= Release::V10 as usize,
        skip_on_stderr: index >= Release::V17 as usize,
    }
}

const fn version(
    index: usize,
    name: &'static str,
    magic: u16,
    image_flags: ImageFlags,
    checkpoint: CheckpointLayout,
    catalog: &'static CatalogLayout,
    catalog_versions: &'static [u32],
) -> Version {
    Version {
        magic,
        name,
        index,
        // Release 19 dropped XLP_BKP_REMOVABLE and moved the overwrite flag into its place.
        page_flags: if index >= Release::V19 as usize {
            0x0007
        } else {
            BKP_REMOVABLE_AND_OVERWRITE
        },
        overwrite_flag: if index >= Release::V19 as usize { 0x0004 } else { 0x0008 },
        wal_levels: if index < Release::V9_6 as usize { &WAL_LEVELS_9_5 } else { &WAL_LEVELS },
        minimal_ends_recovery: index >= Release::V14 as usize,
        image_flags,
        rmgr_max: if index < Release::V9_6 as usize { 19 } else { 21 },
        custom_rmgrs: index >= Release::V15 as usize,
        toplevel_xid: index >= Release::V14 as usize,
        transaction_slots: if index < Release::V9_6 as usize { 0x0F } else { 0x07 },
        checkpoint,
        catalog,
        catalog_versions,
        wal_directory: if index >= Release::V10 as usize { "pg_wal" } else { "pg_xlog" },
        commit_log: if index >= Release::V10 as usize { "pg_xact" } else { "pg_clog" },
        multixact_offset_bytes: if index >= Release::V19 as usize { 8 } else { 4 },
        pages: page_habits(index),
        pacing: pacing(index),
        recovery: recovery(index),
        tool: tool(index),
    }
}

/// In what is stored a release is the magic number of its pages.
impl Serialize for Version {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.magic.serialize(to)
    }
}

impl<'de> Deserialize<'de> for &'static Version {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<&'static Version, D::Error> {
        let magic = u16::deserialize(from)?;
        let known = VERSIONS.iter().find(|version| version.magic == magic);
        known.ok_or_else(|| D::Error::custom(format_args!("0x{magic:04X} is no release")))
    }
}

/// Every release that is read, oldest first.
pub static VERSIONS: [Version; 12] = {
    use CatalogLayout as N;
    use CheckpointLayout as C;
    use ImageFlags as I;
    [
        version(0, "9.5", 0xD087, I::V9_5, C::V9_5, &N::V9_5, &[201510051]),
        version(1, "9.6", 0xD093, I::V9_5, C::V9_5, &N::V9_5, &[201608131]),
        version(2, "10", 0xD097, I::V10, C::V9_5, &N::V10, &[201707211]),
        version(3, "11", 0xD098, I::V10, C::V9_5, &N::V11, &[201809051]),
        version(4, "12", 0xD101, I::V10, C::V12, &N::V12, &[201909212]),
        version(5, "13", 0xD106, I::V10, C::V12, &N::V12, &[202007201]),
        version(6, "14", 0xD10D, I::V10, C::V12, &N::V14, &[202107181]),
        version(7, "15", 0xD110, I::V15, C::V12, &N::V15, &[202209061]),
        version(8, "16", 0xD113, I::V15, C::V12, &N::V16, &[202306141, 202307071]),
        version(9, "17", 0xD116, I::V15, C::V17, &N::V17, &[202406281]),
        version(10, "18", 0xD118, I::V15, C::V17, &N::V18, &[202504091, 202506291]),
        version(11, "19", 0xD122, I::V15, C::V19, &N::V18, &[202610061]),
    ]
};

/// What a page magic says about who wrote the page.
#[derive(Debug, Clone, Copy)]
pub enum Magic {
    /// A release that is read.
    Known(&'static Version),
    /// A development version on the way to the release named.
    PreRelease(&'static str),
    /// Older than 9.5: another record format.
    TooOld,
    /// Newer than the newest release known.
    TooNew,
    /// A known magic with its bytes swapped: a server of the other byte order.
    ByteSwapped(&'static Version),
    /// Not a WAL page.
    Unknown,
}

impl Magic {
    /// Judges the first two bytes of a page.
    pub fn of(magic: u16) -> Magic {
        let find = |m: u16| VERSIONS.iter().find(|v| v.magic == m);
        if let Some(version) = find(magic) {
            return Magic::Known(version);
        }
        if let Some(version) = find(magic.swap_bytes()) {
            return Magic::ByteSwapped(version);
        }
        match magic {
            // 9.0 to 9.4 and their development versions: 9.4 is 0xD07E.
            0xD060..0xD087 => Magic::TooOld,
            0xD087..=0xD1FF => match VERSIONS.iter().find(|v| v.magic > magic) {
                Some(next) => Magic::PreRelease(next.name),
                None => Magic::TooNew,
            },
            _ => Magic::Unknown,
        }
    }
}

impl Version {
    /// Whether a record may belong to resource manager `id`.
    #[inline(always)]
    pub fn has_rmgr(&self, id: u8) -> bool {
        id <= self.rmgr_max || (self.custom_rmgrs && id >= FIRST_CUSTOM_RMGR)
    }

    /// Whether this is `first` or a later release. For what takes payloads apart only: everything else
    /// asks the columns of the table.
    pub(crate) fn since(&self, first: Release) -> bool {
        self.index >= first as usize
    }

    /// The newest release that is read.
    pub fn newest() -> &'static Version {
        &VERSIONS[VERSIONS.len() - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order() {
        assert!(VERSIONS.windows(2).all(|w| w[0].magic < w[1].magic));
        assert!(VERSIONS.iter().enumerate().all(|(i, v)| v.index == i));
    }

    #[test]
    fn releases_are_places_in_the_table() {
        for (release, name) in [(Release::V9_6, "9.6"), (Release::V14, "14"), (Release::V19, "19")]
        {
            assert_eq!(VERSIONS[release as usize].name, name);
        }
        assert!(VERSIONS[7].since(Release::V15) && !VERSIONS[6].since(Release::V15));
    }

    #[test]
    fn every_magic_has_a_name() {
        assert!(matches!(Magic::of(0xD110), Magic::Known(v) if v.name == "15"));
        assert!(matches!(Magic::of(0x10D1), Magic::ByteSwapped(v) if v.name == "15"));
        assert!(matches!(Magic::of(0xD120), Magic::PreRelease("19")));
        assert!(matches!(Magic::of(0xD088), Magic::PreRelease("9.6")));
        assert!(matches!(Magic::of(0xD07E), Magic::TooOld));
        assert!(matches!(Magic::of(0xD123), Magic::TooNew));
        assert!(matches!(Magic::of(0), Magic::Unknown));
        assert!(matches!(Magic::of(0x4141), Magic::Unknown));
    }
}
