//! The timeline that a server follows, the latest unless it is told otherwise, where there are no segments of
//! it.

use super::{Key, Plan};
use crate::discover::ToRestore;
use crate::history::{self, Histories};
use crate::input_kind::InputKind;
use crate::names::{Standing, backup_start, history_timeline};
use crate::placing::Placed;
use crate::probe::NotWal;
use crate::problem::{Problem, ProblemKind};
use crate::segment::Segment;
use crate::timeline::{Lineage, latest_without_segments};
use std::collections::{BTreeMap, BTreeSet};
use walstat_format::ordered::CollectOrdered;

/// The histories without those that no server gets and that lead to no segment: it restores as if they were
/// not there. So what was found to be wrong with them is a note.
pub(super) fn without_unfetched(
    placed: &mut Placed,
    present: &BTreeSet<u32>,
    histories: &Histories,
) -> Histories {
    let newest = present.last().copied().unwrap_or(u32::MAX);
    let (all, mut histories) = (histories, histories.clone());
    let mut unfetched = BTreeSet::new();
    placed.problems.retain(|problem| {
        let Problem { kind, segment, found, .. } = problem;
        let timeline = history_timeline(segment).filter(|timeline| *timeline > newest);
        let is_missing = *kind == ProblemKind::MissingHistory;
        let Some(timeline) = timeline.filter(|_| is_missing) else { return true };
        if all.is_beside_others(timeline, problem) {
            return false;
        }
        histories.leave_out(timeline);
        unfetched.insert(timeline);
        placed.notes.push(format!(
            "{segment}: {found}: no restore_command gets it, and there is no segment of timeline {timeline}: \
             a server restores as if there were none"
        ));
        false
    });
    // Nobody comes to know what is in them.
    placed.problems.retain(|problem| {
        broken_history(problem).is_none_or(|timeline| !unfetched.contains(&timeline))
    });
    without_unsearched(placed, first_missing(newest, &histories), &mut histories);
    histories
}

/// The timelines without those of which there are only `.partial`s that nothing follows from; not without the
/// one that is `asked` for.
pub(super) fn without_partials(
    placed: &mut Placed,
    present: BTreeSet<u32>,
    histories: &Histories,
    asked: Option<u32>,
    to_restore: ToRestore,
) -> BTreeSet<u32> {
    let present = without_partials_alone(placed, present, histories, asked);
    without_partials_before(placed, present, histories, asked, to_restore)
}

/// The timelines without newest ones of which there are only `.partial`s, which no `restore_command` gets,
/// where a server finds whole files of older ones in their place, and replays these to the end.
fn without_partials_alone(
    placed: &mut Placed,
    mut present: BTreeSet<u32>,
    histories: &Histories,
    asked: Option<u32>,
) -> BTreeSet<u32> {
    while let Some(newest) = present.last().copied().filter(|newest| asked != Some(*newest)) {
        if let Some((partial, read)) = read_in_its_place(newest, &placed.files, histories) {
            placed.notes.push(format!(
                "{partial}: no restore_command gets it, and there is no other segment of timeline {newest}: \
                 a server reads {read} in its place, to its end"
            ));
        } else if let Some(partial) = begun_without_wal(newest, &placed.files, histories) {
            placed.notes.push(format!(
                "{partial}: no WAL is in it yet, and there is nothing else of timeline {newest}"
            ));
        } else {
            break;
        }
        present.remove(&newest);
    }
    present
}

/// The first `.partial` of a timeline, and the whole file that a server gets in its place, if nothing else is
/// there of the timeline.
fn read_in_its_place(
    timeline: u32,
    files: &BTreeMap<Key, Vec<Segment>>,
    histories: &Histories,
) -> Option<(String, String)> {
    let (&(_, number), first) = files_of(files, timeline).next()?;
    let is_alone = are_partials_alone(files, timeline);
    let ancestors = histories.ancestors(timeline).filter(|_| is_alone)?;
    let mut older = ancestors.iter().rev().filter_map(|it| files.get(&(it.timeline, number)));
    let read = older.find_map(|files| files.iter().find(|file| file.is_asked_for()))?;
    Some((first.first()?.file(), read.file()))
}

