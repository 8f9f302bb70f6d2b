//! Why there is so much in `pg_wal`: what keeps segments there, and how many, in sentences.

use super::model::follow::{Keeper, PgWal, UNREAD};
use super::model::size::disk_size;
use std::collections::BTreeSet;
use std::path::Path;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::OrderBy;
use walstat_format::segment::SegmentName;
use walstat_names::server_settings::{DEFAULT_MAX_WAL_SIZE, Keeping};
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
    let needed = needed(kept, position);
    let removable = count(0, redo) - needed;
    let since_redo = count(redo, current + 1);
    let ahead = count(current + 1, u64::MAX);
    let mut keepers = slots(kept, position);
    keepers.extend(archiving(kept));
    keepers.extend(summarizer(kept, position));
    keepers.extend(wal_keep_size(kept, position));
    keepers.extend(recovery(kept, position));
    keepers.retain(|keeper| keeper.segments > 0 || will_be_invalid(kept, keeper, position));
    keepers.order_by_key(|keeper| std::cmp::Reverse(keeper.segments));
    keepers.iter_mut().for_each(|keeper| keeper.kept_bytes = keeper.segments * bytes);
    keepers.extend(kept.slots.iter().filter(|slot| slot.is_invalid).map(invalid_slot));
    keepers.extend(kept.unread.iter().map(unread));
    let is_known = kept.unread.is_empty();
    let reason = match (needed, removable) {
        (0, 0) => String::new(),
        (_, 1..) if !is_known => format!(
            ", {needed} kept beyond that and {removable} of which it is not known whether something keeps \
             them"
        ),
        (_, 0) => format!(", {needed} kept beyond that"),
        (0, _) => format!(", {removable} before it that the next checkpoint removes or reuses"),
        _ => format!(
            ", {needed} kept beyond that and {removable} that the next checkpoint removes or reuses"
        ),
    };
    let limit = kept.settings.max_wal_size;
    let limit_text =
        limit.map(|size| format!("; max_wal_size is {} as configured", disk_size(size)));
    let text = format!(
        "pg_wal has {}, {}: {since_redo} since the last redo point {}{reason}, {ahead} ahead for reuse{}",
        segments_text(all),
        disk_size(all * bytes),
        kept.redo,
        limit_text.unwrap_or_default()
    );
    PgWal {
        segments: all,
        bytes: all * bytes,
        kept_segments: needed,
        removable_segments: is_known.then_some(removable),
        since_redo_segments: since_redo,
        ahead_segments: ahead,
        max_wal_size_bytes: limit,
        text,
        keepers,
    }
}

/// How many segments there are with these numbers.
fn count(kept: &Kept, from: u64, to: u64) -> u64 {
    kept.segments.iter().filter(|of| (from..to).contains(*of)).count() as u64
}

/// How many segments before the redo point no checkpoint removes, whatever keeps them.
fn needed(kept: &Kept, position: Lsn) -> u64 {
    let number = |lsn: Lsn| lsn.0 / kept.segment_bytes;
    let by_slots = kept.slots.iter().filter_map(|slot| slot.restart).map(number).min();
    let by_summarizer = kept.summarized.map(number);
    let by_size = asked_by_keep_size(kept, position);
    let first = [by_slots, by_summarizer, by_size].into_iter().flatten().min();
    let waiting: BTreeSet<u64> = match keeps_for_archiving(kept) {
        true => kept.ready.iter().filter_map(|of| of.number(size_of_segments(kept))).collect(),
        false => BTreeSet::new(),
    };
    let is_needed = |of: &u64| first.is_some_and(|first| *of >= first) || waiting.contains(of);
    let older = kept.segments.iter().filter(|of| **of < number(kept.redo));
    older.filter(|of| is_needed(of)).count() as u64
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
            slot_type: Some(slot_type(slot).to_owned()),
            saved_time: saved(slot).map(|time| format!("{time:.6}")),
            since_lsn: Some(restart.to_string()),
            segments,
            bytes: behind,
            text: slot_text(kept, slot, restart, (segments, position)),
            ..Keeper::default()
        })
    };
    kept.slots.iter().filter_map(keeper).collect()
}

