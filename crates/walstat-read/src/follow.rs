//! WAL as it is written: each look reads what is new, counts the records that are whole, and remembers where
//! it stopped. Nothing is read twice but the page in which the next record starts, which may have been
//! written in part.
//!
//! Records are read by the same `Reader` as everywhere, which ends where no valid record follows: there the
//! server is writing. Of a record that goes on after the last whole page the state is kept, as between two
//! runs. A page that a server was writing while it was read is not believed until a record in it has its
//! checksum.

mod begin;
mod folder;
mod held;
mod passing;
mod recount;
mod same_history;
mod shelf;
mod stretch;

use crate::input::error::InputError;
use crate::input::input_kind::InputKind;
use crate::input::placing::Key;
use crate::input::timeline::Lineage;
use crate::scan::observe::Observe;
use crate::scan::observer::Observer;
use crate::scan::pending::Pending;
use crate::scan::run::{Last, Run};
use crate::scan::scope::Scope;
use folder::Folder;
use held::{Held, Identity};
pub use recount::{Recount, Recounted};
use same_history::History;
use shelf::Shelf;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
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
    /// Where it stopped before.
    Before {
        /// After the record that was counted last.
        position: Lsn,
        /// The timeline that it was on.
        timeline: u32,
    },
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
    /// What lies before a segment that was missing, or could not be read, when following began: none of it is
    /// counted.
    Skipped {
        /// Where it begins.
        from: Lsn,
        /// Where counting begins.
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
        /// Whether something was counted.
        was_read: bool,
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
    /// Why it was not read on: a file in the folder cannot be read. What came before that is counted, and
    /// what happened before it is to be told.
    pub error: Option<InputError>,
}

/// A record that goes on after the last whole page.
struct Open {
    pending: Pending,
    /// The page that it goes on in.
    page: Lsn,
}

/// Follows the WAL of one folder.
pub struct Follower {
    folder: Folder,
    kind: InputKind,
    scope: Scope,
    /// The timeline that was asked for: no other one is followed.
    timeline: Option<u32>,
    /// The data directory of the server that writes the WAL, if it lies in one.
    data_directory: Option<PathBuf>,
    lineage: Lineage,
    history: History,
    progress: Progress,
    files: Files,
    trouble: Trouble,
    /// Nothing was looked at yet.
    is_new: bool,
    buffer: Vec<u8>,
    /// What has counted so far.
    observer: Observer,
    /// What lies before a segment that is missing at the start, and is not counted.
    skipped: Option<Range<Lsn>>,
}

/// How far reading has come.
struct Progress {
    start: Option<Lsn>,
    position: Lsn,
    /// The last counted record, if nothing is missing after it.
    last: Option<Last>,
    open: Option<Open>,
    newest: Lsn,
    lost_bytes: u64,
    /// Where records are missing from, until the first one after it is known.
    lost_from: Option<Lsn>,
}

/// The files that the WAL is read from.
struct Files {
    shelf: Shelf,
    held: BTreeMap<Key, Held>,
    /// Those from which the segments since the last counted record were read.
    seen: BTreeMap<Key, Identity>,
}

/// What keeps reading from going on.
#[derive(Default)]
struct Trouble {
    /// Since when the position is the same, and what stands there.
    stuck: Stuck,
    /// Since when a segment is missing.
    hole_since: Option<Instant>,
    /// Why the last stretch was not read on.
    unread: Option<InputError>,
}

/// A place that reading does not get beyond.
#[derive(Clone, Default)]
struct Stuck {
    at: Lsn,
    since: Option<Instant>,
    /// Valid pages follow.
    is_followed: bool,
    found: String,
    /// Up to where no record was found after it, while the time of a look was up.
    leapt_to: Option<Lsn>,
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
    /// Has all that is read from now on counted by a dimension.
    pub fn count(&mut self, mut counted: impl Observe) {
        counted.settle();
        self.observer = Observer::new(counted);
    }

    /// Begins with what is written from now on.
    pub fn begin_here(&mut self) {
        (self.progress.start, self.progress.lost_bytes, self.progress.lost_from) = (None, 0, None);
    }

    /// Goes on with what was counted before; `last`: the last record of it.
    pub fn go_on(&mut self, start: Lsn, lost_bytes: u64, last: Option<Last>) {
        (self.progress.start, self.progress.lost_bytes) = (Some(start), lost_bytes);
        self.progress.last = last.filter(|last| last.next == self.progress.position);
        // The record may lie in the segment before the position.
        self.files.shelf.forget();
    }

    /// The last counted record, if nothing is missing after it.
    pub fn last(&self) -> Option<Last> {
        self.progress.last
    }

    /// Release, cluster and sizes.
    pub fn geometry(&self) -> &Geometry {
        &self.scope.geometry
    }

    /// The timeline that is being read.
    pub fn timeline(&self) -> u32 {
        self.lineage.of_page(self.progress.position)
    }

    /// Where the first counted record starts; before there is one, where it will be.
    pub fn start(&self) -> Lsn {
        self.progress.start.unwrap_or(self.progress.position)
    }

