//! Files under names that no `restore_command` asks for (`.bak`, a date). Between others such a file stands
//! in for its segment, and is told as one that is missing. At either end it is no WAL of the archive and is
//! left out; newer than all others, it is all that there is of a segment with which the archive goes on,
//! unless it may be a copy under way, which its tool names so before it renames it.

use super::Plan;
use crate::copy_names::{Copied, copied, suffix};
use crate::discover::Found;
use crate::input_kind::InputKind;
use crate::names::{Standing, first_of};
use crate::neighbours::{missing, name_of};
use crate::placing::{Key, Placed};
use crate::segment::Segment;
use crate::timeline::Lineage;
use std::collections::{BTreeMap, BTreeSet};

/// Segments of which there are only such files.
#[derive(Debug, Default)]
pub(super) struct Aside {
    files: BTreeMap<Key, Segment>,
    /// There is nothing else, so they are read nevertheless.
    is_all: bool,
}

impl Aside {
    /// Leaves them out, but for those between others.
    pub(super) fn leave_out(placed: &mut Placed, found: &Found) -> Aside {
        let keys_of = |is: &dyn Fn(&[Segment]) -> bool| -> BTreeSet<Key> {
            let those = placed.files.iter().filter(|(_, files)| is(files));
            those.map(|(key, _)| *key).collect()
        };
        let is_aside = |file: &Segment| file.named && file.standing == Standing::Aside;
        let aside = keys_of(&|files| files.iter().all(is_aside));
        let promised = keys_of(&|files| files.iter().any(promises));
        if promised.is_empty() {
            let first = |key| Some((key, placed.files.get(&key)?.first()?.clone()));
            // Whoever gives the file itself has it read.
            let is_given =
                |file: &Segment| found.paths.iter().any(|path| path == file.source.path());
            let files = aside.into_iter().filter_map(first).filter(|(_, file)| !is_given(file));
            return Aside { files: files.collect(), is_all: true };
        }
        // The lowest and the highest number of each timeline.
        let mut bounds: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for (timeline, number) in promised {
            bounds.entry(timeline).or_insert((number, number)).1 = number;
        }
        let is_between = |(timeline, number): &Key| {
            bounds.range(..=timeline).any(|(_, (lowest, _))| lowest < number)
                && bounds.range(timeline..).any(|(_, (_, highest))| highest > number)
        };
        let mut files = BTreeMap::new();
        for key in aside.into_iter().filter(|key| !is_between(key)) {
            let left_out = placed.files.remove(&key).unwrap_or_default();
            placed.others.extend(left_out.iter().map(Segment::file));
            files.extend(left_out.into_iter().next().map(|file| (key, file)));
        }
        Aside { files, is_all: false }
    }

    /// Tells of them: what the archive goes on with is missing, the rest is a note.
    pub(super) fn tell(self, plan: &mut Plan) {
        let bytes = plan.geometry.segment_bytes;
        let newest_of = |lineage: &Lineage| {
            let followed = plan.files.iter().filter(|((timeline, number), files)| {
                lineage.of_file(*number, bytes) == *timeline && files.iter().any(promises)
            });
            followed.map(|((_, number), _)| *number).max()
        };
        let lineages = plan.latest.iter().chain([&plan.lineage]);
        let lineages: Vec<(Lineage, Option<u64>)> =
            lineages.map(|lineage| (lineage.clone(), newest_of(lineage))).collect();
        let goes_on = |(timeline, number): Key| {
            let is_behind = |(lineage, newest): &(Lineage, Option<u64>)| {
                *newest < Some(number) && lineage.of_file(number, bytes) == timeline
            };
            self.is_all || lineages.iter().any(is_behind)
        };
        let mut suffixes: BTreeMap<String, usize> = BTreeMap::new();
        for file in self.files.values() {
            *suffixes.entry(suffix(&file.file()).to_owned()).or_default() += 1;
        }
        let mut passed_over = Vec::new();
        for (key, file) in &self.files {
            let is_under_way = !self.is_all && is_under_way(&file.file(), &suffixes);
            if !goes_on(*key) || is_under_way || file.taken_for == InputKind::PgWal {
                passed_over.push(file.file());
                continue;
            }
            let expected = format!("segment {}", name_of(*key, &plan.geometry));
            let found = format!("only {}", file.file());
            plan.problems.push(missing(*key, &plan.geometry, expected, found));
        }
        if let Some(files) = first_of(&passed_over).filter(|_| !self.is_all) {
            plan.notes.push(format!("{files}: not read: no restore_command asks for such a name"));
        }
    }
}

/// Whether a tool may be writing a file; `suffixes`: how many have each. One that says nothing, and that
/// several have, is how they are named.
fn is_under_way(file: &str, suffixes: &BTreeMap<String, usize>) -> bool {
    match copied(file) {
        Copied::UnderWay => true,
        Copied::Kept => false,
        Copied::Unknown => suffixes.get(suffix(file)).is_none_or(|count| *count < 2),
    }
}

/// Whether a file is one of the archive, or given without a name that says what it is.
fn promises(file: &Segment) -> bool {
    !file.named || file.claims_whole_segment()
}