/// Whether segments wait to be archived. A server that does not archive removes them all the same, as does a
/// standby that does not archive always (`XLogArchiveCheckDone`), and one or two that wait just now are
/// nothing unusual.
fn keeps_for_archiving(kept: &Kept) -> bool {
    let is_usual = kept.ready.len() <= 2 && !kept.settings.has_no_archiver;
    let is_standby = kept.replayed.is_some();
    let archives = match kept.settings.archives {
        Some(true) if is_standby => kept.settings.archives_always,
        archives => archives != Some(false),
    };
    archives && !kept.ready.is_empty() && !is_usual
}

fn size_of_segments(kept: &Kept) -> u32 {
    u32::try_from(kept.segment_bytes).unwrap_or(u32::MAX)
}

fn archiving(kept: &Kept) -> Option<Keeper> {
    let oldest = kept.ready.first().filter(|_| keeps_for_archiving(kept))?;
    // What lies after the last redo point is there anyway.
    let redo = kept.redo.0 / kept.segment_bytes;
    let size = size_of_segments(kept);
    let is_kept = |of: &&SegmentName| of.number(size).is_some_and(|number| number < redo);
    let segments = kept.ready.iter().filter(is_kept).count() as u64;
    let waiting = kept.ready.len() as u64;
    let why = match &kept.settings.archive_library {
        Some(library) => {
            format!("archive_library {library} fails, or is slower than WAL is written")
        }
        None if kept.settings.has_no_archiver => {
            "archive_mode is on, but archive_command is empty".to_owned()
        }
        None => "archive_command fails, or is slower than WAL is written".to_owned(),
    };
    let since = oldest.start(size);
    Some(Keeper {
        keeper: "archiving".to_owned(),
        since_lsn: since.map(|of| of.to_string()),
        segments,
        bytes: segments * kept.segment_bytes,
        text: format!("{} to be archived: {why}; the oldest is {oldest}", waits(waiting)),
        ..Keeper::default()
    })
}

/// What a standby has not replayed, or has replayed since its last restart point, if that is more than
/// restart points leave there (`max_wal_size`).
fn recovery(kept: &Kept, position: Lsn) -> Option<Keeper> {
    let replayed = kept.replayed?;
    let behind = position.0.saturating_sub(kept.redo.0);
    let limit = kept.settings.max_wal_size.unwrap_or(DEFAULT_MAX_WAL_SIZE);
    if behind <= limit {
        return None;
    }
    let number = |lsn: Lsn| lsn.0 / kept.segment_bytes;
    let segments = count(kept, number(kept.redo), number(position));
    Some(Keeper {
        keeper: "recovery".to_owned(),
        since_lsn: Some(kept.redo.to_string()),
        segments,
        bytes: segments * kept.segment_bytes,
        text: format!(
            "recovery keeps {}: the last restart point is {}, {} ago, and it has replayed up to {replayed} \
             at least; is replay paused (pg_is_wal_replay_paused()), delayed \
             (recovery_min_apply_delay), or slower than WAL comes?",
            segments_text(segments),
            kept.redo,
            disk_size(behind)
        ),
        ..Keeper::default()
    })
}

/// Whether this is a slot that the next checkpoint invalidates, though it keeps nothing beyond what recovery
/// needs.
fn will_be_invalid(kept: &Kept, keeper: &Keeper, position: Lsn) -> bool {
    let is_it = |slot: &&Slot| keeper.name.as_ref() == Some(&slot.name);
    let restart = kept.slots.iter().find(is_it).and_then(|slot| slot.restart);
    restart.is_some_and(|restart| is_over_limit(kept, restart, position))
}

/// What the WAL summarizer has not come to (`GetOldestUnsummarizedLSN`).
fn summarizer(kept: &Kept, position: Lsn) -> Option<Keeper> {
    let summarized = kept.summarized?;
    let redo = kept.redo.0 / kept.segment_bytes;
    let segments = count(kept, summarized.0 / kept.segment_bytes, redo);
    let behind = disk_size(position.0.saturating_sub(summarized.0));
    Some(Keeper {
        keeper: "wal_summarizer".to_owned(),
        since_lsn: Some(summarized.to_string()),
        segments,
        bytes: segments * kept.segment_bytes,
        text: format!(
            "the WAL summarizer keeps {}: it has come to {summarized}, {behind} ago; no checkpoint removes \
             them before it goes on, see the server's log and pg_get_wal_summarizer_state(), or set \
             summarize_wal = off",
            segments_text(segments)
        ),
        ..Keeper::default()
    })
}

