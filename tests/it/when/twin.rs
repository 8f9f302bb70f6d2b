//! The naive twin: everything about time, straight from the definitions, with all records in memory
//! and every question asked of every record anew.

use crate::common::whole::Whole;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use walstat_analyse::deferred_log::Tally;
use walstat_format::payload::checkpoint::Checkpoint;
use walstat_format::payload::xact;
use walstat_format::version::Version;

/// Tablespace, database, relfilenode, fork, block number.
pub type BlockId = (u32, u32, u32, u8, u32);

/// A record, as far as time goes.
pub struct One {
    pub lsn: u64,
    pub end: u64,
    pub total: u64,
    pub rmgr: u8,
    pub info: u8,
    pub images: Vec<u64>,
    /// Tablespace, database, file number, fork, block; and whether there is an image.
    pub blocks: Vec<(BlockId, bool)>,
    /// The time that it states, if it is a transaction's.
    pub stated: Option<i64>,
    pub is_commit: bool,
    pub checkpoint: Option<Checkpoint>,
}

pub fn ones(records: &[Whole], version: &'static Version) -> Vec<One> {
    records.iter().map(|record| one(record, version)).collect()
}

fn one(record: &Whole, version: &'static Version) -> One {
    let header = &record.header;
    let image = |image: &Vec<u8>| image.len() as u64;
    let with_image = |block: &&crate::common::whole::Block| block.reference.image.is_some();
    let is_checkpoint = header.rmgr == 0 && header.info & 0xF0 <= 0x10;
    let stated = match header.rmgr {
        1 => xact::stated_time(header.info, &record.main_data).map(|time| time.0),
        _ => None,
    };
    One {
        lsn: record.lsn.0,
        end: record.end.0,
        total: u64::from(header.total_bytes),
        rmgr: header.rmgr,
        info: header.info & 0xF0,
        images: record.blocks.iter().filter(with_image).map(|block| image(&block.image)).collect(),
        blocks: record.blocks.iter().map(|block| key(&block.reference)).collect(),
        stated,
        is_commit: stated.is_some() && [0x00, 0x30].contains(&(header.info & 0x70)),
        checkpoint: is_checkpoint
            .then(|| Checkpoint::parse(&record.main_data, version.checkpoint))
            .flatten(),
    }
}

fn key(block: &walstat_format::block::BlockRef) -> ((u32, u32, u32, u8, u32), bool) {
    let relation = block.relation;
    let file = (relation.tablespace, relation.database, relation.relfilenode);
    ((file.0, file.1, file.2, block.fork, block.block), block.image.is_some())
}

impl One {
    fn is_shutdown(&self) -> bool {
        self.checkpoint.is_some() && self.info == 0
    }

    /// Where the checkpoint began of which this is the record.
    fn redo(&self) -> Option<u64> {
        let says = self.checkpoint?;
        Some(if self.is_shutdown() { self.lsn } else { says.redo.0 })
    }
}

pub fn tally<'o>(records: impl Iterator<Item = &'o One>) -> Tally {
    let mut sum = Tally::default();
    for record in records {
        sum.count += 1;
        sum.total_bytes += record.total;
        sum.fpi_bytes += record.images.iter().sum::<u64>();
        sum.fpi_count += record.images.len() as u64;
    }
    sum
}

/// Blocks, and how many of them are not imaged where they are touched first.
fn blocks<'o>(records: impl Iterator<Item = &'o One>) -> (u64, u64) {
    let (mut seen, mut unimaged) = (HashSet::new(), 0);
    for record in records {
        for (block, has_image) in &record.blocks {
            if seen.insert(*block) && !has_image {
                unimaged += 1;
            }
        }
    }
    (seen.len() as u64, unimaged)
}

/// A cycle: redo point, start, end, sums, distinct blocks, shares by tenths.
#[derive(Debug, PartialEq)]
pub struct Cycle {
    pub redo: Option<u64>,
    pub start: u64,
    pub end: u64,
    pub checkpoint: Option<u64>,
    pub tally: Tally,
    pub distinct_blocks: u64,
    pub tenths: Option<[u64; 10]>,
}

