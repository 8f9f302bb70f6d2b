//! Timeline histories, held against each other. How the text of one is read: `history_text.rs`.

mod outvoted;
mod passed_over;

use super::codec::Codec;
pub use super::history_text::{Ancestor, HistoryFault, WrongHistory, parse};
use super::names::history_timeline;
use super::problem::{Fetched, Problem, ProblemKind};
pub use passed_over::PassedOver;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use walstat_format::lsn::Lsn;

/// The timeline that has no ancestors: whatever is called its history, no server reads it
/// (`readTimeLineHistory` in `src/backend/access/transam/timeline.c`).
const OLDEST: u32 = 1;

/// All histories that were found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Histories {
    /// Those that can be read, in the order of their content; several where files of one name differ.
    sound: BTreeMap<u32, BTreeSet<Vec<Ancestor>>>,
    named: BTreeSet<u32>,
    /// The files of each.
    files: BTreeMap<u32, BTreeSet<PathBuf>>,
    /// Histories that cannot be read, or hold nothing.
    problems: Vec<Problem>,
    /// Those under names that do not say how they are packed, until it is known what lies beside them.
    plain: BTreeSet<PlainHistory>,
    /// Of several, the one that is followed; without it the first.
    #[serde(skip)]
    followed: BTreeMap<u32, Vec<Ancestor>>,
    /// Where they name another place than the one where a timeline begins, and no server minds.
    #[serde(skip)]
    misplaced: BTreeSet<Misplaced>,
    /// Timelines of which there are no segments, where a server reads those of another one.
    #[serde(skip)]
    passed_over: BTreeSet<PassedOver>,
    /// What those say in the place of which something else was taken.
    #[serde(skip)]
    corrected: BTreeMap<u32, Vec<Ancestor>>,
}

/// A history under a name without a suffix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct PlainHistory {
    /// The timeline that it is called after.
    pub timeline: u32,
    /// Its path, as far as that is text.
    pub path: PathBuf,
    /// What it holds, or what is wrong with it.
    pub ancestors: Result<Vec<Ancestor>, WrongHistory>,
    /// How it is packed.
    pub codec: Option<Codec>,
}

/// A place that a history names within the segment in which a timeline begins, and that is not the one: a
/// server asks for the same files, and holds nothing but a backup's checkpoint against it
/// (`tliOfPointInHistory`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Misplaced {
    /// The timeline whose history says so.
    pub history: u32,
    /// The timeline that begins.
    pub timeline: u32,
    /// Where it is said to begin.
    pub told: Lsn,
    /// Where it does.
    pub begins: Lsn,
}

impl Histories {
    /// Adds the text of a history file, or why it cannot be read.
    pub fn add(&mut self, timeline: u32, text: Result<impl AsRef<[u8]>, String>, file: &str) {
        // One that cannot be read is of no use either.
        let unread = |found| WrongHistory { fault: HistoryFault::NoWay, found };
        let text = text.map_err(unread);
        self.add_parsed(timeline, text.and_then(|text| parse(timeline, text)), file);
    }

    /// The same of one that was parsed.
    pub(crate) fn add_parsed(
        &mut self,
        timeline: u32,
        ancestors: Result<Vec<Ancestor>, WrongHistory>,
        file: &str,
    ) {
        if timeline <= OLDEST {
            return;
        }
        self.named.insert(timeline);
        match ancestors {
            Ok(ancestors) => {
                self.sound.entry(timeline).or_default().insert(ancestors);
            }
            Err(wrong) => {
                let expected = "a timeline and the LSN of its end in each line".to_owned();
                self.complain(Problem::of_history(file, expected, wrong));
            }
        }
    }

    /// Adds a history that cannot be read; `fetched`: what a server gets in its place, if that is known.
    pub(crate) fn add_unread(
        &mut self,
        timeline: u32,
        error: &io::Error,
        fetched: Option<Fetched>,
        file: &str,
    ) {
        self.add(timeline, Err::<&[u8], _>(error.to_string()), file);
        let is_it = |problem: &&mut Problem| problem.segment == file;
        if let Some(problem) = self.problems.iter_mut().rfind(is_it) {
            problem.fetched = fetched;
        }
    }