fn wal_keep_size(kept: &Kept, position: Lsn) -> Option<Keeper> {
    let from = asked_by_keep_size(kept, position)?;
    let segments = count(kept, from, kept.redo.0 / kept.segment_bytes);
    Some(Keeper {
        keeper: "wal_keep_size".to_owned(),
        since_lsn: Some(Lsn(from * kept.segment_bytes).to_string()),
        segments,
        bytes: segments * kept.segment_bytes,
        text: format!(
            "{} as configured keeps {}",
            kept.settings.wal_keep_text,
            segments_text(segments)
        ),
        ..Keeper::default()
    })
}

/// The first segment that `wal_keep_size` keeps at the next checkpoint, if it is set.
fn asked_by_keep_size(kept: &Kept, position: Lsn) -> Option<u64> {
    kept.settings.wal_keep_bytes.filter(|keep| *keep > 0)?;
    Some(first_of_keep_size(kept, position))
}

/// The first segment that `wal_keep_size` keeps at a checkpoint here. As in `KeepLogSeg`: counted from the
/// segment that is written then, whole segments, the rest of the size does not count, and never before
/// segment 1.
fn first_of_keep_size(kept: &Kept, at: Lsn) -> u64 {
    let keep = kept.settings.wal_keep_bytes.unwrap_or_default() / kept.segment_bytes;
    (at.0 / kept.segment_bytes).saturating_sub(keep).max(1)
}

/// Whether the next checkpoint invalidates a slot that needs WAL since `restart`: as in `KeepLogSeg`, the
/// limit in whole segments, and what is kept for something else does not make it invalid.
fn is_over_limit(kept: &Kept, restart: Lsn, position: Lsn) -> bool {
    let Some(limit) = kept.settings.slot_limit_bytes else { return false };
    let number = |lsn: Lsn| lsn.0 / kept.segment_bytes;
    let by_limit = number(position).saturating_sub(limit / kept.segment_bytes);
    let by_summarizer = kept.summarized.map_or(u64::MAX, number);
    let first = by_limit.min(by_summarizer).min(first_of_keep_size(kept, position));
    number(restart) < first
}

/// Whether a slot is over its limit and only `wal_keep_size` saves it.
fn is_over_limit_alone(kept: &Kept, restart: Lsn, position: Lsn) -> bool {
    let settings = Keeping { wal_keep_bytes: None, ..kept.settings.clone() };
    kept.settings.wal_keep_bytes.is_some_and(|keep| keep > 0)
        && is_over_limit(&Kept { settings, ..kept.clone() }, restart, position)
}

fn waits(count: u64) -> String {
    if count == 1 { "1 segment waits".to_owned() } else { format!("{count} segments wait") }
}

fn segments_text(count: u64) -> String {
    if count == 1 { "1 segment".to_owned() } else { format!("{count} segments") }
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

/// Something that may keep segments, and cannot be read.
fn unread(found: &String) -> Keeper {
    Keeper {
        keeper: UNREAD.to_owned(),
        text: format!("{found}: what it keeps is not known"),
        ..Keeper::default()
    }
}

fn saved(slot: &Slot) -> Option<jiff::Timestamp> {
    slot.saved.and_then(|time| jiff::Timestamp::try_from(time).ok())
}

fn slot_type(slot: &Slot) -> &'static str {
    if slot.is_logical { "logical" } else { "physical" }
}

