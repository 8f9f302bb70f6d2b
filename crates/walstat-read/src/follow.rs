//! WAL as it is written: each look reads what is new, counts the records that are whole, and remembers where
//! it stopped. Nothing is read twice but the page in which the next record starts, which may have been
//! written in part.
//!
//! Records are read by the same `Reader` as everywhere, which ends where no valid record follows: there the
//! server is writing. Of a record that goes on after the last whole page the state is kept, as between two
//! runs. A page that a server was writing while it was read is not believed until a record in it has its
//! checksum.

mod folder;
mod held;
mod passing;
mod same_history;
mod shelf;
mod stretch;

use crate::input::discover::Found;
use crate::input::error::InputError;
use crate::input::input_kind::{InputKind, SERVER_DIRECTORIES};
use crate::input::placing::{Key, place};
use crate::input::plan::{Plan, plan};
use crate::input::timeline::Lineage;
use crate::scan::observe::Observe;
use crate::scan::observer::Observer;
use crate::scan::pages::WINDOW_BYTES;
use crate::scan::pending::Pending;
use crate::scan::run::{Last, Run};
use crate::scan::scope::Scope;
use crate::scan::streamed::Wanted;
use folder::Folder;
use held::Held;
use same_history::History;
use shelf::Shelf;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;
use walstat_format::lsn::Lsn;
use walstat_format::page::Geometry;

/// Where following begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StartAt {
    /// At the oldest WAL that is there.
    #[default]
    Oldest,
    /// With what is written from now on.
    Now,
    /// At a record that starts here or after it.
    Lsn(Lsn),
    /// Where it stopped before, on this timeline.
    Before(Lsn, u32),
}

/// What happened besides records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    /// WAL was gone before it was read.
    Lost {
        /// After the last record before it.
        from: Lsn,
        /// The first record after it.
        to: Lsn,
    },
    /// WAL that cannot be read as such, counted as lost.
    Damaged {
        /// Where it begins.
        from: Lsn,
        /// The first record after it.
        to: Lsn,
        /// What was found there.
        found: String,
    },
    /// The WAL goes on on a newer timeline.
    Timeline {
        /// The newer one.
        timeline: u32,
        /// Where it left the older one.
        at: Lsn,
        /// Up to where the older one was counted, if that is after it.
        counted_to: Option<Lsn>,
    },
    /// The folder is not there any more.
    Gone {
        /// After the last record before that.
        at: Lsn,
    },
    /// The folder cannot be read any more.
    Unreadable {
        /// After the last record before that.
        at: Lsn,
        /// Why.
        error: String,
    },
    /// The folder is there again, or can be read again.
    Back {
        /// Where it goes on.
        at: Lsn,
    },
    /// The record that was counted last is not in the WAL that is there: that is an older copy, or has gone
    /// on otherwise.
    OtherHistory {
        /// The record; where none was counted, where reading was to begin.
        at: Lsn,
    },
    /// Another cluster's WAL lies where the folder was.
    OtherCluster {
        /// After the last record of the one that is followed.
        at: Lsn,
        /// The other one.
        system_identifier: u64,
    },
}

/// What a look has found.
#[derive(Debug, Default)]
pub struct Look {
    /// All that there is was read; else the time was up.
    pub is_at_end: bool,
    /// What happened besides records.
    pub happenings: Vec<Happening>,
}

/// A record that goes on after the last whole page.
struct Open {
    pending: Pending,
    /// The page that it goes on in.
    page: Lsn,
}

/// Follows the WAL of one folder.
pub struct Follower {
    shelf: Shelf,
    folder: Folder,
    kind: InputKind,
    scope: Scope,
    /// The timeline that was asked for: no other one is followed.
    timeline: Option<u32>,
    lineage: Lineage,
    start: Option<Lsn>,
    position: Lsn,
    /// The last counted record, if nothing is missing after it.
    last: Option<Last>,
    history: History,
    newest: Lsn,
    lost_bytes: u64,
    /// Where records are missing from, until the first one after it is known.
    lost_from: Option<Lsn>,
    held: BTreeMap<Key, Held>,
    /// Nothing was looked at yet.
    is_new: bool,
    open: Option<Open>,
    buffer: Vec<u8>,
    /// What has counted so far.
    observer: Observer,
    /// Since when a segment is missing.
    hole_since: Option<Instant>,
    /// Since when the position is the same, and what stands there.
    stuck: Stuck,
}

/// A place that reading does not get beyond.
#[derive(Default)]
struct Stuck {
    at: Lsn,
    since: Option<Instant>,
    /// Valid pages follow.
    is_followed: bool,
    found: String,
}

