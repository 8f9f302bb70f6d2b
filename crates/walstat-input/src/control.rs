//! `pg_control`: what a cluster is, how its files are built and where it stands (`ControlFileData` in
//! `src/include/catalog/pg_control.h`). No other module reads it.

use super::storage;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;
use walstat_format::crc::Crc32c;
use walstat_format::cursor::at;
use walstat_format::data_page::is_page_size;
use walstat_format::lsn::Lsn;
use walstat_format::payload::checkpoint::{Checkpoint, CheckpointLayout};
use walstat_format::version::VERSIONS;

/// Length of the file; what the server uses of it is much shorter.
pub(super) const FILE_BYTES: u64 = 8192;
/// So often a file of a running server is read: a reader can see half of what it is writing.
pub const TRIES: u32 = 5;
/// Between two tries.
pub const PAUSE: Duration = Duration::from_millis(20);

/// Where those fields lie that moved between releases, by the version of the file
/// (`PG_CONTROL_VERSION`).
struct Layout {
    version: u32,
    checkpoint_copy: usize,
    checkpoint: CheckpointLayout,
    /// `blcksz`; the other sizes follow it.
    sizes: usize,
    /// Whether the pages of a segment of `pg_xact` are among the sizes.
    has_slru_pages: bool,
    crc: usize,
}

const fn layout(
    version: u32,
    checkpoint_copy: usize,
    checkpoint: CheckpointLayout,
    sizes: usize,
    crc: usize,
) -> Layout {
    Layout { version, checkpoint_copy, checkpoint, sizes, has_slru_pages: false, crc }
}

/// 942 is 9.5, 960 is 9.6, 1300 is 13 to 16; the others are the release times hundred.
const LAYOUTS: [Layout; 9] = {
    use CheckpointLayout as C;
    [
        layout(942, 48, C::V9_5, 216, 256),
        layout(960, 48, C::V9_5, 216, 256),
        layout(1002, 48, C::V9_5, 216, 288),
        layout(1100, 40, C::V9_5, 208, 280),
        layout(1201, 40, C::V12, 216, 288),
        layout(1300, 40, C::V12, 216, 288),
        layout(1700, 40, C::V17, 216, 288),
        layout(1800, 40, C::V17, 216, 292),
        Layout { has_slru_pages: true, ..layout(1905, 40, C::V19, 224, 308) },
    ]
};

/// What the cluster was doing when the file was written last (`DBState`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Starting for the first time.
    Starting,
    /// Stopped, everything is in its files.
    ShutDown,
    /// A standby, stopped.
    ShutDownInRecovery,
    /// Stopping.
    ShuttingDown,
    /// In recovery after a crash.
    InCrashRecovery,
    /// In recovery from an archive, or a standby that runs.
    InArchiveRecovery,
    /// Running, or it was when it crashed.
    InProduction,
}

impl State {
    /// Whether a server may be running that writes WAL there, or receives it.
    pub fn runs(self) -> bool {
        matches!(self, State::InProduction | State::InArchiveRecovery | State::ShuttingDown)
    }

    fn of(number: u32) -> Option<State> {
        use State::*;
        let states = [
            Starting,
            ShutDown,
            ShutDownInRecovery,
            ShuttingDown,
            InCrashRecovery,
            InArchiveRecovery,
            InProduction,
        ];
        states.get(usize::try_from(number).ok()?).copied()
    }

    /// Whether it replays what another server has written, and begins again at a restart point of its own.
    pub fn is_standby(self) -> bool {
        matches!(self, State::InArchiveRecovery | State::ShutDownInRecovery)
    }
}

/// What `pg_control` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Control {
    /// The cluster.
    pub system_identifier: u64,
    /// Version of this file's own layout.
    pub control_version: u32,
    /// Version of the catalogs' layouts.
    pub catalog_version: u32,
    /// What the cluster was doing.
    pub state: State,
    /// Start of the last checkpoint's record.
    pub checkpoint_lsn: Lsn,
    /// What that record says.
    pub checkpoint: Checkpoint,
    /// Up to where WAL has to be replayed until the files fit together (`minRecoveryPoint`); of a primary 0.
    pub min_recovery_point: Lsn,
    /// The timeline of that place.
    pub min_recovery_timeline: u32,
    /// Bytes of a data page.
    pub page_bytes: u32,
    /// Pages of one file of a relation; the rest is in further files.
    pub file_pages: u32,
    /// Pages of one file of `pg_xact` and other SLRUs.
    pub slru_pages: u32,
    /// Bytes of a WAL page.
    pub wal_page_bytes: u32,
    /// Bytes of a WAL segment.
    pub wal_segment_bytes: u32,
    /// Bytes of a name (`NAMEDATALEN`).
    pub name_bytes: u32,
    /// The setting `wal_level` of the server that wrote it last.
    pub wal_level: &'static str,
    /// The setting `wal_log_hints`.
    pub wal_log_hints: bool,
    /// Whether all data pages have checksums; not while they are being switched on or off (19).
    pub data_checksums: bool,
}