    /// Adds a history that is there, and that no server gets: the tool of its suffix does not unpack it.
    pub fn add_unfetched(&mut self, timeline: u32, found: String) {
        if timeline <= OLDEST {
            return;
        }
        self.named.insert(timeline);
        let expected = format!("the history of timeline {timeline}, packed as its name says");
        let name = name_of(timeline);
        let problem = Problem::of_file(ProblemKind::MissingHistory, &name, expected, found);
        self.complain(problem);
    }

    /// Whether a problem is of one that its tool does not unpack, while there are others of the timeline.
    pub(crate) fn is_beside_others(&self, timeline: u32, problem: &Problem) -> bool {
        let name = name_of(timeline);
        let is_other =
            |it: &Problem| it.kind == ProblemKind::History && it.segment.starts_with(&name);
        let are_others =
            || self.sound.contains_key(&timeline) || self.problems.iter().any(is_other);
        self.problems.contains(problem) && are_others()
    }

    /// Keeps one under a plain name until it is known what lies beside it.
    pub(crate) fn add_plain(&mut self, history: PlainHistory) {
        if history.timeline > OLDEST {
            self.plain.insert(history);
        }
    }

    /// Those that were kept.
    pub(crate) fn take_plain(&mut self) -> BTreeSet<PlainHistory> {
        std::mem::take(&mut self.plain)
    }

    /// Whether something is wrong with one, as far as that can be told.
    pub fn has_problems(&self) -> bool {
        self.problems().next().is_some() || self.plain.iter().any(|it| it.ancestors.is_err())
    }

    /// Takes note of a file that holds a history.
    pub(crate) fn note_file(&mut self, timeline: u32, path: &Path) {
        if timeline <= OLDEST {
            return;
        }
        self.files.entry(timeline).or_default().insert(path.to_owned());
    }

    /// The files, by timeline.
    pub fn files(&self) -> impl Iterator<Item = (u32, &BTreeSet<PathBuf>)> {
        self.files.iter().map(|(timeline, files)| (*timeline, files))
    }

    /// Adds the histories found at other paths, or at the same ones.
    pub fn extend(&mut self, others: Histories) {
        self.named.extend(others.named);
        others.problems.into_iter().for_each(|problem| self.complain(problem));
        self.plain.extend(others.plain);
        for (timeline, files) in others.files {
            self.files.entry(timeline).or_default().extend(files);
        }
        for (timeline, rivals) in others.sound {
            self.sound.entry(timeline).or_default().extend(rivals);
        }
    }

    fn complain(&mut self, problem: Problem) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Forgets the history of a timeline, which no server gets.
    pub(crate) fn leave_out(&mut self, timeline: u32) {
        self.sound.remove(&timeline);
        self.followed.remove(&timeline);
        self.named.remove(&timeline);
    }

    /// Forgets those that lie in a directory and nowhere else.
    pub(crate) fn leave_out_of(&mut self, directory: &Path) {
        self.plain.retain(|history| history.path.parent() != Some(directory));
        let is_there = |path: &PathBuf| path.parent() == Some(directory);
        let only_there = self.files.iter().filter(|(_, files)| files.iter().all(is_there));
        let timelines: Vec<u32> = only_there.map(|(timeline, _)| *timeline).collect();
        for timeline in timelines {
            self.files.remove(&timeline);
            self.leave_out(timeline);
        }
    }

    /// Forgets what cannot be read.
    pub fn forgive(&mut self) {
        self.problems.clear();
    }

    /// Histories that cannot be read, hold nothing, or differ from another of their name.
    pub fn problems(&self) -> impl Iterator<Item = Problem> {
        let apart = self.rivals().map(|(timeline, rivals)| {
            let expected = format!("one history of timeline {timeline}");
            let found = format!("{} different ones under this name", rivals.len());
            let wrong = WrongHistory { fault: HistoryFault::Rivals, found };
            Problem::of_history(&name_of(timeline), expected, wrong)
        });
        self.problems.iter().cloned().chain(apart)
    }

