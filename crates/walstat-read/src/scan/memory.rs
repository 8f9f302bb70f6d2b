//! What is remembered of segments from one reading to the next: what each gave, as a partial result, as long
//! as its file stays as it was; and which segments there were, so that it is seen if they are lost.
//!
//! An entry is a few kB, whatever its segment holds, and stays packed until its turn comes. Whatever can be
//! checked against the file is checked rather than believed, and no file is opened because an entry names it.

use super::alone::{Counted, PackedCount, Passed};
use super::observe::Observe;
use super::observer::Observer;
use super::partial::Partial;
use super::run::Run;
use super::timeline_switches::TimelineSwitches;
use crate::input::digest::Digest;
use crate::input::error::InputError;
use crate::input::known_files::{KnownFile, KnownFiles};
use crate::input::placing::Key;
use crate::input::plan::Plan;
use crate::input::segment::Segment;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;
use walstat_format::page::{Geometry, LongHeader};
use walstat_format::segment::SegmentName;

/// What is remembered of segments that were read.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct Memory {
    /// Whose WAL it is: the magic of the release, and cluster and sizes.
    cluster: Option<(u16, LongHeader)>,
    /// How many rounds there were.
    round: u64,
    /// By the paths of the files, as they are shown.
    entries: BTreeMap<String, Entry>,
    /// Segments that there were, and that retention has not taken.
    promised: BTreeSet<Key>,
}

/// What is remembered of one file.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    file: KnownFile,
    /// In which round it was read.
    round: u64,
    /// What was found in it, and what was counted.
    #[serde(with = "shared_bytes")]
    packed: Arc<[u8]>,
}

mod shared_bytes {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::sync::Arc;

    pub(super) fn serialize<S: Serializer>(
        bytes: &Arc<[u8]>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<[u8]>, D::Error> {
        <&[u8]>::deserialize(deserializer).map(Arc::from)
    }
}

/// What stands before the counters in a packed entry.
type Head = (Run, TimelineSwitches, Digest);

impl Memory {
    /// The files that need not be looked into, as long as they are the same.
    pub fn files(&self) -> KnownFiles {
        let files = self.entries.iter();
        files.map(|(path, entry)| (path.clone(), entry.file.clone())).collect()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.promised.is_empty()
    }

    /// Begins a round over WAL of this cluster.
    pub(super) fn begin(&mut self, geometry: &Geometry) -> Result<(), InputError> {
        self.belongs_to(geometry)?;
        self.round = self.round.saturating_add(1);
        Ok(())
    }

    /// Takes note of the cluster; fails if it is of another one. Where no segment has its first page, nothing
    /// tells; what was read of such segments is read again when others do.
    pub(super) fn belongs_to(&mut self, geometry: &Geometry) -> Result<(), InputError> {
        let found = (geometry.version.magic, geometry.long_header());
        if geometry.system_identifier == 0 {
            return Ok(());
        }
        if self.cluster.is_none() {
            self.entries.clear();
        }
        let known = self.cluster.get_or_insert(found);
        if *known == found {
            return Ok(());
        }
        let of =
            |(magic, header): &(u16, LongHeader)| format!("{header}, page magic 0x{magic:04X}");
        let (found, known) = (of(&found), of(known));
        let reason = format!("the state is of WAL with {known}, and this WAL has {found}");
        Err(InputError::Apart { reason })
    }

    /// In which round a file was read, if it is still the same.
    pub(super) fn round_of(&self, path: &str, file: &KnownFile) -> Option<u64> {
        let entry = self.entries.get(path).filter(|entry| entry.file.stamp == file.stamp)?;
        Some(entry.round)
    }

    /// What a file gave when it was read, if it is still the same.
    pub(super) fn recall<O: Observe + DeserializeOwned>(
        &self,
        path: &str,
        file: &KnownFile,
    ) -> Option<Passed> {
        let entry = self.entries.get(path).filter(|entry| entry.file.stamp == file.stamp)?;
        let ((run, turns, digest), rest): (Head, _) =
            postcard::take_from_bytes(&entry.packed).ok()?;
        let bytes = Arc::clone(&entry.packed);
        let packed = PackedCount { from: bytes.len() - rest.len(), bytes, unpack: unpack::<O> };
        let run = Run { observer: Observer::new(turns), ..run };
        run.is_sound().then_some(Passed { run, counted: Counted::Packed(packed), digest })
    }