pub fn cycles(records: &[One], end: u64, version: &Version) -> Vec<Cycle> {
    let Some(first) = records.first() else { return Vec::new() };
    let marks = |one: &&One| version.pacing.marks_redo && one.rmgr == 0 && one.info == 0xE0;
    let mut cuts: BTreeSet<u64> = records.iter().filter(marks).map(|one| one.lsn).collect();
    for one in records {
        let tells = one.is_shutdown() || !version.pacing.marks_redo;
        cuts.extend(one.redo().filter(|redo| tells && *redo >= first.lsn));
    }
    let mut starts: Vec<(Option<u64>, u64)> = cuts.iter().map(|cut| (Some(*cut), *cut)).collect();
    if !cuts.contains(&first.lsn) {
        starts.insert(0, (None, first.lsn));
    }
    let ends = cuts.iter().copied().filter(|cut| *cut > first.lsn).chain([end]);
    let rows = starts.into_iter().zip(ends);
    let unused = unused(records);
    rows.map(|((redo, start), end)| cycle(records, &unused, redo, start, end)).collect()
}

fn cycle(records: &[One], unused: &[Range<u64>], redo: Option<u64>, start: u64, end: u64) -> Cycle {
    let inside = || records.iter().filter(|one| (start..end).contains(&one.lsn));
    let begins = |one: &&One| match redo {
        Some(redo) => one.redo() == Some(redo),
        None => one.redo().is_some_and(|redo| redo < start),
    };
    let mut tenths = [0; 10];
    for one in inside() {
        let tenth = written(unused, start, one.lsn) * 10 / written(unused, start, end);
        let tenth = (tenth as usize).min(9);
        tenths[tenth] += one.images.iter().sum::<u64>();
    }
    Cycle {
        redo,
        start,
        end,
        checkpoint: records.iter().find(begins).map(|one| one.lsn),
        tally: tally(inside()),
        distinct_blocks: blocks(inside()).0,
        tenths: (tenths.iter().sum::<u64>() > 0).then_some(tenths),
    }
}

/// What switches to the next segment left unused. The next record is the first of its segment, which is a
/// multiple of 1 MB.
fn unused(records: &[One]) -> Vec<Range<u64>> {
    let rest = |pair: &[One]| match pair {
        [switch, next] if switch.rmgr == 0 && switch.info == 0x40 => {
            Some(switch.end..next.lsn & !0xF_FFFF)
        }
        _ => None,
    };
    records.windows(2).filter_map(rest).collect()
}

/// Bytes between two places without those.
fn written(unused: &[Range<u64>], from: u64, to: u64) -> u128 {
    let rest = |one: &Range<u64>| one.end.min(to).saturating_sub(one.start.max(from));
    u128::from(to - from - unused.iter().map(rest).sum::<u64>())
}

/// What is replayed after a crash: from, to, sums, distinct blocks, those without image.
pub type Replay = (u64, u64, Tally, u64, u64);

pub fn replays(records: &[One], end: u64) -> Vec<Replay> {
    let checkpoints: Vec<&One> = records.iter().filter(|one| one.checkpoint.is_some()).collect();
    let tos = checkpoints.iter().skip(1).map(|one| one.lsn).chain([end]);
    checkpoints
        .iter()
        .zip(tos)
        .map(|(one, to)| {
            let from = one.redo().expect("a checkpoint");
            let inside = || records.iter().filter(|one| (from..to).contains(&one.lsn));
            let (distinct, unimaged) = blocks(inside());
            (from, to, tally(inside()), distinct, unimaged)
        })
        .collect()
}

/// Shares of a cycle's images in the first tenth, quarter and half of its time.
pub fn by_time(records: &[One], cycle: &Cycle) -> Option<[f64; 3]> {
    let anchors = anchors(records);
    let (from, to) = (clock(cycle.start, &anchors)?, clock(cycle.end, &anchors)?);
    let inside = || records.iter().filter(|one| (cycle.start..cycle.end).contains(&one.lsn));
    let bytes = |one: &One| one.images.iter().sum::<u64>();
    let all: u64 = inside().map(bytes).sum();
    let first_of = |parts: i64| {
        let is_in = |one: &&One| {
            clock(one.lsn, &anchors).is_some_and(|time| (time - from) * parts < to - from)
        };
        inside().filter(is_in).map(bytes).sum::<u64>() as f64 / all as f64
    };
    (all > 0).then(|| [10, 4, 2].map(first_of))
}