    /// Timelines of which there are histories that differ, with all of them.
    pub fn rivals(&self) -> impl Iterator<Item = (u32, &BTreeSet<Vec<Ancestor>>)> {
        let several = self.sound.iter().filter(|(_, rivals)| rivals.len() > 1);
        several.map(|(timeline, rivals)| (*timeline, rivals))
    }

    /// Says which of several histories of a timeline is followed.
    pub fn follow(&mut self, timeline: u32, ancestors: Vec<Ancestor>) {
        self.followed.insert(timeline, ancestors);
    }

    /// Pairs of a timeline and the one it leaves, where the history of the first does not begin with
    /// that of the second: a server does not start with such a history.
    pub fn contradicting(&self) -> Vec<(u32, u32)> {
        self.all()
            .filter_map(|(timeline, _)| Some((timeline, self.contradicts(timeline)?)))
            .collect()
    }

    /// The timeline that another one leaves, where the history of that does not begin with its own.
    fn contradicts(&self, timeline: u32) -> Option<u32> {
        let (parent, before) = self.said(timeline)?.split_last()?;
        let theirs = self.ancestors(parent.timeline)?;
        (theirs != before && !self.is_copied(timeline)).then_some(parent.timeline)
    }

    /// Whether the file of a history begins with the lines of its parent's file, as a server writes it,
    /// before any correction, and nothing is known to be wrong with the parent's.
    fn is_copied(&self, timeline: u32) -> bool {
        let as_filed = |timeline| self.corrected(timeline).or_else(|| self.ancestors(timeline));
        let is_wrong = |it: u32| {
            self.problems.iter().any(|wrong| history_timeline(&wrong.segment) == Some(it))
        };
        let own = as_filed(timeline).and_then(<[Ancestor]>::split_last);
        own.is_some_and(|(parent, before)| {
            as_filed(parent.timeline) == Some(before) && !is_wrong(parent.timeline)
        })
    }

    /// Reports histories that were cut, as a newer one that begins with the same text shows, and takes what
    /// that one has in their place: then nothing else is blamed. A server writes each history as a copy of
    /// the one before, with one more line.
    pub(crate) fn mend_cut(&mut self) {
        let cut = self.cut().into_iter();
        let cut: Vec<(u32, Vec<Ancestor>, Vec<Ancestor>)> =
            cut.map(|(timeline, (own, whole))| (timeline, own.to_vec(), whole.to_vec())).collect();
        for (timeline, ancestors, whole) in cut {
            let expected = format!("{}, as in the history of a newer timeline", told(whole.last()));
            let found = format!("{}, which is cut", told(ancestors.last()));
            let name = name_of(timeline);
            self.complain(Problem::of_file(ProblemKind::History, &name, expected, found));
            self.replace(timeline, whole);
        }
    }

    /// Reports a history that names another place than the one where the timeline begins, as the records
    /// show, and takes that one in its place: then nothing else is blamed.
    pub fn correct(&mut self, timeline: u32, end: Ancestor) {
        let own = self.ancestors(timeline).and_then(<[Ancestor]>::last).copied();
        let expected = format!("{}, where the records of this one begin", told(Some(&end)));
        let found = format!("{} as the last ancestor", told(own.as_ref()));
        let problem = Problem::of_file(ProblemKind::History, &name_of(timeline), expected, found);
        // Recovery goes astray where it leaves the wrong timeline, and comes to the right place else.
        let goes_astray = own.filter(|own| own.timeline != end.timeline);
        let lsn = goes_astray.map_or(end.end, |own| own.end.min(end.end));
        self.complain(Problem { lsn: Some(lsn), ..problem });
        // Where the history of that one cannot be read, this one's own tells of those before it.
        let own = self.ancestors(timeline).unwrap_or_default().iter();
        let own = own.filter(|it| it.timeline < end.timeline && it.end <= end.end).copied();
        let before =
            self.ancestors(end.timeline).map_or_else(|| own.collect(), <[Ancestor]>::to_vec);
        self.replace(timeline, before.into_iter().chain([end]).collect());
    }

