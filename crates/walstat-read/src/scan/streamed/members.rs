//! Members of a tar of which several have one path, as `tar -r` adds them: GNU tar and bsdtar unpack all of
//! them, one over the other, so the last one is read.

use super::{Collector, misnamed};
use crate::input::names::file_name;
use crate::input::stream::{StreamHistory, StreamSegment, without_dots};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The members of a stream that another one may replace.
#[derive(Default)]
pub(super) struct Members {
    /// Indexes of the last ones of each path: segments among the pieces, histories among these.
    last: BTreeMap<PathBuf, usize>,
    histories: Vec<StreamHistory>,
    /// How many were replaced.
    replaced: usize,
}

impl Members {
    /// Keeps a history until the end of the stream.
    pub(super) fn take_history(&mut self, history: StreamHistory) {
        let next = self.histories.len();
        let index = self.take(&history.path, history.is_again, next);
        match self.histories.get_mut(index) {
            Some(replaced) => *replaced = history,
            None => self.histories.push(history),
        }
    }

    /// The index at which a member belongs: that of the one that it replaces, or the `next` one.
    fn take(&mut self, path: &Path, is_again: bool, next: usize) -> usize {
        let last = self.last.entry(without_dots(path)).or_insert(next);
        if is_again && *last != next {
            self.replaced += 1;
        } else {
            *last = next;
        }
        *last
    }
}

impl Collector<'_> {
    /// Adds a segment, or puts it in the place of one that came before, of which nothing is left.
    pub(super) fn add_member(&mut self, item: &StreamSegment<'_>) -> usize {
        let added = self.add_piece(item);
        if item.name.is_none() {
            return added;
        }
        let index = self.members.take(&item.path, item.is_again, added);
        if index != added {
            if let Some(passed) = self.passed.remove(&index) {
                self.counted -= passed.run.counted + u64::from(passed.run.open.is_some());
            }
            let replaced = self.found.pieces.swap_remove(index);
            let problems = &mut self.found.problems;
            let told = misnamed(replaced.name.as_ref(), &replaced.probe);
            let told = told.and_then(|told| problems.iter().position(|it| *it == told));
            if let Some(told) = told {
                problems.remove(told);
            }
        }
        index
    }

    /// Adds the histories of a stream that is over, and what is to be said of it.
    pub(super) fn end_stream(&mut self) {
        let Members { histories, replaced, .. } = std::mem::take(&mut self.members);
        for StreamHistory { timeline, path, text, .. } in histories {
            if let Err(error) = &text {
                self.progress.note_error(&self.stream.path, error);
            }
            let path = self.directory_of(&path).join(file_name(&path));
            self.found.add_history(timeline, &path, text);
        }
        if replaced > 0 {
            let stream = self.stream.path.display();
            let again = match replaced {
                1 => "1 file is there twice".to_owned(),
                _ => format!("{replaced} files are there again"),
            };
            self.found
                .notes
                .push(format!("{stream}: {again}: the last one is read, which tar -x leaves"));
        }
    }
}