/// Why `pg_control` cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Cut off.
    #[error("found {0} bytes, expected a pg_control of {FILE_BYTES} bytes")]
    Length(usize),
    /// Of a server of the other byte order.
    #[error("found a pg_control with its bytes swapped, of a big-endian server")]
    ByteSwapped,
    /// Of a release that is not supported.
    #[error("found version {0} of pg_control, expected that of a release from 9.5 to 19")]
    Version(u32),
    /// Torn, damaged, or of a 32-bit server.
    #[error("found checksum 0x{found:08X}, expected 0x{expected:08X}")]
    Checksum {
        /// As computed.
        found: u32,
        /// As the file says.
        expected: u32,
    },
    /// A number that no server writes.
    #[error("found {1} for {0}, which no server has")]
    Nonsense(&'static str, u32),
}

/// Where `pg_control` lies in a data directory.
pub fn path(data_directory: &Path) -> PathBuf {
    data_directory.join("global/pg_control")
}

/// Files with which a server begins elsewhere than its `pg_control` says, or with WAL from an archive.
const FROM_ELSEWHERE: [&str; 4] =
    ["backup_label", "recovery.signal", "standby.signal", "recovery.conf"];

/// Whether a server that starts in a data directory recovers from a backup, or with WAL from an archive.
pub fn is_told_to_recover(data_directory: &Path) -> bool {
    FROM_ELSEWHERE.iter().any(|name| data_directory.join(name).exists())
}

/// The `pg_control` of a data directory, if that says where a server that starts there begins.
pub fn begins_by(data_directory: &Path) -> Option<Control> {
    read(data_directory).ok().filter(|_| !is_told_to_recover(data_directory))
}

/// The cluster of a primary whose data directory it is, and the timeline that it is on: a promotion notes
/// that as the one of the minimum recovery point, before the first checkpoint on it.
pub fn timeline_of_primary(data_directory: &Path) -> Option<(u64, u32)> {
    let control = begins_by(data_directory).filter(|control| !control.state.is_standby())?;
    let timeline = control.checkpoint.timeline.max(control.min_recovery_timeline);
    Some((control.system_identifier, timeline))
}

/// Reads the `pg_control` of a data directory; reads again for a moment if its checksum fails, because
/// a server may be writing it.
pub fn read(data_directory: &Path) -> Result<Control, ControlError> {
    let path = path(data_directory);
    let mut tries = 1;
    loop {
        let mut bytes = Vec::new();
        // A pipe that nobody writes to is not waited for.
        if storage::metadata(&path)?.kind != storage::Kind::File {
            return Err(std::io::Error::other("found something else, expected a file").into());
        }
        storage::open(&path)?.take(FILE_BYTES).read_to_end(&mut bytes)?;
        match Control::parse(&bytes) {
            Err(ControlError::Checksum { .. }) if tries < TRIES => tries += 1,
            result => return result,
        }
        std::thread::sleep(PAUSE);
    }
}

impl Control {
    /// Reads the bytes of a `pg_control`.
    pub fn parse(bytes: &[u8]) -> Result<Control, ControlError> {
        let short = || ControlError::Length(bytes.len());
        let control_version: u32 = at(bytes, 8).ok_or_else(short)?;
        let layout = LAYOUTS.iter().find(|layout| layout.version == control_version);
        let layout = layout.ok_or(match control_version {
            swapped if swapped.is_multiple_of(65536) && swapped > 0 => ControlError::ByteSwapped,
            other => ControlError::Version(other),
        })?;
        let covered = bytes.get(..layout.crc).ok_or_else(short)?;
        let expected = at(bytes, layout.crc).ok_or_else(short)?;
        let found = Crc32c::finish(Crc32c::detect().update(Crc32c::START, covered));
        if found != expected {
            return Err(ControlError::Checksum { found, expected });
        }
        fields(covered, layout).ok_or_else(short)?.checked()
    }

    fn checked(self) -> Result<Control, ControlError> {
        let page = usize::try_from(self.page_bytes).is_ok_and(is_page_size);
        let sound = [
            ("bytes of a data page", self.page_bytes, page),
            ("pages of a file", self.file_pages, self.file_pages > 0),
            ("pages of a file of pg_xact", self.slru_pages, self.slru_pages > 0),
            ("bytes of a name", self.name_bytes, self.name_bytes > 0),
        ];
        match sound.iter().find(|(_, _, sound)| !sound) {
            Some((what, found, _)) => Err(ControlError::Nonsense(what, *found)),
            None => Ok(self),
        }
    }
}

/// So many bytes before the sizes it begins, with `wal_log_hints` behind it.
const WAL_LEVEL_BEFORE: usize = 44;
/// So many bytes before the sizes `minRecoveryPoint` begins, with `minRecoveryPointTLI` behind it.
const MIN_RECOVERY_POINT_BEFORE: usize = 80;