    /// Takes other ancestors in the place of those that a history has.
    fn replace(&mut self, timeline: u32, ancestors: Vec<Ancestor>) {
        let said = self.ancestors(timeline).unwrap_or_default().to_vec();
        self.corrected.entry(timeline).or_insert(said);
        self.followed.remove(&timeline);
        self.sound.insert(timeline, BTreeSet::from([ancestors]));
    }

    /// What a history says in the place of which something else was taken.
    pub(crate) fn corrected(&self, timeline: u32) -> Option<&[Ancestor]> {
        self.corrected.get(&timeline).map(Vec::as_slice)
    }

    /// Reports histories that do not begin with that of the timeline they leave, where the records show where
    /// both begin, or another history agrees with that one, and takes in their place what follows of these;
    /// whether there was one. Older ones come first, so what newer ones are held against is right.
    pub fn correct_ancestors(&mut self, begins: &BTreeMap<u32, Ancestor>) -> bool {
        let before = self.problems.len();
        let timelines: Vec<u32> = self.all().map(|(timeline, _)| timeline).collect();
        for timeline in timelines {
            let Some(parent) = self.contradicts(timeline) else { continue };
            let Some(end) = begins.get(&timeline) else { continue };
            let theirs = self.ancestors(end.timeline).unwrap_or_default();
            let is_shown = end.timeline == OLDEST || begins.get(&end.timeline) == theirs.last();
            if !is_shown && !self.is_backed(end.timeline, timeline) {
                continue;
            }
            let right: Vec<Ancestor> = theirs.iter().copied().chain([*end]).collect();
            let own = self.ancestors(timeline).unwrap_or_default();
            let differs = own.iter().zip(&right).find(|(one, other)| one != other);
            let lsn = differs.map(|(one, other)| one.end.min(other.end));
            self.complain(Problem { lsn, ..contradiction(timeline, parent) });
            self.replace(timeline, right);
        }
        self.problems.len() > before
    }

    /// Whether the history of another one than `newer` begins as that of a timeline that it names has it.
    fn is_backed(&self, timeline: u32, newer: u32) -> bool {
        let own = self.ancestors(timeline);
        let mut others = self.all().filter(|(other, _)| *other != newer);
        others.any(|(_, ancestors)| {
            let named = ancestors.iter().position(|it| it.timeline == timeline);
            named.is_some_and(|count| ancestors.get(..count) == own)
        })
    }

    /// Takes the places where timelines begin, and which ones they leave, into all histories that name
    /// another place of which no server takes notice: `is_unnoticed`, of what is told and what is so.
    /// Whether there was one. Each history is looked at once, however many timelines there are.
    pub fn settle_begins(
        &mut self,
        begins: &BTreeMap<u32, Ancestor>,
        is_unnoticed: impl Fn(Lsn, Lsn) -> bool,
    ) -> bool {
        let before = self.misplaced.len();
        let lists = self.sound.iter_mut().filter(|(_, rivals)| rivals.len() == 1);
        for (history, rivals) in lists {
            let Some(ancestors) = rivals.first() else { continue };
            let children = ancestors.iter().skip(1).map(|it| it.timeline).chain([*history]);
            let misplaced = |(index, (told, child)): (usize, (&Ancestor, u32))| {
                let begin = begins.get(&child)?;
                let is_it = told.timeline == begin.timeline
                    && told.end != begin.end
                    && is_unnoticed(told.end, begin.end);
                is_it.then_some((index, child, *begin))
            };
            let misplaced = ancestors.iter().zip(children).enumerate().filter_map(misplaced);
            let misplaced: Vec<(usize, u32, Ancestor)> = misplaced.collect();
            if misplaced.is_empty() {
                continue;
            }
            let mut ancestors = ancestors.clone();
            for (index, timeline, begin) in misplaced {
                let Some(told) = ancestors.get_mut(index) else { continue };
                let (told, begins) = (std::mem::replace(told, begin).end, begin.end);
                self.misplaced.insert(Misplaced { history: *history, timeline, told, begins });
            }
            let said = std::mem::replace(rivals, BTreeSet::from([ancestors])).pop_first();
            self.corrected.entry(*history).or_insert(said.unwrap_or_default());
            self.followed.remove(history);
        }
        self.misplaced.len() > before
    }

