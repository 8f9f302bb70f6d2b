//! Objects with a segment's name that were listed but not opened. Once it is known which are needed (for a
//! range: its segments and up to four others), those are opened. All others are taken for what their names
//! say: that is enough for the plan, and none of their bytes are counted.

use super::discover::Found;
use super::error::is_lack;
use super::names::{SegmentFile, compression_suffix, file_name};
use super::piece::{Listed, geometry_of};
use super::probe::{FirstPage, LOOK_BYTES, NotWal, Probe, probe};
use super::source::Source;
use super::storage::Ahead;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;
use walstat_format::page::{Geometry, LONG_HEADER, LongHeader, PageHeader};
use walstat_format::segment::SEGMENT_BYTES;

/// Looks into those of a range, and into up to four others: the ones beside it, the first and the last.
pub fn look_into(found: &mut Found, range: &Range<Lsn>) {
    let all = std::mem::take(&mut found.listed);
    if all.is_empty() {
        return;
    }
    let is_part = *range != (Lsn(0)..Lsn::MAX);
    let geometry = if is_part { sample(&all) } else { None };
    let needed: BTreeSet<usize> = match geometry {
        Some(geometry) => needed(&all, &geometry, range),
        None => (0..all.len()).collect(),
    };
    let mut ahead = Ahead::default();
    let mut known: BTreeMap<usize, Probe> = BTreeMap::new();
    for index in &needed {
        known.extend(all.get(*index).and_then(|it| Some((*index, found.known_probe(&it.path)?))));
    }
    let looked_at = needed.iter().filter(|index| !known.contains_key(index));
    let looked_at = looked_at.filter_map(|index| all.get(*index));
    ahead.announce(looked_at.map(|listed| (listed.path.clone(), 0, LOOK_BYTES)));
    // There may be very many: no room is kept for more.
    found.pieces.reserve_exact(all.len());
    for (index, listed) in all.iter().enumerate().filter(|(index, _)| needed.contains(index)) {
        let Listed { root, path, name, .. } = listed;
        let known = known.remove(&index);
        let probe = known.map_or_else(|| probe(path, &mut ahead), Ok);
        let probe = probe.unwrap_or_else(|error| failed(path, &error));
        found.add_probed(*root, path, Some(name.clone()), probe);
    }
    let Some(geometry) = found.geometry().or(geometry) else { return };
    for (index, listed) in all.into_iter().enumerate() {
        if !needed.contains(&index) {
            presume(found, &listed, &geometry);
        }
    }
}

/// The same files with nothing looked into, but for one of those that were only listed.
pub fn presumed(found: &Found) -> Found {
    let mut presumed = found.clone();
    let all = std::mem::take(&mut presumed.listed);
    match presumed.geometry().or_else(|| sample(&all)) {
        Some(geometry) => all.iter().for_each(|listed| presume(&mut presumed, listed, &geometry)),
        None => {
            presumed.listed = all;
            look_into(&mut presumed, &(Lsn(0)..Lsn::MAX));
        }
    }
    presumed
}

/// How many files are looked into for release and sizes, before all are.
const SAMPLES: usize = 3;

/// Release, cluster and sizes by the first file that states them.
fn sample(all: &[Listed]) -> Option<Geometry> {
    let mut looks = all.iter().take(SAMPLES).filter_map(|listed| {
        let probe = probe(&listed.path, &mut Ahead::default()).ok()?;
        probe.first_page.ok().as_ref().and_then(geometry_of)
    });
    looks.next()
}

/// Which files a range needs.
fn needed(all: &[Listed], geometry: &Geometry, range: &Range<Lsn>) -> BTreeSet<usize> {
    let bytes = u64::from(geometry.segment_bytes);
    let numbers: Vec<Option<u64>> =
        all.iter().map(|listed| listed.name.name.number(geometry.segment_bytes)).collect();
    let known = || numbers.iter().flatten().copied();
    let is_inside = |number: u64| {
        let start = number.saturating_mul(bytes);
        start < range.end.0 && start.saturating_add(bytes) > range.start.0
    };
    let is_before = |number: &u64| number.saturating_add(1).saturating_mul(bytes) <= range.start.0;
    let is_after = |number: &u64| number.saturating_mul(bytes) >= range.end.0;
    let beside = [
        known().filter(is_before).max(),
        known().filter(is_after).min(),
        known().min(),
        known().max(),
    ];
    // Of each number beside the range one file, of those inside all: there may be copies.
    let one = |number: u64| numbers.iter().position(|other| *other == Some(number));
    let others = beside.into_iter().flatten().filter_map(one);
    let inside = numbers.iter().enumerate();
    let inside = inside.filter(|(_, number)| number.is_none_or(is_inside)).map(|(index, _)| index);
    inside.chain(others).collect_set()
}

fn failed(path: &Path, error: &std::io::Error) -> Probe {
    debug_assert!(!is_lack(error), "an object takes no descriptor of its own");
    Probe::failed(path, NotWal::Io(error.to_string()))
}

/// Adds a file as what its name says.
fn presume(found: &mut Found, listed: &Listed, geometry: &Geometry) {
    let Listed { root, path, name, bytes, modified } = listed;
    let compressed = compression_suffix(&file_name(path)).is_some();
    // A compressed file need not be called so.
    let is_segments = u32::try_from(*bytes)
        .is_ok_and(|bytes| bytes.is_power_of_two() && SEGMENT_BYTES.contains(&bytes));
    let probe = Probe {
        source: Source::Listed(path.as_path().into()),
        compressed,
        raw_bytes: Some(*bytes).filter(|_| !compressed && is_segments),
        modified: *modified,
        stamp: None,
        first_page: Ok(first_page(name, geometry)),
    };
    found.add_probed(*root, path, Some(name.clone()), probe);
}

/// The first page of a segment of this name.
fn first_page(name: &SegmentFile, geometry: &Geometry) -> FirstPage {
    let Geometry { version, system_identifier, segment_bytes, page_bytes } = *geometry;
    let address = name.name.start(segment_bytes).unwrap_or_default();
    FirstPage {
        header: PageHeader {
            magic: version.magic,
            info: LONG_HEADER,
            timeline: name.name.timeline,
            address,
            remaining: 0,
        },
        long: LongHeader { system_identifier, segment_bytes, page_bytes },
    }
}