/// The timelines without the oldest one, where there are only `.partial`s of it, which no `restore_command`
/// gets, and no history leads from the next one to it: the archive begins with that. Not where a backup of
/// the oldest one is there, or asked about.
fn without_partials_before(
    placed: &mut Placed,
    mut present: BTreeSet<u32>,
    histories: &Histories,
    asked: Option<u32>,
    to_restore: ToRestore,
) -> BTreeSet<u32> {
    let mut timelines = present.iter().copied();
    let (Some(oldest), Some(next)) = (timelines.next(), timelines.next()) else { return present };
    let begins = files_of(&placed.files, next)
        .find(|(_, files)| files.iter().any(Segment::is_asked_for))
        .map(|((_, number), _)| *number);
    let last = files_of(&placed.files, oldest).next_back();
    let Some((((_, last), files), begins)) = last.zip(begins) else { return present };
    let bytes = u64::from(placed.geometry.segment_bytes);
    let is_needed = asked == Some(oldest)
        || to_restore.timeline == Some(oldest)
        || to_restore.begins.is_some_and(|at| at.0 / bytes <= *last)
        || placed
            .others
            .iter()
            .filter_map(|file| backup_start(file))
            .any(|it| it.timeline == oldest);
    if *last > begins
        || is_needed
        || histories.has(next)
        || !are_partials_alone(&placed.files, oldest)
    {
        return present;
    }
    placed.notes.extend(files.first().map(|file| {
        let file = file.file();
        format!("{file}: no restore_command gets it, and the WAL begins with timeline {next}")
    }));
    present.remove(&oldest);
    present
}

/// The files of a timeline.
fn files_of(
    files: &BTreeMap<Key, Vec<Segment>>,
    timeline: u32,
) -> impl DoubleEndedIterator<Item = (&Key, &Vec<Segment>)> + Clone {
    files.range((timeline, 0)..=(timeline, u64::MAX))
}

/// Whether all that an archive has of a timeline are `.partial`s.
fn are_partials_alone(files: &BTreeMap<Key, Vec<Segment>>, timeline: u32) -> bool {
    let is_partial =
        |file: &Segment| file.standing == Standing::Partial && file.taken_for != InputKind::PgWal;
    files_of(files, timeline).all(|(_, files)| files.iter().all(is_partial))
}

/// The first `.partial` of a timeline, if there is nothing but such files of it, without WAL: a receiver has
/// begun them, and the history is not in the archive.
fn begun_without_wal(
    timeline: u32,
    files: &BTreeMap<Key, Vec<Segment>>,
    histories: &Histories,
) -> Option<String> {
    let has_older = files.keys().any(|(other, _)| *other < timeline);
    let mut own = files_of(files, timeline).flat_map(|(_, files)| files);
    let first = own.clone().next().filter(|_| has_older && !histories.has(timeline))?;
    let is_begun = |file: &Segment| {
        file.standing == Standing::Partial
            && matches!(file.first_page, Err(NotWal::Empty | NotWal::Zeros))
    };
    own.all(is_begun).then(|| first.file())
}

/// Leaves out histories in which something is wrong, after one that is `missing` and that the search for the
/// latest timeline ends at: no server reads them. So what is wrong is a note.
fn without_unsearched(placed: &mut Placed, missing: Option<u32>, histories: &mut Histories) {
    let Some(missing) = missing else { return };
    placed.problems.retain(|problem| {
        let timeline = broken_history(problem).filter(|timeline| *timeline > missing);
        let Some(timeline) = timeline else { return true };
        histories.leave_out(timeline);
        let Problem { segment, found, .. } = problem;
        placed.notes.push(format!(
            "{segment}: found {found}: a restore to the latest timeline does not look for it without {}",
            history::name_of(missing)
        ));
        false
    });
}

/// The timeline of the history that a problem is of, if it is there and something is wrong with it.
fn broken_history(problem: &Problem) -> Option<u32> {
    history_timeline(&problem.segment).filter(|_| problem.kind == ProblemKind::History)
}

/// The first timeline after the newest one with segments that has no history: a server looks for them one by
/// one (`findNewestTimeLine` in `src/backend/access/transam/timeline.c`).
fn first_missing(newest: u32, histories: &Histories) -> Option<u32> {
    (newest..u32::MAX).map(|before| before + 1).find(|it| !histories.is_got(*it))
}

/// Problems of histories that do not begin with that of the timeline they leave, as far as a search for the
/// latest timeline comes.
pub(super) fn contradicting(present: &BTreeSet<u32>, histories: &Histories) -> Vec<Problem> {
    let newest = present.last().copied().unwrap_or(u32::MAX);
    let missing = first_missing(newest, histories);
    let is_read = |timeline: u32| missing.is_none_or(|missing| timeline < missing);
    let pairs = histories.contradicting().into_iter();
    let pairs = pairs.filter(|(timeline, _)| is_read(*timeline));
    pairs.map(|(timeline, parent)| history::contradiction(timeline, parent)).collect()
}