    /// Places that histories name beside those where timelines begin, and that no server minds.
    pub(crate) fn misplaced(&self) -> impl Iterator<Item = &Misplaced> {
        self.misplaced.iter()
    }

    /// Timelines whose histories are cut, with their ancestors, and those that a newer one has.
    fn cut(&self) -> BTreeMap<u32, (&[Ancestor], &[Ancestor])> {
        let mut cut: BTreeMap<u32, (&[Ancestor], &[Ancestor])> = BTreeMap::new();
        for newer in self.sound.values().flatten() {
            for (count, ancestor) in newer.iter().enumerate() {
                let rivals = self.sound.get(&ancestor.timeline).filter(|rivals| rivals.len() == 1);
                let own = rivals.and_then(BTreeSet::first).map_or([].as_slice(), Vec::as_slice);
                let whole = newer.get(..count).unwrap_or_default();
                if is_cut(own, whole) {
                    cut.entry(ancestor.timeline).or_insert((own, whole));
                }
            }
        }
        cut
    }

    /// The ancestors of a timeline, if its history was found and can be read.
    pub fn ancestors(&self, timeline: u32) -> Option<&[Ancestor]> {
        let first = || self.sound.get(&timeline)?.first();
        self.followed.get(&timeline).or_else(first).map(Vec::as_slice)
    }

    /// Whether a history of a timeline was found, readable or not.
    pub fn has(&self, timeline: u32) -> bool {
        self.named.contains(&timeline)
    }

    /// Whether a history has no line that counts.
    pub(crate) fn is_empty(&self, timeline: u32) -> bool {
        let is_it = |it: &Problem| history_timeline(&it.segment) == Some(timeline);
        self.problems.iter().any(|it| it.history == Some(HistoryFault::NoAncestor) && is_it(it))
    }

    /// Whether a server that looks for a history gets one, whatever is in it.
    pub(crate) fn is_got(&self, timeline: u32) -> bool {
        let is_broken = |problem: &Problem| {
            problem.kind == ProblemKind::History
                && problem.fetched != Some(Fetched::NotAtAll)
                && history_timeline(&problem.segment) == Some(timeline)
        };
        self.sound.contains_key(&timeline) || self.problems.iter().any(is_broken)
    }

    /// All readable histories, by timeline; of several, the one that is followed.
    pub fn all(&self) -> impl Iterator<Item = (u32, &[Ancestor])> {
        self.sound.keys().filter_map(|timeline| Some((*timeline, self.ancestors(*timeline)?)))
    }
}

/// As a message says it.
fn told(ancestor: Option<&Ancestor>) -> String {
    ancestor.map_or("nothing".to_owned(), |it| format!("timeline {} to {}", it.timeline, it.end))
}

/// The problem that the history of a timeline does not begin with that of the one it leaves.
pub(crate) fn contradiction(timeline: u32, parent: u32) -> Problem {
    let expected = format!("all of {} first", name_of(parent));
    let found = "other ancestors".to_owned();
    let wrong = WrongHistory { fault: HistoryFault::OtherAncestors, found };
    Problem::of_history(&name_of(timeline), expected, wrong)
}

/// Whether a history lacks the last digits or lines that another has. Of thousands nearly all are whole,
/// which the last ancestors tell.
fn is_cut(own: &[Ancestor], whole: &[Ancestor]) -> bool {
    let Some((last, before)) = own.split_last() else { return false };
    let Some(same) = whole.get(before.len()) else { return false };
    let lacks_lines = own.len() < whole.len() && last.end == same.end;
    let lacks_digits = last.end < same.end && is_beginning(last.end, same.end);
    last.timeline == same.timeline
        && (lacks_lines || lacks_digits)
        && whole.get(..before.len()) == Some(before)
}

