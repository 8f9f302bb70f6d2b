//! The latest timeline, which a server follows unless told otherwise, where there are no segments of it.

use super::Plan;
use crate::input::history::{self, Histories};
use crate::input::input_kind::InputKind;
use crate::input::placing::Placed;
use crate::input::problem::{Problem, ProblemKind};
use std::collections::BTreeSet;

/// The histories without those that no server gets and that lead to no segment: it restores as if they were
/// not there. So what was found to be wrong with them is a note.
pub(super) fn without_unfetched(
    placed: &mut Placed,
    present: &BTreeSet<u32>,
    histories: &Histories,
) -> Histories {
    let newest = present.last().copied().unwrap_or(u32::MAX);
    let mut histories = histories.clone();
    placed.problems.retain(|Problem { kind, segment, found, .. }| {
        let timeline = history::timeline_of(segment).filter(|timeline| *timeline > newest);
        let is_missing = *kind == ProblemKind::MissingHistory;
        let Some(timeline) = timeline.filter(|_| is_missing) else { return true };
        histories.leave_out(timeline);
        placed.notes.push(format!(
            "{segment}: {found}: no restore_command gets it, and there is no segment of timeline {timeline}: \
             a server restores as if there were none"
        ));
        false
    });
    histories
}

impl Plan {
    /// The problem that a restore to the latest timeline leaves the one that is followed: by a history
    /// without segments, which tells of no WAL to go on with.
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
        let found = format!(
            "no segment of it; it leaves timeline {parent} at {leaves}, where a restore to the latest \
             timeline would end"
        );
        let name = history::name_of(timeline);
        Some(Problem::of_file(ProblemKind::History, &name, expected, found))
    }

    /// Notes about histories of timelines newer than all segments: the latest timeline is one of them.
    pub(super) fn without_segments(
        &self,
        present: &BTreeSet<u32>,
        histories: &Histories,
    ) -> Vec<String> {
        let newest = present.last().copied().unwrap_or(u32::MAX);
        let newer = histories.all().map(|(timeline, _)| timeline).filter(|newer| *newer > newest);
        // A server looks for them one by one.
        let missing = (newest..u32::MAX).map(|before| before + 1).find(|it| !histories.has(*it));
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
