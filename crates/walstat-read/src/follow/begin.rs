//! How following begins: which folder it is, and where in its WAL.

use super::folder::Folder;
use super::same_history::History;
use super::shelf::Shelf;
use super::{Files, Follower, Progress, StartAt, Trouble};
use crate::input::discover::{Found, data_directory_of};
use crate::input::error::InputError;
use crate::input::input_kind::{InputKind, SERVER_DIRECTORIES};
use crate::input::placing::place;
use crate::input::plan::{Plan, plan};
use crate::input::timeline::Lineage;
use crate::scan::observer::Observer;
use crate::scan::pages::WINDOW_BYTES;
use crate::scan::scope::Scope;
use crate::scan::streamed::Wanted;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use walstat_format::lsn::Lsn;

impl Follower {
    /// Begins to follow the WAL that was found; returns it with the plan of what is there.
    ///
    /// # Errors
    ///
    /// When there is no WAL (yet), or none of the start.
    pub fn begin(
        found: &Found,
        from: StartAt,
        wanted: &Wanted,
    ) -> Result<(Follower, Plan), InputError> {
        let timeline = wanted.timeline;
        let mut found = found.clone();
        found.judge_plain_histories();
        let found = &found;
        let plan = plan(found, place(found)?, timeline)?;
        let root = folder_of(found);
        let mut shelf = Shelf::new(&root, plan.geometry.segment_bytes);
        let (skipped, newest) = bounds(&plan);
        let start = skipped.end;
        let position = match from {
            StartAt::Oldest => start,
            StartAt::Now => newest,
            StartAt::Lsn(lsn) if lsn < start => {
                let last = plan.bounds().end;
                return Err(InputError::Range { path: root, first: start, last });
            }
            StartAt::Lsn(lsn) | StartAt::Before { position: lsn, .. } => lsn,
        };
        let bytes = u64::from(plan.geometry.segment_bytes);
        shelf.list(position.0 / bytes).map_err(|error| InputError::io(&root, error))?;
        let kind = plan.taken_for();
        let lineage = match from {
            // A newer one may have begun meanwhile: it is told of.
            StartAt::Before { timeline, .. } => Lineage::of(timeline, &shelf.histories),
            _ => plan.lineage.clone(),
        };
        let scope = wanted.clone().scope_of(&plan);
        let mut follower = Follower::at(position, shelf, Taken { kind, scope, lineage });
        follower.timeline = timeline;
        follower.data_directory = plan.wal_alone.as_deref().and_then(data_directory_of);
        follower.skipped =
            Some(skipped).filter(|skipped| from == StartAt::Oldest && !skipped.is_empty());
        Ok((follower, plan))
    }

    /// One that stands at a position of these segments, and has not read anything.
    pub(super) fn at(position: Lsn, shelf: Shelf, taken: Taken) -> Follower {
        let Taken { kind, scope, lineage } = taken;
        Follower {
            folder: Folder::new(shelf.root()),
            kind,
            scope,
            timeline: None,
            data_directory: None,
            lineage,
            history: History::default(),
            progress: Progress {
                start: None,
                position,
                last: None,
                open: None,
                newest: position,
                lost_bytes: 0,
                lost_from: None,
            },
            files: Files { shelf, held: BTreeMap::new(), seen: BTreeMap::new() },
            trouble: Trouble::default(),
            is_new: true,
            buffer: vec![0; WINDOW_BYTES],
            observer: Observer::default(),
            skipped: None,
        }
    }
}

/// What the WAL is taken for.
pub(super) struct Taken {
    /// What the folder is.
    pub kind: InputKind,
    /// What is read of it, and how.
    pub scope: Scope,
    /// The timelines that it goes along.
    pub lineage: Lineage,
}

/// The folder with the segments.
fn folder_of(found: &Found) -> PathBuf {
    let path = found.paths.first().cloned().unwrap_or_default();
    let inside = SERVER_DIRECTORIES.map(|name| path.join(name));
    let is_data = found.data_directory.as_deref() == Some(Path::new(&path));
    inside.into_iter().find(|inside| is_data && inside.is_dir()).unwrap_or(path)
}

/// From where the oldest segment with WAL begins to where those do that follow each other up to the newest;
/// and where that one begins.
fn bounds(plan: &Plan) -> (Range<Lsn>, Lsn) {
    let bytes = u64::from(plan.geometry.segment_bytes);
    let with_wal = plan.segments.iter().filter(|segment| {
        let first = segment.first_page.as_ref();
        first.is_ok_and(|page| page.header.address.0 == segment.number * bytes)
    });
    let numbers: Vec<u64> = with_wal.map(|segment| segment.number).collect();
    let last = numbers.last().copied().unwrap_or_default();
    let oldest = numbers.first().copied().unwrap_or_default();
    let mut first = last;
    for number in numbers.into_iter().rev() {
        if number + 1 < first {
            break;
        }
        first = number;
    }
    (Lsn(oldest * bytes)..Lsn(first * bytes), Lsn(last * bytes))
}
