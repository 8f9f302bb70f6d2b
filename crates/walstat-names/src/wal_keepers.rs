//! What a server keeps in `pg_wal`, and what for: replication slots, segments that wait to be archived, the
//! WAL summarizer, `wal_keep_size`. All by files; what a running server knows better it writes there at each
//! checkpoint.

use crate::data_directory::{read_at_most, warning};
use crate::server_settings::{self, Keeping};
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};
use walstat_format::catalog_layout::NAME_BYTES;
use walstat_format::crc::Crc32c;
use walstat_format::cursor::at;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::OrderBy;
use walstat_format::segment::SegmentName;
use walstat_input::control;
use walstat_input::input_kind::{ARCHIVE_STATUS, SERVER_DIRECTORIES};

/// `SLOT_MAGIC` in `src/backend/replication/slot.c`.
const SLOT_MAGIC: u32 = 0x0105_1CA1;
/// No state of a slot is longer.
const SLOT_BYTES_MAX: u64 = 4096;
/// What the checksum covers begins behind it.
const CHECKSUMMED: usize = 8;
/// Where fields lie that have not moved since 9.5: name, database, `restart_lsn`.
const NAME: usize = 16;
const DATABASE: usize = NAME + NAME_BYTES;
const PERSISTENCY: usize = DATABASE + 4;
const RESTART_LSN: usize = DATABASE + 16;
/// Where the slot file says why a slot was invalidated; the field exists from this file version on (release
/// 16).
const INVALIDATED: usize = RESTART_LSN + 8;
const VERSION_WITH_CAUSE: u32 = 3;

/// `RS_TEMPORARY` in `src/include/replication/slot.h`.
const TEMPORARY: u32 = 2;

/// Where the summarizer writes (`XLOGDIR/summaries`), and what its files are called.
const SUMMARIES: &str = "summaries";
const SUMMARY_SUFFIX: &str = ".summary";

/// A replication slot. That of a session, and one that is being created, keep WAL like any other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Its name.
    pub name: String,
    /// Whether it is one of logical replication.
    pub is_logical: bool,
    /// The oldest WAL that it needs; `None`: it keeps nothing (any more).
    pub restart: Option<Lsn>,
    /// Whether the server has given it up (16+), as when it exceeded `max_slot_wal_keep_size`.
    pub is_invalid: bool,
    /// When that was saved.
    pub saved: Option<SystemTime>,
    /// Whether it was saved since the last checkpoint began, and made before that: a checkpoint saves a slot
    /// that has moved.
    pub is_moving: bool,
    /// When it was made, where the file system tells.
    pub made: Option<SystemTime>,
    /// Whether it is that of a session, and goes with it.
    pub is_temporary: bool,
}

/// What lies in `pg_wal`, and what for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Numbers of the segments, ascending: one for each file, of whatever timeline.
    pub segments: Vec<u64>,
    /// Where recovery would begin.
    pub redo: Lsn,
    /// Of a standby: up to where it has replayed at least.
    pub replayed: Option<Lsn>,
    /// Up to where WAL is summarized, if the server does that.
    pub summarized: Option<Lsn>,
    /// Replication slots.
    pub slots: Vec<Slot>,
    /// Segments that wait to be archived, ascending.
    pub ready: Vec<SegmentName>,
    /// What could not be read, and why: it may keep more.
    pub unread: Vec<String>,
    /// Settings.
    pub settings: Keeping,
}