/// The timeline that is `asked` for, or else the latest, by its history, where there is no segment of it.
pub(super) fn without_segments(
    present: &BTreeSet<u32>,
    histories: &Histories,
    asked: Option<u32>,
) -> Option<Lineage> {
    let Some(asked) = asked else { return latest_without_segments(present, histories) };
    let ancestors = histories.ancestors(asked).filter(|_| !present.contains(&asked));
    ancestors.map(|ancestors| Lineage::from_ancestors(asked, ancestors))
}

/// The timeline whose segments a server reads that is told to follow the one that is `asked` for: the newest
/// of its history of which there are any.
pub(super) fn read_for(
    asked: u32,
    present: &BTreeSet<u32>,
    by_history: Option<&Lineage>,
) -> Option<u32> {
    let is_of_it = |it: &u32| *it == asked || by_history.is_some_and(|history| history.has(*it));
    present.iter().rev().copied().find(is_of_it)
}

/// The lineage of the timeline that is followed: by its own history, or by that of the `latest`, where only
/// that one can be read.
pub(super) fn lineage_of(
    followed: u32,
    latest: Option<&Lineage>,
    histories: &Histories,
) -> Lineage {
    let of_latest = latest.and_then(|latest| latest.until(followed));
    let of_latest = of_latest.filter(|_| histories.ancestors(followed).is_none());
    of_latest.unwrap_or_else(|| Lineage::of(followed, histories))
}

impl Plan {
    /// The lineage that a server follows: of the timeline that is followed here, or of the latest, where that
    /// goes on from it.
    pub fn lineage_read(&self) -> &Lineage {
        let latest = self.latest.as_ref().filter(|latest| latest.has(self.timeline));
        latest.unwrap_or(&self.lineage)
    }

    /// The timeline whose history a server reads.
    pub fn history_read(&self) -> u32 {
        self.lineage_read().timeline()
    }

    /// What the histories say that a server may read, where something else was taken in their place.
    pub(super) fn wrong_lineages(&self, histories: &Histories) -> BTreeMap<u32, Lineage> {
        let read = self.history_read();
        let before = self.lineage.spans().map(|(timeline, _)| timeline);
        let wrong = |timeline: u32| {
            let empty = timeline != read && histories.is_empty(timeline);
            let empty = empty.then(|| Lineage::from_ancestors(timeline, &[]));
            Some((timeline, Lineage::that_is_wrong(timeline, histories).or(empty)?))
        };
        before.chain([read]).filter_map(wrong).collect_map()
    }

    /// What that history says, if something else was taken in its place.
    pub fn wrong_lineage(&self) -> Option<&Lineage> {
        self.wrong_lineages.get(&self.history_read())
    }

    /// The problem that a restore to the latest timeline leaves the one that is followed here: a newer
    /// history without segments branches off an older one.
    pub(super) fn left_by_latest(&self) -> Option<Problem> {
        let latest = self.latest.as_ref().filter(|latest| !latest.has(self.timeline))?;
        let mut files = self.files.values().flatten();
        if files.any(|file| file.taken_for == InputKind::PgWal) {
            return None;
        }
        let (timeline, leaves) = (latest.timeline(), latest.begin());
        let parent = latest.parent()?;
        let expected = format!(
            "segments of timeline {timeline}, or that it goes on from timeline {}, the newest of all \
             segments",
            self.timeline
        );
        // Segments of the timeline that it leaves are read on, also behind that place (`XLogFileReadAnyTLI`).
        let next = leaves.0 / u64::from(self.geometry.segment_bytes);
        let goes = if self.files.contains_key(&(parent, next)) { "go on with" } else { "end" };
        let found = format!(
            "no segment of it; it leaves timeline {parent} at {leaves}, where a restore to the latest \
             timeline would {goes}"
        );
        let name = history::name_of(timeline);
        Some(Problem::of_file(ProblemKind::History, &name, expected, found))
    }

    /// Notes about histories of timelines newer than all segments: the latest timeline is one of them.
    pub(super) fn histories_alone(
        &self,
        present: &BTreeSet<u32>,
        histories: &Histories,
    ) -> Vec<String> {
        let newest = present.last().copied().unwrap_or(u32::MAX);
        let newer = histories.all().map(|(timeline, _)| timeline).filter(|newer| *newer > newest);
        let missing = first_missing(newest, histories);
        let note = |timeline| {
            let name = history::name_of(timeline);
            match missing.filter(|missing| *missing < timeline) {
                None => format!(
                    "{name}: no segment of timeline {timeline}, which a restore to the latest one follows"
                ),
                Some(missing) => format!(
                    "{name}: no segment of timeline {timeline}, and a restore to the latest one does not \
                     look for it without {}",
                    history::name_of(missing)
                ),
            }
        };
        newer.map(note).collect()
    }
}