fn slot_text(kept: &Kept, slot: &Slot, restart: Lsn, (segments, position): (u64, Lsn)) -> String {
    let saved =
        saved(slot).map(|time| format!(", as saved {}", time.strftime("%Y-%m-%d %H:%M:%S")));
    let user = if slot.is_logical { "subscriber" } else { "standby" };
    let advice = match slot.is_moving {
        _ if slot.is_temporary => "it is temporary, and goes with its session".to_owned(),
        true => format!("it has moved since the last checkpoint: if its {user} is gone, drop it"),
        false => "drop it if nobody uses it".to_owned(),
    };
    let advice = match &kept.settings.slot_limit_text {
        Some(text) if is_over_limit(kept, restart, position) => format!(
            "over the limit {text}: the next checkpoint invalidates it, and its {user} has to be built anew"
        ),
        Some(text) if is_over_limit_alone(kept, restart, position) => {
            let keeps = &kept.settings.wal_keep_text;
            format!(
                "{advice}; it is over the limit {text}, but {keeps} keeps that WAL all the same"
            )
        }
        Some(text) => format!("{advice}; {text} as configured limits that at the next checkpoint"),
        None if kept.settings.limits_slots => format!("{advice}, or set max_slot_wal_keep_size"),
        None => advice,
    };
    format!(
        "replication slot {} ({}) keeps {}: it needs WAL since {restart}, {} ago{}; {advice}",
        slot.name,
        slot_type(slot),
        segments_text(segments),
        disk_size(position.0.saturating_sub(restart.0)),
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
            is_moving: false,
            made: None,
            is_temporary: false,
        };
        Kept {
            segment_bytes: 1 << 20,
            segments: (1..=11).collect(),
            redo: Lsn(11 << 20),
            replayed: None,
            summarized: None,
            slots: vec![slot("dead", false), slot("gone", true)],
            ready: (3..=10).map(|number| SegmentName::new(1, number, 1 << 20)).collect(),
            unread: Vec::new(),
            settings,
        }
    }

    fn texts(settings: Keeping) -> Vec<String> {
        let told = told(&kept(settings), Lsn((11 << 20) + 5));
        assert_eq!((told.segments, told.kept_segments), (11, 8));
        let split = "1 since the last redo point 0/00B00000, 8 kept beyond that and 2 that the next \
                     checkpoint removes or reuses, 0 ahead for reuse";
        assert!(told.text.contains(split), "{}", told.text);
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
        let limited = |bytes| Keeping {
            slot_limit_text: Some(limit.clone()),
            slot_limit_bytes: Some(bytes),
            ..settings()
        };
        let will = format!("{slot}; {limit} as configured limits that at the next checkpoint");
        assert_eq!(first(limited(8 << 20)), will);
        let over = "over the limit max_slot_wal_keep_size = 1GB: the next checkpoint invalidates it, and \
                    its standby has to be built anew";
        let (begin, _) = slot.rsplit_once("; ").expect("advice");
        assert_eq!(first(limited((8 << 20) - 1)), format!("{begin}; {over}"));
        // What wal_keep_size keeps makes no slot invalid.
        let kept_too = Keeping {
            wal_keep_bytes: Some(8 << 20),
            wal_keep_text: "wal_keep_size = 8MB".to_owned(),
            ..limited(1 << 20)
        };
        let all_the_same = format!(
            "{slot}; it is over the limit {limit}, but wal_keep_size = 8MB keeps that WAL all the same"
        );
        assert_eq!(first(kept_too), all_the_same);
    }

    #[test]
    fn a_slot_that_moves_is_dropped_only_if_its_standby_is_gone() {
        let mut kept = kept(Keeping::default());
        kept.slots[0].is_moving = true;
        let told = told(&kept, Lsn(12 << 20));
        let [keeper, ..] = told.keepers.as_slice() else { panic!("{told:?}") };
        assert!(keeper.text.ends_with("if its standby is gone, drop it"), "{}", keeper.text);
        assert_eq!(keeper.slot_type.as_deref(), Some("physical"));
        assert_eq!((keeper.bytes, keeper.kept_bytes), (9 << 20, 8 << 20));
    }

    /// After a checkpoint in segment 11 of 16 MB.
    #[test]
    fn wal_keep_size_keeps_whole_segments_as_the_server_counts_them() {
        let keeps = |megabytes: u64, segment: u64| {
            let settings = Keeping { wal_keep_bytes: Some(megabytes << 20), ..Keeping::default() };
            let bytes = 16 << 20;
            let mut kept = kept(settings);
            (kept.segment_bytes, kept.slots, kept.ready) = (bytes, Vec::new(), Vec::new());
            kept.redo = Lsn(11 * bytes + 40);
            let told = told(&kept, Lsn(segment * bytes + 9000));
            told.keepers.first().map_or(0, |keeper| keeper.segments)
        };
        assert_eq!([15, 16, 100, 150].map(|size| keeps(size, 11)), [0, 1, 6, 9]);
        assert_eq!(keeps(1000, 11), 10, "never before segment 1");
        assert_eq!(keeps(150, 13), 7, "by what is written now");
        assert_eq!(keeps(15, 13), 0);
    }

    #[test]
    fn a_summarizer_that_lags_is_named() {
        let mut kept = kept(Keeping::default());
        (kept.slots, kept.ready) = (Vec::new(), Vec::new());
        kept.summarized = Some(Lsn((5 << 20) + 0x28));
        let told = told(&kept, Lsn(12 << 20));
        let [keeper] = told.keepers.as_slice() else { panic!("{told:?}") };
        assert_eq!((keeper.keeper.as_str(), keeper.segments), ("wal_summarizer", 6));
        let begins =
            "the WAL summarizer keeps 6 segments: it has come to 0/00500028, 7 MB ago; no ";
        assert!(keeper.text.starts_with(begins), "{}", keeper.text);
        let split = "6 kept beyond that and 4 that the next checkpoint removes or reuses";
        assert!(told.text.contains(split), "{}", told.text);
    }

    #[test]
    fn what_nothing_keeps_is_split_too() {
        let mut kept = kept(Keeping { max_wal_size: Some(8 << 30), ..Keeping::default() });
        (kept.slots, kept.ready) = (Vec::new(), Vec::new());
        kept.segments = (8..=20).collect();
        let told = told(&kept, Lsn((12 << 20) + 5));
        assert_eq!(told.removable_segments, Some(3));
        let split = (told.kept_segments, told.since_redo_segments, told.ahead_segments);
        assert_eq!((split, told.max_wal_size_bytes), ((0, 2, 8), Some(8 << 30)));
        let text = "pg_wal has 13 segments, 13 MB: 2 since the last redo point 0/00B00000, 3 before it that \
                    the next checkpoint removes or reuses, 8 ahead for reuse; max_wal_size is 8.0 GB as \
                    configured";
        assert_eq!(told.text, text);
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
        let library = Some("basic_archive".to_owned());
        let library =
            Keeping { archives: Some(true), archive_library: library, ..Keeping::default() };
        let failing = "archive_library basic_archive fails, or is slower than WAL is written";
        assert_eq!(texts(library).swap_remove(1), format!("{wait}: {failing}; {oldest}"));
        let empty = "archive_mode is on, but archive_command is empty";
        assert_eq!(why(Some(true), true), format!("{wait}: {empty}; {oldest}"));
        let off = Keeping { archives: Some(false), has_no_archiver: true, ..Keeping::default() };
        assert!(texts(off).iter().all(|text| !text.contains("archive")), "they keep nothing");
        let mut kept = kept(Keeping { archives: Some(true), ..Keeping::default() });
        (kept.slots, kept.ready) = (Vec::new(), kept.ready.split_off(6));
        let usual = told(&kept, Lsn(12 << 20));
        assert_eq!((usual.kept_segments, usual.keepers.len()), (0, 0));
        kept.settings.has_no_archiver = true;
        let empty = told(&kept, Lsn(12 << 20));
        assert_eq!((empty.kept_segments, empty.keepers.len()), (2, 1));
    }

    #[test]
    fn a_standby_keeps_segments_for_archiving_only_if_it_always_archives() {
        let kept_for = |archives_always| {
            let settings = Keeping { archives: Some(true), archives_always, ..Keeping::default() };
            let mut kept = kept(settings);
            (kept.slots, kept.replayed) = (Vec::new(), Some(Lsn(11 << 20)));
            let told = told(&kept, Lsn((11 << 20) + 5));
            (told.kept_segments, told.keepers.len())
        };
        assert_eq!((kept_for(false), kept_for(true)), ((0, 0), (8, 1)));
    }

    #[test]
    fn segments_of_two_timelines_are_counted_one_by_one() {
        let mut kept = kept(Keeping::default());
        (kept.slots, kept.ready) = (Vec::new(), Vec::new());
        kept.segments = vec![9, 10, 11, 11];
        let told = told(&kept, Lsn((11 << 20) + 5));
        let split = (told.removable_segments, told.since_redo_segments);
        assert_eq!((told.segments, split), (4, (Some(2), 2)));
    }

    #[test]
    fn what_cannot_be_read_may_keep_what_nothing_else_keeps() {
        let mut kept = kept(Keeping::default());
        (kept.slots, kept.ready) = (Vec::new(), Vec::new());
        kept.unread = vec!["pg_replslot: Permission denied".to_owned()];
        let told = told(&kept, Lsn(12 << 20));
        assert_eq!((told.kept_segments, told.removable_segments), (0, None));
        let split =
            ", 0 kept beyond that and 10 of which it is not known whether something keeps them, ";
        assert!(told.text.contains(split), "{}", told.text);
        let [keeper] = told.keepers.try_into().expect("the folder");
        let text = "pg_replslot: Permission denied: what it keeps is not known";
        assert_eq!((keeper.keeper.as_str(), keeper.text.as_str()), ("unread", text));
    }

    #[test]
    fn a_temporary_slot_is_not_to_be_dropped() {
        let mut kept = kept(Keeping::default());
        (kept.slots[0].is_temporary, kept.slots[0].is_moving) = (true, true);
        let told = told(&kept, Lsn(12 << 20));
        let text = &told.keepers[0].text;
        assert!(text.ends_with("; it is temporary, and goes with its session"), "{text}");
    }

    #[test]
    fn a_slot_that_will_be_invalid_is_told_though_it_keeps_nothing_yet() {
        let settings = |megabytes: u64| Keeping {
            slot_limit_text: Some("max_slot_wal_keep_size = 8MB".to_owned()),
            slot_limit_bytes: Some(megabytes << 20),
            limits_slots: true,
            ..Keeping::default()
        };
        let told = |megabytes| {
            let mut kept = kept(settings(megabytes));
            kept.slots.truncate(1);
            (kept.slots[0].restart, kept.ready) = (Some(Lsn((11 << 20) + 40)), Vec::new());
            told(&kept, Lsn((20 << 20) + 5)).keepers
        };
        assert_eq!(told(9), []);
        let [keeper] = told(8).try_into().expect("the slot");
        assert_eq!(keeper.segments, 0);
        assert!(keeper.text.contains("the next checkpoint invalidates it"), "{}", keeper.text);
    }

    #[test]
    fn a_standby_that_does_not_replay_keeps_what_it_receives() {
        let told = |replayed, megabytes: u64| {
            let max_wal_size = Some(64 << 20);
            let mut kept = kept(Keeping { max_wal_size, ..Keeping::default() });
            (kept.slots, kept.ready) = (Vec::new(), Vec::new());
            (kept.segments, kept.replayed) = ((11..=megabytes).collect(), replayed);
            told(&kept, Lsn((megabytes << 20) + 5)).keepers
        };
        let replayed = Some(Lsn(12 << 20));
        assert_eq!(told(None, 90), [], "a primary");
        assert_eq!(told(replayed, 74), [], "no more than usual");
        let [keeper] = told(replayed, 90).try_into().expect("recovery");
        assert_eq!((keeper.keeper.as_str(), keeper.segments), ("recovery", 79));
        let begins = "recovery keeps 79 segments: the last restart point is 0/00B00000, 79 MB ago, and it \
                      has replayed up to 0/00C00000 at least";
        assert!(keeper.text.starts_with(begins), "{}", keeper.text);
    }

    #[test]
    fn a_slot_that_the_server_has_given_up_keeps_nothing_and_is_told() {
        let told = told(&kept(Keeping::default()), Lsn(12 << 20));
        let last = told.keepers.last().expect("a slot");
        assert_eq!((last.keeper.as_str(), last.segments), ("invalid_slot", 0));
        assert!(last.text.starts_with("replication slot gone is invalid"), "{}", last.text);
    }
}