fn wal_level(bytes: &[u8], layout: &Layout) -> Option<&'static str> {
    let number: u32 = at(bytes, layout.sizes - WAL_LEVEL_BEFORE)?;
    // 9.5, whose `pg_control` has this version, and all later ones.
    let release = VERSIONS.get(usize::from(layout.version > 942))?;
    // One that is not known is no reason to know nothing else.
    Some(release.wal_levels.get(usize::try_from(number).ok()?).copied().unwrap_or("unknown"))
}

/// Pages of one file of `pg_xact` where `pg_control` does not say it (up to 18).
const SLRU_PAGES: u32 = 32;

fn fields(bytes: &[u8], layout: &Layout) -> Option<Control> {
    let slru = if layout.has_slru_pages { 4 } else { 0 };
    let size = |index: usize| at::<u32>(bytes, layout.sizes + 4 * index);
    let later = |index: usize| at::<u32>(bytes, layout.sizes + slru + 4 * index);
    Some(Control {
        system_identifier: at(bytes, 0)?,
        control_version: layout.version,
        catalog_version: at(bytes, 12)?,
        state: State::of(at(bytes, 16)?)?,
        checkpoint_lsn: Lsn(at(bytes, 32)?),
        checkpoint: Checkpoint::parse(bytes.get(layout.checkpoint_copy..)?, layout.checkpoint)?,
        min_recovery_point: Lsn(at(bytes, layout.sizes - MIN_RECOVERY_POINT_BEFORE)?),
        min_recovery_timeline: at(bytes, layout.sizes - MIN_RECOVERY_POINT_BEFORE + 8)?,
        page_bytes: size(0)?,
        file_pages: size(1)?,
        slru_pages: if layout.has_slru_pages { size(2)? } else { SLRU_PAGES },
        wal_page_bytes: later(2)?,
        wal_segment_bytes: later(3)?,
        name_bytes: later(4)?,
        wal_level: wal_level(bytes, layout)?,
        wal_log_hints: at(bytes, layout.sizes - WAL_LEVEL_BEFORE + 4)?,
        data_checksums: later(9)? == 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file whose numbers say where they were written, with its checksum.
    fn control(layout: &Layout) -> Vec<u8> {
        let mut bytes = vec![0u8; 8192];
        let mut put = |at: usize, value: u32| {
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        };
        for (at, value) in [(0, 77), (8, layout.version), (12, 2022), (16, 6), (32, 0x28)] {
            put(at, value);
        }
        put(layout.checkpoint_copy, 0x20);
        put(layout.sizes - 44, 1);
        put(layout.sizes - 40, 1);
        let slru: &[u32] = if layout.has_slru_pages { &[64] } else { &[] };
        let sizes = [&[8192, 131072][..], slru, &[4096, 1 << 24, 64, 0, 0, 0, 0, 1]].concat();
        for (index, value) in sizes.into_iter().enumerate() {
            put(layout.sizes + 4 * index, value);
        }
        checksummed(bytes, layout)
    }

    fn checksummed(mut bytes: Vec<u8>, layout: &Layout) -> Vec<u8> {
        let crc = Crc32c::portable().update(Crc32c::START, &bytes[..layout.crc]);
        let crc = Crc32c::finish(crc).to_le_bytes();
        bytes[layout.crc..layout.crc + 4].copy_from_slice(&crc);
        bytes
    }

    #[test]
    fn fields_are_found_in_each_layout() {
        for layout in &LAYOUTS {
            let found = Control::parse(&control(layout)).expect("sound");
            assert_eq!((found.system_identifier, found.catalog_version), (77, 2022));
            assert_eq!((found.state, found.checkpoint_lsn), (State::InProduction, Lsn(0x28)));
            assert_eq!(found.checkpoint.redo, Lsn(0x20));
            assert_eq!((found.page_bytes, found.file_pages), (8192, 131072));
            assert_eq!((found.wal_page_bytes, found.wal_segment_bytes), (4096, 1 << 24));
            assert_eq!((found.name_bytes, found.data_checksums), (64, true));
            let level = if layout.version > 942 { "replica" } else { "archive" };
            assert_eq!((found.wal_level, found.wal_log_hints), (level, true));
            assert_eq!(found.slru_pages, if layout.has_slru_pages { 64 } else { 32 });
        }
    }

    #[test]
    fn each_fault_is_named() {
        let layout = &LAYOUTS[5];
        let sound = control(layout);
        let fault = |bytes: &[u8]| Control::parse(bytes).expect_err("a fault").to_string();
        assert!(fault(&sound[..100]).starts_with("found 100 bytes"));
        let mut other = sound.clone();
        other[40] ^= 1;
        assert!(fault(&other).starts_with("found checksum 0x"));
        other[8..12].copy_from_slice(&1301u32.to_le_bytes());
        assert!(fault(&other).starts_with("found version 1301"));
        other[8..12].copy_from_slice(&1300u32.swap_bytes().to_le_bytes());
        assert!(fault(&other).contains("bytes swapped"));
        let mut other = sound;
        other[216..220].copy_from_slice(&8000u32.to_le_bytes());
        let other = checksummed(other, layout);
        assert_eq!(fault(&other), "found 8000 for bytes of a data page, which no server has");
    }
}