/// Reads what a data directory keeps; `None` where it is none. `warnings` says what cannot be read.
pub fn read(directory: &Path, warnings: &mut Vec<String>) -> Option<Kept> {
    let control = control::read(directory).ok()?;
    let wal =
        SERVER_DIRECTORIES.iter().map(|name| directory.join(name)).find(|wal| wal.is_dir())?;
    let segment_bytes = control.wal_segment_bytes;
    let mut unread = Vec::new();
    let names = names_in(&wal, &mut unread);
    let numbers = names.iter().filter_map(|name| SegmentName::parse(name)?.number(segment_bytes));
    let mut segments: Vec<u64> = numbers.collect();
    segments.sort_unstable();
    let status = names_in(&wal.join(ARCHIVE_STATUS), &mut unread);
    let ready = status.iter().filter_map(|name| SegmentName::parse(name.strip_suffix(".ready")?));
    let mut ready: Vec<SegmentName> = ready.collect();
    ready.sort_unstable();
    let settings = server_settings::keeping(directory, u64::from(segment_bytes));
    let oldest = segments.first().map(|oldest| Lsn(oldest * u64::from(segment_bytes)));
    let summaries = settings.summarizes.then(|| names_in(&wal.join(SUMMARIES), &mut unread));
    let is_standby = control.state.is_standby();
    let mut slots = slots(&directory.join("pg_replslot"), &mut unread);
    warnings.extend_from_slice(&unread);
    let begun = u64::try_from(control.checkpoint.time.second()).unwrap_or_default();
    let begun = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(begun));
    let is_moving = |slot: &Slot| {
        let is_since = |time: SystemTime| begun.is_some_and(|begun| time >= begun);
        slot.saved.is_some_and(is_since) && !slot.made.is_some_and(is_since)
    };
    slots.iter_mut().for_each(|slot| slot.is_moving = is_moving(slot));
    Some(Kept {
        segment_bytes: u64::from(segment_bytes),
        segments,
        redo: control.checkpoint.redo,
        replayed: Some(control.min_recovery_point).filter(|_| is_standby),
        summarized: summaries.and_then(|names| summarized(&names).or(oldest)),
        slots,
        ready,
        unread,
        settings,
    })
}

/// Up to where the newest summary goes: their names are timeline, begin and end, in 8, 16 and 16 digits.
fn summarized(names: &[String]) -> Option<Lsn> {
    let end = |name: &String| {
        let digits = name.strip_suffix(SUMMARY_SUFFIX).filter(|digits| digits.len() == 40)?;
        u64::from_str_radix(digits.get(24..)?, 16).ok().map(Lsn)
    };
    names.iter().filter_map(end).max()
}

