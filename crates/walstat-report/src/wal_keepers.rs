//! Why there is so much in `pg_wal`: what keeps segments there, and how many, in sentences.

use super::model::follow::{Keeper, PgWal};
use std::path::Path;
use walstat_format::lsn::Lsn;
use walstat_format::segment::SegmentName;
use walstat_names::server_settings::Keeping;
use walstat_names::wal_keepers::{self, Kept, Slot};

/// What a data directory keeps, whose WAL goes up to `position`.
pub fn read(directory: &Path, position: Lsn, warnings: &mut Vec<String>) -> Option<PgWal> {
    wal_keepers::read(directory, warnings).map(|kept| told(&kept, position))
}

fn told(kept: &Kept, position: Lsn) -> PgWal {
    let bytes = kept.segment_bytes;
    // Who follows may not have come as far as the last checkpoint.
    let position = position.max(kept.redo);
    let number = |lsn: Lsn| lsn.0 / bytes;
    let (redo, current) = (number(kept.redo), number(position));
    let count = |from: u64, to: u64| count(kept, from, to);
    let all = kept.segments.len() as u64;
    let older = count(0, redo);
    let ahead = count(current + 1, u64::MAX);
    let mut keepers = slots(kept, position);
    keepers.extend(archiving(kept));
    keepers.extend(wal_keep_size(kept, position));
    keepers.retain(|keeper| keeper.segments > 0);
    keepers.sort_by_key(|keeper| std::cmp::Reverse(keeper.segments));
    let is_kept = !keepers.is_empty();
    keepers.extend(kept.slots.iter().filter(|slot| slot.is_invalid).map(invalid_slot));
    let reason = match (older, is_kept) {
        (0, _) => String::new(),
        (_, true) => format!(", {older} kept beyond that"),
        (_, false) => format!(", {older} before it that the next checkpoint removes or reuses"),
    };
    let limit = kept.settings.max_wal_size.map(|size| format!("; max_wal_size is {}", mb(size)));
    let text = format!(
        "pg_wal has {}, {}: {} since the last redo point {}{reason}, {ahead} ahead for reuse{}",
        segments_text(all),
        mb(all * bytes),
        count(redo, current + 1),
        kept.redo,
        limit.unwrap_or_default()
    );
    let kept_segments = if is_kept { older } else { 0 };
    PgWal { segments: all, bytes: all * bytes, kept_segments, ahead_segments: ahead, text, keepers }
}

/// How many segments there are with these numbers.
fn count(kept: &Kept, from: u64, to: u64) -> u64 {
    kept.segments.iter().filter(|of| (from..to).contains(*of)).count() as u64
}

fn slots(kept: &Kept, position: Lsn) -> Vec<Keeper> {
    let redo = kept.redo.0 / kept.segment_bytes;
    let keeper = |slot: &Slot| {
        let restart = slot.restart?;
        let segments = count(kept, restart.0 / kept.segment_bytes, redo);
        let behind = position.0.saturating_sub(restart.0);
        Some(Keeper {
            keeper: "replication_slot".to_owned(),
            name: Some(slot.name.clone()),
            since_lsn: Some(restart.to_string()),
            segments,
            bytes: behind,
            text: slot_text(slot, restart, (segments, behind), &kept.settings),
        })
    };
    kept.slots.iter().filter_map(keeper).collect()
}

fn archiving(kept: &Kept) -> Option<Keeper> {
    let oldest = kept.ready.first()?;
    // What lies after the last redo point is there anyway.
    let redo = kept.redo.0 / kept.segment_bytes;
    let size = u32::try_from(kept.segment_bytes).unwrap_or(u32::MAX);
    let is_kept = |of: &&SegmentName| of.number(size).is_some_and(|number| number < redo);
    let segments = kept.ready.iter().filter(is_kept).count() as u64;
    let waiting = kept.ready.len() as u64;
    let why = match kept.settings.archives {
        // One that is waiting just now is nothing unusual.
        _ if waiting <= 2 => "archived next",
        Some(false) => "archive_mode is off, and nothing archives them",
        _ if kept.settings.has_no_archiver => "archive_mode is on, but archive_command is empty",
        _ => "archive_command fails, or is slower than WAL is written",
    };
    let since = oldest.start(size);
    Some(Keeper {
        keeper: "archiving".to_owned(),
        name: None,
        since_lsn: since.map(|of| of.to_string()),
        segments,
        bytes: segments * kept.segment_bytes,
        text: format!("{} to be archived: {why}; the oldest is {oldest}", waits(waiting)),
    })
}

fn wal_keep_size(kept: &Kept, position: Lsn) -> Option<Keeper> {
    let keep = kept.settings.wal_keep_bytes.filter(|keep| *keep > 0)?;
    let from = position.0.saturating_sub(keep) / kept.segment_bytes;
    let segments = count(kept, from, kept.redo.0 / kept.segment_bytes);
    Some(Keeper {
        keeper: "wal_keep_size".to_owned(),
        name: None,
        since_lsn: Some(Lsn(from * kept.segment_bytes).to_string()),
        segments,
        bytes: segments * kept.segment_bytes,
        text: format!("{} keeps {}", kept.settings.wal_keep_text, segments_text(segments)),
    })
}