    /// After the last counted record.
    pub fn position(&self) -> Lsn {
        self.progress.position
    }

    /// How far the newest byte that there is lies after the position.
    pub fn behind_bytes(&self) -> u64 {
        self.progress.newest.0.saturating_sub(self.progress.position.0)
    }

    /// WAL that was gone before it was read.
    pub fn lost_bytes(&self) -> u64 {
        self.progress.lost_bytes
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

    /// Reads what is new, until there is nothing more or the time is up. A folder that is not there or may
    /// not be read is waited for.
    #[must_use]
    pub fn look(&mut self, until: Instant) -> Look {
        let mut look = Look::default();
        let looked = self.look_into(until, &mut look);
        match looked.and_then(|()| self.trouble.unread.take().map_or(Ok(()), Err)) {
            Ok(()) => self.note_readable(&mut look),
            Err(error) => self.note_unreadable(error, &mut look),
        }
        look
    }

    fn look_into(&mut self, until: Instant, look: &mut Look) -> Result<(), InputError> {
        let skipped = self.skipped.take();
        look.happenings.extend(
            skipped.map(|Range { start, end }| Happening::Skipped { from: start, to: end }),
        );
        let listed = self.list(self.first_wanted(), look)?;
        if self.folder.is_of_another_cluster() {
            look.is_at_end = true;
            return Ok(());
        }
        if std::mem::take(&mut self.is_new) || listed {
            let copies = &self.files.shelf.segments;
            let is_other = |key: &Key, held: &Held| {
                copies.get(key).is_some_and(|copy| held.is_other_than(&copy.path))
            };
            let count = self.files.held.len();
            self.files.held.retain(|key, held| !is_other(key, held));
            if self.files.held.len() < count && self.history == History::Same {
                self.history = History::Unknown;
            }
            self.take_newer_timeline(look);
            self.doubt_history();
            self.hold_ahead(self.progress.position.0 / self.segment_bytes());
        }
        if !self.is_same_history(look)? {
            look.is_at_end = true;
            return Ok(());
        }
        loop {
            let stretch = self.read_stretch(until, false);
            let is_at_end = stretch.is_at_end;
            let moved = self.take(stretch, look);
            if !is_at_end || self.trouble.unread.is_some() {
                break;
            }
            if !moved && self.next_links()? == Some(false) {
                self.history = History::Unknown;
                if !self.is_same_history(look)? {
                    look.is_at_end = true;
                    break;
                }
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

    /// The first segment that is listed: that with the record that was counted last.
    fn first_wanted(&self) -> u64 {
        let Progress { position, last, .. } = &self.progress;
        last.map_or(*position, |last| last.lsn.min(*position)).0 / self.segment_bytes()
    }

    fn shelf_root(&self) -> PathBuf {
        self.files.shelf.root().to_owned()
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
        let Progress { position, open, .. } = &self.progress;
        open.as_ref().map_or_else(|| self.page_of(*position), |open| open.page)
    }

    /// Takes over what a stretch has brought; whether there was a record in it.
    fn take(&mut self, stretch: Stretch, look: &mut Look) -> bool {
        let Stretch { run, at, is_followed, newest, .. } = stretch;
        let last = run.last.filter(|last| last.lsn >= self.progress.position);
        if let Some(first) = run.first_in_range.filter(|_| last.is_some()) {
            self.progress.start.get_or_insert(first);
            self.end_of_loss(first, look);
        }
        if let Some(last) = last {
            (self.progress.position, self.progress.last) = (last.next, Some(last));
            let number = self.first_wanted();
            self.files.seen.retain(|key, _| key.1 >= number);
        }
        let page = u64::from(self.scope.geometry.page_bytes);
        if self.trouble.stuck.at != self.progress.position || self.trouble.stuck.since.is_none() {
            self.trouble.stuck = Stuck { at: self.progress.position, ..Stuck::default() };
            self.trouble.stuck.since = Some(Instant::now());
        }
        if let Some(gap) = &run.gap {
            let seen = self.page_of(gap.seen_at);
            self.trouble.stuck.is_followed = self.page_of(newest) > seen;
            self.trouble.stuck.found = gap.problem(None, &self.scope.geometry).whole_found();
        }
        let began_in_last = |pending: &Pending| pending.lsn.0 + page >= at.0;
        let pending = run.open.filter(|_| run.gap.is_none());
        let pending = pending.filter(|pending| is_followed || !began_in_last(pending));
        self.progress.open = pending.map(|pending| Open { pending, page: at });
        self.progress.newest = newest.max(self.progress.position);
        self.observer = run.observer;
        last.is_some()
    }

    /// The first record after a loss is known.
    fn end_of_loss(&mut self, first: Lsn, look: &mut Look) {
        if let Some(from) = self.progress.lost_from.take() {
            self.progress.lost_bytes += first.0.saturating_sub(self.progress.position.0);
            look.happenings.push(Happening::Lost { from, to: first });
        }
    }
}