/// The names in a folder, which need not be there.
fn names_in(folder: &Path, warnings: &mut Vec<String>) -> Vec<String> {
    let entries = fs::read_dir(folder);
    let error = entries.as_ref().err().filter(|error| error.kind() != io::ErrorKind::NotFound);
    warnings.extend(error.map(|error| warning(folder, error)));
    entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

fn slots(folder: &Path, warnings: &mut Vec<String>) -> Vec<Slot> {
    let mut slots = Vec::new();
    for name in names_in(folder, warnings) {
        let path = folder.join(&name).join("state");
        if name.ends_with(".tmp") {
            continue;
        }
        match read_at_most(&path, SLOT_BYTES_MAX) {
            Ok(bytes) => match slot(&bytes) {
                Ok(slot) => {
                    let saved = fs::metadata(&path).and_then(|file| file.modified()).ok();
                    let made = fs::metadata(folder.join(&name)).and_then(|made| made.created());
                    slots.push(Slot { saved, made: made.ok(), ..slot });
                }
                Err(found) => warnings.push(warning(&path, found)),
            },
            // A slot that is being made or dropped has a folder of another name, or no state.
            Err(error) if is_missing(&error) => {}
            Err(error) => warnings.push(warning(&path, error)),
        }
    }
    slots.order_by(|a, b| a.name.cmp(&b.name));
    slots
}

/// Whether there is no such file, or what should be its folder is a file itself.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Reads a slot's state; `Err`: what is wrong with it.
fn slot(bytes: &[u8]) -> Result<Slot, String> {
    let short = || format!("found {} bytes, expected the state of a replication slot", bytes.len());
    let word = |place| at::<u32>(bytes, place).ok_or_else(short);
    let (magic, expected, version) = (word(0)?, word(4)?, word(8)?);
    if magic != SLOT_MAGIC {
        return Err(format!(
            "found magic 0x{magic:08X}, expected 0x{SLOT_MAGIC:08X}, that of a slot"
        ));
    }
    let length = usize::try_from(word(12)?).unwrap_or(usize::MAX);
    let covered = bytes.get(CHECKSUMMED..NAME.saturating_add(length)).ok_or_else(short)?;
    let found = Crc32c::finish(Crc32c::detect().update(Crc32c::START, covered));
    if found != expected {
        return Err(format!("found checksum 0x{found:08X}, expected 0x{expected:08X}"));
    }
    let name = bytes.get(NAME..DATABASE).ok_or_else(short)?;
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let restart: u64 = at(bytes, RESTART_LSN).ok_or_else(short)?;
    let is_invalid = version >= VERSION_WITH_CAUSE && word(INVALIDATED)? != 0;
    Ok(Slot {
        name: String::from_utf8_lossy(name).into_owned(),
        is_logical: word(DATABASE)? != 0,
        restart: Some(Lsn(restart)).filter(|restart| restart.0 > 0 && !is_invalid),
        is_invalid,
        saved: None,
        is_moving: false,
        made: None,
        is_temporary: word(PERSISTENCY)? == TEMPORARY,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(version: u32, cause: u32) -> Vec<u8> {
        let mut bytes = vec![0; 200];
        let mut put = |place: usize, value: u32| {
            bytes[place..place + 4].copy_from_slice(&value.to_le_bytes());
        };
        for (place, value) in [(0, SLOT_MAGIC), (8, version), (12, 184), (DATABASE, 5)] {
            put(place, value);
        }
        put(RESTART_LSN, 0x100_0028);
        put(INVALIDATED, cause);
        bytes[NAME..NAME + 4].copy_from_slice(b"dead");
        let crc = Crc32c::portable().update(Crc32c::START, &bytes[8..]);
        bytes[4..8].copy_from_slice(&Crc32c::finish(crc).to_le_bytes());
        bytes
    }

    #[test]
    fn a_slot_keeps_wal_unless_it_is_invalid() {
        let restart = |version, cause| slot(&state(version, cause)).map(|slot| slot.restart);
        assert_eq!(restart(2, 0), Ok(Some(Lsn(0x100_0028))));
        assert_eq!(restart(2, 7), Ok(Some(Lsn(0x100_0028))), "no cause in this version");
        assert_eq!((restart(5, 0), restart(5, 1)), (Ok(Some(Lsn(0x100_0028))), Ok(None)));
        assert_eq!(slot(&state(5, 1)).map(|slot| slot.is_invalid), Ok(true));
        let slot = slot(&state(5, 0)).expect("a slot");
        assert_eq!((slot.name.as_str(), slot.is_logical, slot.is_invalid), ("dead", true, false));
    }

    #[test]
    fn the_newest_summary_says_up_to_where_wal_is_summarized() {
        let names = [
            "0000000100000000010000280000000002000060.summary",
            "0000000100000000020000600000000A03000028.summary",
            "temp.summary",
        ];
        let names = names.map(str::to_owned);
        assert_eq!(summarized(&names), Some(Lsn(0xA_0300_0028)));
        assert_eq!(summarized(&names[2..]), None);
    }

    /// One that is a file cannot be read by anybody.
    #[test]
    fn a_folder_that_cannot_be_read_is_told_and_one_that_is_missing_is_not() {
        let folder = std::env::temp_dir().join(format!("walstat-keepers-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("pg_replslot"), b"").expect("a file");
        fs::create_dir_all(folder.join("slots/dead/state")).expect("a folder");
        fs::create_dir_all(folder.join("slots/made")).expect("a folder");
        let told = |name: &str| {
            let mut warnings = Vec::new();
            assert_eq!(slots(&folder.join(name), &mut warnings), []);
            warnings.len()
        };
        assert_eq!([told("pg_replslot"), told("missing"), told("slots")], [1, 0, 1]);
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn a_damaged_state_is_told() {
        let mut bytes = state(5, 0);
        bytes[100] ^= 1;
        assert!(slot(&bytes).is_err_and(|text| text.starts_with("found checksum")));
        assert!(slot(&bytes[..50]).is_err());
        bytes[0] = 0;
        assert!(slot(&bytes).is_err_and(|text| text.starts_with("found magic")));
    }
}