/// Images of blocks that the cycle before touched, where a cycle touches them first.
pub fn brought(records: &[One], cycles: &[Cycle]) -> Vec<Option<u64>> {
    let mut before: Option<HashSet<BlockId>> = None;
    let mut found = Vec::new();
    for cycle in cycles {
        let mut touched = HashSet::new();
        let mut again = 0;
        for one in records.iter().filter(|one| (cycle.start..cycle.end).contains(&one.lsn)) {
            for (block, has_image) in &one.blocks {
                let is_new = touched.insert(*block);
                let was_there = before.as_ref().is_some_and(|before| before.contains(block));
                again += u64::from(is_new && *has_image && was_there);
            }
        }
        found.push(before.map(|_| again));
        before = cycle.redo.map(|_| touched);
    }
    found
}

/// Places with their times, as the clock goes from one to the next; true: it was set back.
pub fn anchors(records: &[One]) -> Vec<(u64, i64, bool)> {
    let mut anchors: Vec<(u64, i64, bool)> = Vec::new();
    let mut others: Vec<(u64, i64)> = Vec::new();
    for one in records {
        if let Some(says) = one.checkpoint {
            let last = anchors.last().map(|a| (a.0, a.1)).max(others.last().copied());
            let goes_on = |last: (u64, i64)| says.redo.0 > last.0 && says.time.0 > last.1;
            if last.is_none_or(goes_on) {
                others.push((says.redo.0, says.time.0));
            }
        }
        let Some(time) = one.stated else { continue };
        let last = anchors.last().copied();
        let is_set_back = last.is_some_and(|last| time < last.1 - 60_000_000);
        if !is_set_back && last.is_some_and(|last| time <= last.1) {
            continue;
        }
        let is_gap = last.is_none_or(|last| time - last.1 > 10_000_000);
        for (lsn, other) in std::mem::take(&mut others) {
            if is_gap && lsn < one.lsn && other < time {
                anchors.push((lsn, other, false));
            }
        }
        anchors.push((one.lsn, time, is_set_back));
    }
    anchors.extend(others.into_iter().map(|(lsn, time)| (lsn, time, false)));
    assert!(anchors.is_sorted_by_key(|anchor| anchor.0), "as they lie in the WAL");
    anchors
}

/// The time of a record, in microseconds.
pub fn time_of(record: &One, anchors: &[(u64, i64, bool)]) -> Option<i64> {
    record.stated.or_else(|| clock(record.lsn, anchors))
}

/// The time at a place.
fn clock(lsn: u64, anchors: &[(u64, i64, bool)]) -> Option<i64> {
    // Looked for by halves: it is asked of every record, and there are thousands of both.
    let (before, after) = anchors.split_at(anchors.partition_point(|anchor| anchor.0 <= lsn));
    match (before.last(), after.first()) {
        (Some(a), Some(b)) if !b.2 => {
            let passed = i128::from(lsn - a.0) * i128::from(b.1 - a.1);
            Some(a.1 + (passed / i128::from(b.0 - a.0)) as i64)
        }
        (Some(a), _) => Some(a.1),
        (None, b) => b.map(|b| b.1),
    }
}

/// Sums by second: tally, commits, lowest start, highest end.
pub type Seconds = BTreeMap<i64, (Tally, u64, u64, u64)>;

pub fn seconds(records: &[One]) -> Seconds {
    let anchors = anchors(records);
    let mut seconds = Seconds::new();
    for one in records {
        let second = time_of(one, &anchors).map_or(0, |time| time.div_euclid(1_000_000));
        let row = seconds.entry(second).or_insert((Tally::default(), 0, u64::MAX, 0));
        row.0 += tally(std::iter::once(one));
        row.1 += u64::from(one.is_commit);
        row.2 = row.2.min(one.lsn);
        row.3 = row.3.max(one.end);
    }
    seconds
}