/// What became of a stretch.
struct Stretch {
    run: Run,
    /// The page after the last one that was taken.
    at: Lsn,
    /// Whether it is known to be whole, as pages come after it.
    is_followed: bool,
    is_at_end: bool,
    newest: Lsn,
}

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
        let plan = plan(found, place(found)?, timeline)?;
        let root = folder_of(found);
        let mut shelf = Shelf::new(&root, plan.geometry.segment_bytes);
        let (start, newest) = bounds(&plan);
        let position = match from {
            StartAt::Oldest => start,
            StartAt::Now => newest,
            StartAt::Lsn(lsn) if lsn < start => {
                let last = plan.bounds().end;
                return Err(InputError::Range { path: root, first: start, last });
            }
            StartAt::Lsn(lsn) | StartAt::Before(lsn, _) => lsn,
        };
        let bytes = u64::from(plan.geometry.segment_bytes);
        shelf.list(position.0 / bytes).map_err(|error| InputError::io(&root, error))?;
        let kind = plan.taken_for();
        let lineage = match from {
            // A newer one may have begun meanwhile: it is told of.
            StartAt::Before(_, timeline) => Lineage::of(timeline, &shelf.histories),
            _ => plan.lineage.clone(),
        };
        let follower = Follower {
            folder: Folder::new(&root),
            shelf,
            kind,
            scope: wanted.clone().scope(plan.geometry),
            timeline,
            lineage,
            start: None,
            position,
            last: None,
            history: History::default(),
            newest: position,
            lost_bytes: 0,
            lost_from: None,
            held: BTreeMap::new(),
            is_new: true,
            open: None,
            buffer: vec![0; WINDOW_BYTES],
            observer: Observer::default(),
            hole_since: None,
            stuck: Stuck::default(),
        };
        Ok((follower, plan))
    }

    /// Has all that is read from now on counted by a dimension.
    pub fn count(&mut self, mut counted: impl Observe) {
        counted.settle();
        self.observer = Observer::new(counted);
    }

    /// Begins with what is written from now on.
    pub fn begin_here(&mut self) {
        (self.start, self.lost_bytes, self.lost_from) = (None, 0, None);
    }

    /// Goes on with what was counted before; `last`: the last record of it.
    pub fn go_on(&mut self, start: Lsn, lost_bytes: u64, last: Option<Last>) {
        (self.start, self.lost_bytes) = (Some(start), lost_bytes);
        self.last = last.filter(|last| last.next == self.position);
    }

    /// The last counted record, if nothing is missing after it.
    pub fn last(&self) -> Option<Last> {
        self.last
    }

    /// Release, cluster and sizes.
    pub fn geometry(&self) -> &Geometry {
        &self.scope.geometry
    }

    /// The timeline that is being read.
    pub fn timeline(&self) -> u32 {
        self.lineage.of_page(self.position)
    }

    /// Where the first counted record starts; before there is one, where it will be.
    pub fn start(&self) -> Lsn {
        self.start.unwrap_or(self.position)
    }

    /// After the last counted record.
    pub fn position(&self) -> Lsn {
        self.position
    }

    /// How far the newest byte that there is lies after the position.
    pub fn behind_bytes(&self) -> u64 {
        self.newest.0.saturating_sub(self.position.0)
    }

    /// WAL that was gone before it was read.
    pub fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    /// What the folder is taken for.
    pub fn kind(&self) -> InputKind {
        self.kind
    }

    /// Does something with what was counted so far, if it is of this type.
    pub fn counted<O: Observe, R>(&mut self, does: impl FnOnce(&mut O) -> R) -> Option<R> {
        match std::mem::take(&mut self.observer).into_inner::<O>() {
            Ok(mut counted) => {
                let result = does(&mut counted);
                self.observer = Observer::new(counted);
                Some(result)
            }
            Err(other) => {
                self.observer = other;
                None
            }
        }
    }

    /// Whether the folder is there, can be read, and holds the WAL that is followed.
    pub fn is_readable(&self) -> bool {
        self.folder.is_there() && self.history != History::Other
    }

    /// Reads what is new, until there is nothing more or the time is up. A folder that is not there or cannot
    /// be read is waited for.
    ///
    /// # Errors
    ///
    /// When a file in the folder cannot be read.
    pub fn look(&mut self, until: Instant) -> Result<Look, InputError> {
        let mut look = Look::default();
        match self.look_into(until, &mut look) {
            Ok(()) => self.note_readable(&mut look),
            Err(error) => self.note_unreadable(error, &mut look)?,
        }
        Ok(look)
    }

    fn look_into(&mut self, until: Instant, look: &mut Look) -> Result<(), InputError> {
        let number = self.position.0 / self.segment_bytes();
        let listed = self.list(number, look)?;
        if self.folder.is_of_another_cluster() {
            look.is_at_end = true;
            return Ok(());
        }
        if std::mem::take(&mut self.is_new) || listed {
            let copies = &self.shelf.segments;
            let is_other = |key: &Key, held: &Held| {
                copies.get(key).is_some_and(|copy| held.is_other_than(&copy.path))
            };
            let count = self.held.len();
            self.held.retain(|key, held| !is_other(key, held));
            if self.held.len() < count && self.history == History::Same {
                self.history = History::Unknown;
            }
            self.take_newer_timeline(look);
            self.hold_ahead(number)?;
        }
        if !self.is_same_history(look)? {
            look.is_at_end = true;
            return Ok(());
        }
        loop {
            let stretch = self.read_stretch(until, false)?;
            let is_at_end = stretch.is_at_end;
            let moved = self.take(stretch, look);
            if !is_at_end {
                break;
            }
            if !moved && !self.pass_hole(look)? && !self.pass_damage(until, look)? {
                self.note_beyond()?;
                look.is_at_end = true;
                break;
            }
            if Instant::now() >= until {
                break;
            }
        }
        self.observer.settle();
        Ok(())
    }

    fn shelf_root(&self) -> PathBuf {
        self.shelf.root().to_owned()
    }

    fn segment_bytes(&self) -> u64 {
        u64::from(self.scope.geometry.segment_bytes)
    }

    fn page_of(&self, lsn: Lsn) -> Lsn {
        let page = u64::from(self.scope.geometry.page_bytes);
        Lsn(lsn.0 / page * page)
    }

    /// The file in which a page lies.
    fn key_at(&self, page: Lsn) -> Key {
        let number = page.0 / self.segment_bytes();
        (self.lineage.of_file(number, self.scope.geometry.segment_bytes), number)
    }

    /// The next page to be read.
    fn next_page(&self) -> Lsn {
        self.open.as_ref().map_or_else(|| self.page_of(self.position), |open| open.page)
    }

    /// Takes over what a stretch has brought; whether there was a record in it.
    fn take(&mut self, stretch: Stretch, look: &mut Look) -> bool {
        let Stretch { run, at, is_followed, newest, .. } = stretch;
        let last = run.last.filter(|last| last.lsn >= self.position);
        if let Some(first) = run.first_in_range.filter(|_| last.is_some()) {
            self.start.get_or_insert(first);
            self.end_of_loss(first, look);
        }
        if let Some(last) = last {
            (self.position, self.last) = (last.next, Some(last));
        }
        let page = u64::from(self.scope.geometry.page_bytes);
        if self.stuck.at != self.position || self.stuck.since.is_none() {
            self.stuck = Stuck { at: self.position, ..Stuck::default() };
            self.stuck.since = Some(Instant::now());
        }
        if let Some(gap) = &run.gap {
            let seen = self.page_of(gap.seen_at);
            self.stuck.is_followed = self.page_of(newest) > seen;
            self.stuck.found = gap.problem(None, &self.scope.geometry).whole_found();
        }
        let began_in_last = |pending: &Pending| pending.lsn.0 + page >= at.0;
        let pending = run.open.filter(|_| run.gap.is_none());
        let pending = pending.filter(|pending| is_followed || !began_in_last(pending));
        self.open = pending.map(|pending| Open { pending, page: at });
        self.newest = newest.max(self.position);
        self.observer = run.observer;
        last.is_some()
    }

    /// The first record after a loss is known.
    fn end_of_loss(&mut self, first: Lsn, look: &mut Look) {
        if let Some(from) = self.lost_from.take() {
            self.lost_bytes += first.0.saturating_sub(self.position.0);
            look.happenings.push(Happening::Lost { from, to: first });
        }
    }
}

/// The folder with the segments.
fn folder_of(found: &Found) -> PathBuf {
    let path = found.paths.first().cloned().unwrap_or_default();
    let inside = SERVER_DIRECTORIES.map(|name| path.join(name));
    let is_data = found.data_directory.as_deref() == Some(Path::new(&path));
    inside.into_iter().find(|inside| is_data && inside.is_dir()).unwrap_or(path)
}

/// Where the segments begin that follow each other up to the newest one with WAL, and where that one begins.
fn bounds(plan: &Plan) -> (Lsn, Lsn) {
    let bytes = u64::from(plan.geometry.segment_bytes);
    let with_wal = plan.segments.iter().filter(|segment| {
        let first = segment.first_page.as_ref();
        first.is_ok_and(|page| page.header.address.0 == segment.number * bytes)
    });
    let numbers: Vec<u64> = with_wal.map(|segment| segment.number).collect();
    let last = numbers.last().copied().unwrap_or_default();
    let mut first = last;
    for number in numbers.into_iter().rev() {
        if number + 1 < first {
            break;
        }
        first = number;
    }
    (Lsn(first * bytes), Lsn(last * bytes))
}
