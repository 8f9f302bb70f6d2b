//! Why there is so much in `pg_wal`: what keeps segments there, and how many, in sentences.

use super::model::follow::{Keeper, PgWal};
use std::path::Path;
use walstat_format::lsn::Lsn;
use walstat_format::segment::SegmentName;
use walstat_names::wal_keepers::{self, Kept, Slot};

/// What a data directory keeps, whose WAL goes up to `position`.
pub fn read(directory: &Path, position: Lsn, warnings: &mut Vec<String>) -> Option<PgWal> {
    wal_keepers::read(directory, warnings).map(|kept| told(&kept, position))
}

/// The same in sentences, if anything is kept longer than recovery needs it.
pub fn notes(directory: &Path, position: Lsn) -> Vec<String> {
    let mut notes = Vec::new();
    let Some(pg_wal) = read(directory, position, &mut notes) else { return notes };
    if pg_wal.kept_segments > 0 {
        notes.push(pg_wal.text);
        notes.extend(pg_wal.keepers.into_iter().map(|keeper| keeper.text));
    }
    notes
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
    let reason = match (older, keepers.is_empty()) {
        (0, _) => String::new(),
        (_, false) => format!(", {older} kept beyond that"),
        (_, true) => format!(", {older} before it that the next checkpoint removes or reuses"),
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
    let kept_segments = if keepers.is_empty() { 0 } else { older };
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
            text: slot_text(slot, restart, segments, behind),
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
        _ => "archive_command fails, or is slower than WAL is written",
    };
    let since = oldest.start(size);
    Some(Keeper {
        keeper: "archiving".to_owned(),
        name: None,
        since_lsn: since.map(|of| of.to_string()),
        segments,
        bytes: segments * kept.segment_bytes,
        text: format!("{} to be archived, the oldest {oldest}: {why}", waits(waiting)),
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
        bytes: keep,
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

fn slot_text(slot: &Slot, restart: Lsn, segments: u64, behind: u64) -> String {
    let kind = if slot.is_logical { "logical" } else { "physical" };
    let saved = slot.saved.and_then(|time| jiff::Timestamp::try_from(time).ok());
    let saved = saved.map(|time| format!(", as saved {}", time.strftime("%Y-%m-%d %H:%M:%S")));
    format!(
        "replication slot {} ({kind}) keeps {}: it needs WAL since {restart}, {} ago{}; drop it if nobody \
         uses it, or set max_slot_wal_keep_size",
        slot.name,
        segments_text(segments),
        mb(behind),
        saved.unwrap_or_default()
    )
}