/// Whether `cut` is written as `whole` is, without its last digits.
fn is_beginning(cut: Lsn, whole: Lsn) -> bool {
    let halves = |lsn: Lsn| (lsn.0 >> 32, format!("{:X}", lsn.0 & u64::from(u32::MAX)));
    let ((high, low), (of_whole, whole)) = (halves(cut), halves(whole));
    high == of_whole && low.len() < whole.len() && whole.starts_with(&low)
}

/// The name of a timeline's history file.
pub fn name_of(timeline: u32) -> String {
    format!("{timeline:08X}.history")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_begins_with_that_of_the_timeline_it_leaves() {
        let mut histories = Histories::default();
        histories.add(2, Ok("1\t0/892E18\tx"), "00000002.history");
        histories.add(3, Ok("1\t0/892E18\tx\n2\t1/0\tx"), "00000003.history");
        assert_eq!(histories.contradicting(), []);
        histories.add(4, Ok("2\t1/0\tx"), "00000004.history");
        assert_eq!(histories.contradicting(), [(4, 2)]);
    }

    #[test]
    fn a_place_that_no_server_minds_is_settled_in_all_histories() {
        let mut histories = Histories::default();
        histories.add(2, Ok("1\t0/892E18"), "00000002.history");
        histories.add(3, Ok("1\t0/892E10\n2\t1/0"), "00000003.history");
        let end = Ancestor { timeline: 1, end: Lsn(0x89_2E18) };
        let begins = BTreeMap::from([(2, end)]);
        assert!(!histories.settle_begins(&begins, |_, _| false));
        assert!(histories.settle_begins(&begins, |told, _| told == Lsn(0x89_2E10)));
        assert_eq!((histories.contradicting(), histories.problems().count()), (vec![], 0));
        let misplaced: Vec<_> = histories.misplaced().collect();
        assert!(misplaced.iter().all(|it| (it.history, it.timeline) == (3, 2)));
        assert_eq!(misplaced[0].begins, Lsn(0x89_2E18));
        assert!(histories.corrected(3).is_some_and(|said| said[0].end == misplaced[0].told));
    }

    #[test]
    fn a_history_that_is_cut_is_blamed_and_no_other() {
        let mut histories = Histories::default();
        histories.add(2, Ok("1\t0/D7"), "00000002.history");
        histories.add(3, Ok("1\t0/D770C8\tx\n2\t0/12526E0\tx"), "00000003.history");
        histories.mend_cut();
        assert_eq!(histories.contradicting(), []);
        let blamed: Vec<_> = histories.problems().map(|problem| problem.segment).collect();
        assert_eq!(blamed, ["00000002.history"]);
        let ancestors = histories.ancestors(2).expect("two's");
        assert_eq!(ancestors.first().map(|one| one.end), Some(Lsn(0xD7_70C8)));
        histories.add(4, Ok("1\t0/D7"), "00000004.history");
        histories.mend_cut();
        assert_eq!(histories.problems().count(), 1, "4 leaves 1 elsewhere");
        histories.add(5, Ok("1\t0/D770C8"), "00000005.history");
        histories.add(6, Ok("1\t0/D770C8\n2\t0/20\n5\t0/30"), "00000006.history");
        histories.mend_cut();
        let last = histories.problems().last().map(|problem| problem.segment);
        assert_eq!(last.as_deref(), Some("00000005.history"), "it lacks a line");
    }

    #[test]
    fn a_history_that_cannot_be_read_is_a_problem() {
        let mut histories = Histories::default();
        histories.add(2, Ok("1\t0/10\tx\n"), "00000002.history");
        histories.add(2, Ok("1\t0/10\ty\n"), "00000002.history.gz");
        assert_eq!(histories.problems().count(), 0);
        histories.add(3, Err::<&str, _>("Permission denied".into()), "00000003.history");
        histories.add(2, Ok("1\t0/18\tx\n"), "00000002.history");
        let found = histories.problems().map(|problem| problem.segment);
        assert_eq!(found.collect::<Vec<_>>(), ["00000003.history", "00000002.history"]);
        assert!(histories.has(3) && histories.ancestors(3).is_none() && !histories.has(4));
    }
}