    /// Remembers what a file gave.
    pub(super) fn remember<O: Observe + Serialize>(
        &mut self,
        path: String,
        file: KnownFile,
        passed: Passed,
    ) {
        match pack::<O>(passed) {
            Some(packed) => {
                let entry = Entry { file, round: self.round, packed };
                self.entries.insert(path, entry);
            }
            None => self.forget(&path),
        }
    }

    /// Forgets a file.
    pub(super) fn forget(&mut self, path: &str) {
        self.entries.remove(path);
    }

    /// Forgets all files but these.
    pub(super) fn retain(&mut self, paths: &BTreeSet<String>) {
        self.entries.retain(|path, _| paths.contains(path));
    }

    /// Takes note of the segments of `plan`, of which there is WAL up to `end`; returns those that were there
    /// and are lost. `named`: segments for which there are files, whatever is in them.
    pub(super) fn promise(
        &mut self,
        plan: &Plan,
        named: &[SegmentName],
        end: Lsn,
    ) -> BTreeSet<Key> {
        let bytes = plan.geometry.segment_bytes;
        let whole =
            plan.files.iter().filter(|(_, files)| files.iter().any(Segment::claims_whole_segment));
        let whole = whole.map(|(key, _)| *key);
        let named = named.iter().filter_map(|name| Some((name.timeline, name.number(bytes)?)));
        let there: BTreeSet<Key> = whole.chain(named).collect_set();
        // What no restore fetches, as what lies behind the place where its timeline was left, may have come
        // late, from a server that was given up.
        let is_unfetched = |(timeline, number): &&Key| {
            plan.lineage.has(*timeline) && plan.lineage.of_file(*number, bytes) != *timeline
        };
        let kept: BTreeSet<Key> =
            there.iter().filter(|key| !is_unfetched(key)).copied().collect_set();
        let kept = if kept.is_empty() { &there } else { &kept };
        let oldest = kept.iter().map(|(_, number)| *number).min().unwrap_or(0);
        let first = kept.first().copied().unwrap_or_default();
        // By number whatever the timeline, as pg_archivecleanup; or by name, as pgBackRest.
        self.promised.retain(|key| key.1 >= oldest && *key >= first);
        let lost = self.promised.difference(&there).copied().collect();
        let holds_wal = |segment: &&Segment| {
            let start = segment.number.saturating_mul(u64::from(bytes));
            segment.must_be_full() || segment.claims_whole_segment() && Lsn(start) < end
        };
        // What has the content of another place was no segment of this name.
        let is_its_own = |segment: &&Segment| {
            let start = Lsn(segment.number.saturating_mul(u64::from(bytes)));
            !segment.first_page.as_ref().is_ok_and(|page| page.header.address != start)
        };
        let others = plan.files.values().flatten().filter(|segment| segment.must_be_full());
        let promised = plan.segments.iter().filter(holds_wal).chain(others).filter(is_its_own);
        self.promised.extend(promised.map(|segment| (segment.timeline, segment.number)));
        lost
    }
}

fn pack<O: Observe + Serialize>(passed: Passed) -> Option<Arc<[u8]>> {
    let Passed { mut run, counted, digest } = passed;
    let turns: TimelineSwitches = std::mem::take(&mut run.observer).into_inner().ok()?;
    let counted: O = counted.into_observer()?.into_inner().ok()?;
    let head = postcard::to_extend(&(run, turns, digest), Vec::new()).ok()?;
    Some(postcard::to_extend(&counted, head).ok()?.into())
}

fn unpack<O: Observe + DeserializeOwned>(bytes: &[u8]) -> Option<Observer> {
    postcard::from_bytes::<O>(bytes).ok().map(|counted| Partial::observer(&counted))
}