fn waits(count: u64) -> String {
    if count == 1 { "1 segment waits".to_owned() } else { format!("{count} segments wait") }
}

fn segments_text(count: u64) -> String {
    if count == 1 { "1 segment".to_owned() } else { format!("{count} segments") }
}

fn mb(bytes: u64) -> String {
    match bytes {
        0..0x4000_0000 => format!("{} MB", bytes >> 20),
        _ => format!("{:.1} GB", bytes as f64 / f64::from(1 << 30)),
    }
}

fn invalid_slot(slot: &Slot) -> Keeper {
    let name = &slot.name;
    Keeper {
        keeper: "invalid_slot".to_owned(),
        name: Some(name.clone()),
        text: format!(
            "replication slot {name} is invalid: the server has given it up, it keeps nothing, and what used \
             it has to be set up anew (see invalidation_reason or wal_status in pg_replication_slots)"
        ),
        ..Keeper::default()
    }
}

fn slot_text(
    slot: &Slot,
    restart: Lsn,
    (segments, behind): (u64, u64),
    settings: &Keeping,
) -> String {
    let kind = if slot.is_logical { "logical" } else { "physical" };
    let saved = slot.saved.and_then(|time| jiff::Timestamp::try_from(time).ok());
    let saved = saved.map(|time| format!(", as saved {}", time.strftime("%Y-%m-%d %H:%M:%S")));
    let limit = match &settings.slot_limit_text {
        Some(text) => format!("; {text} limits that at the next checkpoint"),
        None if settings.limits_slots => ", or set max_slot_wal_keep_size".to_owned(),
        None => String::new(),
    };
    format!(
        "replication slot {} ({kind}) keeps {}: it needs WAL since {restart}, {} ago{}; drop it if nobody \
         uses it{limit}",
        slot.name,
        segments_text(segments),
        mb(behind),
        saved.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten segments of 1 MB up to the redo point, and one after it; a slot that needs the third.
    fn kept(settings: Keeping) -> Kept {
        let slot = |name: &str, is_invalid: bool| Slot {
            name: name.to_owned(),
            is_logical: false,
            restart: Some(Lsn(3 << 20)).filter(|_| !is_invalid),
            is_invalid,
            saved: None,
        };
        Kept {
            segment_bytes: 1 << 20,
            segments: (1..=11).collect(),
            redo: Lsn(11 << 20),
            slots: vec![slot("dead", false), slot("gone", true)],
            ready: (3..=10).map(|number| SegmentName::new(1, number, 1 << 20)).collect(),
            settings,
        }
    }

    fn texts(settings: Keeping) -> Vec<String> {
        let told = told(&kept(settings), Lsn((11 << 20) + 5));
        assert_eq!((told.segments, told.kept_segments), (11, 10));
        told.keepers.into_iter().map(|keeper| keeper.text).collect()
    }

    #[test]
    fn a_slot_is_told_with_what_the_release_has_against_it() {
        let slot = "replication slot dead (physical) keeps 8 segments: it needs WAL since 0/00300000, \
                    8 MB ago; drop it if nobody uses it";
        let first = |settings| texts(settings).swap_remove(0);
        assert_eq!(first(Keeping::default()), slot, "up to 12");
        let settings = || Keeping { limits_slots: true, ..Keeping::default() };
        assert_eq!(first(settings()), format!("{slot}, or set max_slot_wal_keep_size"));
        let limit = "max_slot_wal_keep_size = 1GB".to_owned();
        let limited = Keeping { slot_limit_text: Some(limit.clone()), ..settings() };
        assert_eq!(first(limited), format!("{slot}; {limit} limits that at the next checkpoint"));
    }

    #[test]
    fn why_segments_wait_to_be_archived_is_told() {
        let why = |archives, has_no_archiver| {
            texts(Keeping { archives, has_no_archiver, ..Keeping::default() }).swap_remove(1)
        };
        let oldest = "the oldest is 000000010000000000000003";
        let failing = "archive_command fails, or is slower than WAL is written";
        let wait = "8 segments wait to be archived";
        assert_eq!(why(Some(true), false), format!("{wait}: {failing}; {oldest}"));
        let empty = "archive_mode is on, but archive_command is empty";
        assert_eq!(why(Some(true), true), format!("{wait}: {empty}; {oldest}"));
        let off = "archive_mode is off, and nothing archives them";
        assert_eq!(why(Some(false), true), format!("{wait}: {off}; {oldest}"));
    }

    #[test]
    fn a_slot_that_the_server_has_given_up_keeps_nothing_and_is_told() {
        let told = told(&kept(Keeping::default()), Lsn(12 << 20));
        let last = told.keepers.last().expect("a slot");
        assert_eq!((last.keeper.as_str(), last.segments), ("invalid_slot", 0));
        assert!(last.text.starts_with("replication slot gone is invalid"), "{}", last.text);
    }
}
