//! The latest timeline, which a server follows unless told otherwise, where there are no segments of it.

use super::Plan;
use crate::input::history::{self, Histories};
use crate::input::input_kind::InputKind;
use crate::input::problem::{Problem, ProblemKind};
use std::collections::BTreeSet;

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
        let note = |timeline| {
            let name = history::name_of(timeline);
            format!(
                "{name}: no segment of timeline {timeline}, which a restore to the latest one follows"
            )
        };
        newer.map(note).collect()
    }
}
