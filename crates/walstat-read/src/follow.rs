//! WAL as it is written: each look reads what is new, counts the records that are whole, and remembers where
//! it stopped. Nothing is read twice but the page in which the next record starts, which may have been
//! written in part.
//!
//! Records are read by the same [`Reader`] as everywhere, which ends where no valid record follows: there the
//! server is writing. Of a record that goes on after the last whole page the state is kept, as between two
//! runs. A page that a server was writing while it was read is not believed until a record in it has its
//! checksum.

mod held;
mod shelf;

use crate::input::discover::Found;
use crate::input::error::InputError;
use crate::input::input_kind::InputKind;
use crate::input::placing::{Key, place};
use crate::input::plan::{Plan, plan};
use crate::input::timeline::Lineage;
use crate::scan::observe::Observe;
use crate::scan::observer::Observer;
use crate::scan::pending::Pending;
use crate::scan::reader::{Flow, Reader};
use crate::scan::run::{Last, Run};
use crate::scan::scope::Scope;
use crate::scan::streamed::Wanted;
use held::Held;
use shelf::Shelf;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use walstat_format::lsn::Lsn;
use walstat_format::page::{Geometry, LONG_HEADER_BYTES, PageHeader, SHORT_HEADER_BYTES};

/// So much is read at a time.
const WINDOW_BYTES: usize = 512 << 10;
/// Segments that are held open before their turn: they can be read though a checkpoint recycles them.
const AHEAD_BYTES: u64 = 128 << 20;
/// A server removes and renames segments in no order: so long a missing one may still come.
const SETTLING: Duration = Duration::from_millis(300);
/// Archivers may store segments in another order.
const ARCHIVE_SETTLING: Duration = Duration::from_secs(10);
/// What no server is writing any more by then is damage.
const DAMAGE_AFTER: Duration = Duration::from_secs(5);

/// Where following begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum From {
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
    kind: InputKind,
    scope: Scope,
    /// The timeline that was asked for: no other one is followed.
    timeline: Option<u32>,
    lineage: Lineage,
    start: Option<Lsn>,
    position: Lsn,
    /// The last counted record, if nothing is missing after it.
    last: Option<Last>,
    newest: Lsn,
    lost_bytes: u64,
    /// Where records are missing from, until the first one after it is known.
    lost_from: Option<Lsn>,
    held: BTreeMap<Key, Held>,
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
        from: From,
        wanted: &Wanted,
    ) -> Result<(Follower, Plan), InputError> {
        let timeline = wanted.timeline;
        let plan = plan(found, place(found)?, timeline)?;
        let root = folder_of(found);
        let mut shelf = Shelf::new(&root, plan.geometry.segment_bytes);
        let (start, newest) = bounds(&plan);
        let position = match from {
            From::Oldest => start,
            From::Now => newest,
            From::Lsn(lsn) if lsn < start => {
                let last = plan.bounds().end;
                return Err(InputError::Range { path: root, first: start, last });
            }
            From::Lsn(lsn) | From::Before(lsn, _) => lsn,
        };
        let bytes = u64::from(plan.geometry.segment_bytes);
        shelf.list(position.0 / bytes).map_err(|error| InputError::io(&root, error))?;
        let kind = plan.taken_for();
        let lineage = match from {
            // A newer one may have begun meanwhile: it is told of.
            From::Before(_, timeline) => Lineage::of(timeline, &shelf.histories),
            _ => plan.lineage.clone(),
        };
        let follower = Follower {
            shelf,
            kind,
            scope: wanted.clone().scope(plan.geometry),
            timeline,
            lineage,
            start: None,
            position,
            last: None,
            newest: position,
            lost_bytes: 0,
            lost_from: None,
            held: BTreeMap::new(),
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

    /// Goes on with what was counted before.
    pub fn go_on(&mut self, start: Lsn, lost_bytes: u64) {
        (self.start, self.lost_bytes) = (Some(start), lost_bytes);
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

    /// Reads what is new, until there is nothing more or the time is up.
    ///
    /// # Errors
    ///
    /// When the folder or a file in it cannot be read, or another cluster's WAL lies there.
    pub fn look(&mut self, until: Instant) -> Result<Look, InputError> {
        let mut look = Look::default();
        let number = self.position.0 / self.segment_bytes();
        let root = self.shelf_root();
        let listed = match self.shelf.refresh(number) {
            // Where a server is built anew its folder is away for a while.
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            listed => listed.map_err(|error| InputError::io(&root, error))?,
        };
        if listed {
            self.held.retain(|key, _| self.shelf.segments.contains_key(key) || key.1 == number);
            self.take_newer_timeline(&mut look);
            self.hold_ahead(number)?;
        }
        loop {
            let stretch = self.read_stretch(until, false)?;
            let is_at_end = stretch.is_at_end;
            let moved = self.take(stretch, &mut look);
            if !is_at_end {
                break;
            }
            if !moved && !self.pass_hole(&mut look)? && !self.pass_damage(until, &mut look)? {
                look.is_at_end = true;
                break;
            }
            if Instant::now() >= until {
                break;
            }
        }
        self.observer.settle();
        Ok(look)
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

    /// Opens the segments that may come next, before a checkpoint recycles them.
    fn hold_ahead(&mut self, number: u64) -> Result<(), InputError> {
        if self.kind != InputKind::PgWal {
            return Ok(());
        }
        let count = (AHEAD_BYTES / self.segment_bytes()).max(2);
        for number in number..number + count {
            let key = (self.lineage.of_file(number, self.scope.geometry.segment_bytes), number);
            if !self.is_there(key)? {
                break;
            }
        }
        Ok(())
    }

    /// Whether a segment is there; it is opened if it is.
    fn is_there(&mut self, key: Key) -> Result<bool, InputError> {
        if self.held.contains_key(&key) {
            return Ok(true);
        }
        let Some(copy) = self.shelf.segments.get(&key) else { return Ok(false) };
        let may_grow = self.kind == InputKind::PgWal;
        let held = Held::open(copy, self.scope.geometry.segment_bytes, may_grow);
        let held = held.map_err(|error| InputError::io(&copy.path, error))?;
        Ok(held.map(|held| self.held.insert(key, held)).is_some())
    }

    /// Reads from the next page on, as far as there is WAL; `leaps`: over what is no WAL to the next record.
    fn read_stretch(&mut self, until: Instant, leaps: bool) -> Result<Stretch, InputError> {
        let scope = Scope { start: self.position, ..self.scope.clone() };
        let from = self.next_page();
        let observer = std::mem::take(&mut self.observer);
        let pending = self.open.take().map(|open| open.pending);
        let end = Lsn(u64::MAX - 1);
        let reader = Reader::new(&scope, from, end, observer);
        let mut reader = if leaps { reader } else { reader.following(pending, self.last) };
        let mut walk = Walk { at: from, is_followed: false, is_at_end: true, newest: from };
        let walked = self.walk(&mut reader, &mut walk, until, leaps);
        let run = reader.finish();
        if let Err(error) = walked {
            self.observer = run.observer;
            return Err(error);
        }
        let Walk { at, is_followed, is_at_end, newest } = walk;
        Ok(Stretch { run, at, is_followed, is_at_end, newest })
    }

    fn walk(
        &mut self,
        reader: &mut Reader<'_>,
        walk: &mut Walk,
        until: Instant,
        leaps: bool,
    ) -> Result<(), InputError> {
        let page_bytes = self.scope.geometry.page_bytes as usize;
        let mut begun = None;
        loop {
            let key = self.key_at(walk.at);
            if !self.is_there(key)? {
                return Ok(());
            }
            if begun.replace(key) != Some(key) {
                reader.begin_segment(key.0);
                self.held.retain(|held, _| *held >= (0, 0) && held.1 >= key.1);
            }
            let (bytes, is_followed) = self.fill(key, walk.at, leaps)?;
            walk.is_followed = is_followed;
            let window = self.buffer.get(..bytes).unwrap_or_default();
            let Some(last) = bytes.checked_sub(page_bytes) else { return Ok(()) };
            walk.newest = newest_byte(walk.at, window);
            let (whole, rest) = window.split_at(if is_followed { bytes } else { last });
            let mut flow = reader.push(walk.at, whole);
            walk.at = Lsn(walk.at.0 + whole.len() as u64);
            // The last page may be written in part: what goes on after it is read with what follows.
            let fits = |left: u32| left as usize + LONG_HEADER_BYTES <= page_bytes;
            if flow == Flow::Next && !rest.is_empty() && reader.pending_bytes().is_none_or(fits) {
                flow = reader.push(walk.at, rest);
                walk.at = Lsn(walk.at.0 + rest.len() as u64);
            }
            match flow {
                Flow::Done => return Ok(()),
                Flow::SkipSegment => {
                    let segment = self.segment_bytes();
                    walk.at = Lsn((key.1 + 1) * segment);
                    walk.is_followed = true;
                }
                Flow::Next if !is_followed => return Ok(()),
                Flow::Next => {}
            }
            if Instant::now() >= until {
                walk.is_at_end = false;
                return Ok(());
            }
        }
    }

    /// Fills the buffer with the pages that belong there, from `at` on: how many bytes, and whether others
    /// follow. `anything`: with whatever pages there are.
    fn fill(&mut self, key: Key, at: Lsn, anything: bool) -> Result<(usize, bool), InputError> {
        let page = self.scope.geometry.page_bytes as usize;
        let segment = self.segment_bytes();
        let offset = at.0 % segment;
        let room = usize::try_from(segment - offset).unwrap_or(WINDOW_BYTES).min(WINDOW_BYTES);
        let (mut filled, mut chunk) = (0, page);
        while filled < room {
            let next = Lsn(at.0 + filled as u64);
            if filled > 0 && !anything && !self.begins_page(key, next)? {
                return Ok((filled, false));
            }
            let wanted = chunk.min(room - filled);
            let read = self.read_at(key, offset + filled as u64, filled..filled + wanted)?;
            let pages = (0..read / page).take_while(|page_number| {
                let from = filled + page_number * page;
                let bytes = self.buffer.get(from..from + page).unwrap_or_default();
                anything || self.is_page(key, Lsn(at.0 + from as u64), bytes)
            });
            let sound = pages.count() * page;
            filled += sound;
            if sound < wanted {
                return Ok((filled, false));
            }
            chunk *= 2;
        }
        if offset + (filled as u64) < segment {
            return Ok((filled, true));
        }
        let next = Lsn(at.0 + filled as u64);
        let key = self.key_at(next);
        Ok((filled, self.is_there(key)? && self.begins_page(key, next)?))
    }

    fn read_at(
        &mut self,
        key: Key,
        offset: u64,
        place: std::ops::Range<usize>,
    ) -> Result<usize, InputError> {
        let Some(held) = self.held.get_mut(&key) else { return Ok(0) };
        let window = self.buffer.get_mut(place).unwrap_or_default();
        let path = || self.shelf.segments.get(&key).map(|copy| copy.path.clone());
        held.read_at(offset, window)
            .map_err(|error| InputError::io(&path().unwrap_or_default(), error))
    }

    /// Whether a page that belongs there begins at `at`.
    fn begins_page(&mut self, key: Key, at: Lsn) -> Result<bool, InputError> {
        let offset = at.0 % self.segment_bytes();
        let mut head = [0; LONG_HEADER_BYTES];
        let Some(held) = self.held.get_mut(&key) else { return Ok(false) };
        let read = held.read_at(offset, &mut head);
        let read = read.map_err(|error| InputError::io(self.shelf.root(), error))?;
        Ok(read == head.len() && self.is_page(key, at, &head))
    }

    fn is_page(&self, key: Key, at: Lsn, bytes: &[u8]) -> bool {
        let header = PageHeader::parse(bytes);
        header
            .is_some_and(|header| self.scope.geometry.check(&header, bytes, at, (0, key.0)).is_ok())
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
            self.stuck.found = gap.problem(None, &self.scope.geometry).found;
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

    /// Goes on after segments that are gone; whether there were any.
    fn pass_hole(&mut self, look: &mut Look) -> Result<bool, InputError> {
        let key = self.key_at(self.next_page());
        if self.is_there(key)? && !self.is_overwritten(key)? {
            self.hole_since = None;
            return Ok(false);
        }
        let Some(later) = self.later_segment(key.1)? else {
            self.hole_since = None;
            return Ok(false);
        };
        let settling = if self.kind == InputKind::PgWal { SETTLING } else { ARCHIVE_SETTLING };
        let since = *self.hole_since.get_or_insert_with(Instant::now);
        if since.elapsed() < settling {
            // It may be there under its name by now.
            let root = self.shelf_root();
            self.shelf.list(key.1).map_err(|error| InputError::io(&root, error))?;
            return Ok(false);
        }
        let next = Lsn(later * self.segment_bytes());
        self.lose(next);
        look.is_at_end = false;
        Ok(true)
    }

    /// Counts what lies before `next` as lost.
    fn lose(&mut self, next: Lsn) {
        self.hole_since = None;
        (self.open, self.last) = (None, None);
        self.lost_from.get_or_insert(self.position);
        self.lost_bytes += next.0.saturating_sub(self.position.0);
        self.observer.lost(self.position..next);
        self.position = next;
    }

    /// Whether a segment that is held open was recycled, and holds a later one by now.
    fn is_overwritten(&mut self, key: Key) -> Result<bool, InputError> {
        let at = self.next_page();
        let mut head = [0; SHORT_HEADER_BYTES];
        let Some(held) = self.held.get_mut(&key) else { return Ok(false) };
        let read = held.read_at(at.0 % u64::from(self.scope.geometry.segment_bytes), &mut head);
        let read = read.map_err(|error| InputError::io(self.shelf.root(), error))?;
        let header = PageHeader::parse(&head).filter(|_| read == head.len());
        let is_later = header.is_some_and(|header| {
            header.magic == self.scope.geometry.version.magic && header.address > at
        });
        if is_later {
            self.held.remove(&key);
        }
        Ok(is_later && !self.is_there(key)?)
    }

    /// The number of the first segment after `number` that is there and has WAL.
    fn later_segment(&mut self, number: u64) -> Result<Option<u64>, InputError> {
        let keys: Vec<Key> = self.shelf.segments.keys().copied().collect();
        let mut numbers: Vec<u64> = keys.iter().map(|key| key.1).filter(|n| *n > number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        for number in numbers {
            let first = Lsn(number * self.segment_bytes());
            let key = self.key_at(first);
            if self.is_there(key)? && self.begins_page(key, first)? {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Goes on after what no server is writing any more; whether there was a record after it.
    fn pass_damage(&mut self, until: Instant, look: &mut Look) -> Result<bool, InputError> {
        let is_old = self.stuck.since.is_some_and(|since| since.elapsed() > DAMAGE_AFTER);
        if !is_old {
            return Ok(false);
        }
        let number = self.next_page().0 / self.segment_bytes();
        if !self.stuck.is_followed && self.later_segment(number)?.is_none() {
            return Ok(false);
        }
        let from = self.position;
        let stretch = self.read_stretch(until, true)?;
        let first = stretch.run.first_in_range;
        if !self.take(stretch, look) {
            // Nothing in this segment: the next one may have a record.
            let Some(later) = self.later_segment(number)? else { return Ok(false) };
            self.lose(Lsn(later * self.segment_bytes()));
            return Ok(true);
        }
        let Some(to) = first else { return Ok(false) };
        self.lost_bytes += to.0.saturating_sub(from.0);
        let found = std::mem::take(&mut self.stuck.found);
        look.happenings.push(Happening::Damaged { from, to, found });
        Ok(true)
    }

    /// Follows a newer timeline from where it leaves the one that is followed.
    fn take_newer_timeline(&mut self, look: &mut Look) {
        let ours = self.lineage.timeline();
        if self.timeline.is_some() {
            return;
        }
        let Some((newer, _)) = self.shelf.newest_history().filter(|(newer, _)| *newer > ours)
        else {
            return;
        };
        let lineage = Lineage::of(newer, &self.shelf.histories);
        let Some(at) = lineage.spans().find(|span| span.0 == ours).map(|span| span.1.end) else {
            return;
        };
        let counted_to = (at < self.position).then_some(self.position);
        if counted_to.is_some() {
            (self.position, self.open, self.last) = (at, None, None);
            // What lies before the position was not listed.
            _ = self.shelf.list(at.0 / self.segment_bytes());
        }
        self.lineage = lineage;
        let still =
            |key: &Key| self.lineage.of_file(key.1, self.scope.geometry.segment_bytes) == key.0;
        self.held.retain(|key, _| still(key));
        look.happenings.push(Happening::Timeline { timeline: newer, at, counted_to });
    }
}

/// Where a walk over pages has got to.
struct Walk {
    at: Lsn,
    is_followed: bool,
    is_at_end: bool,
    newest: Lsn,
}

/// After the last byte of a window that is not zero.
fn newest_byte(at: Lsn, window: &[u8]) -> Lsn {
    let zeros = window.iter().rev().take_while(|byte| **byte == 0).count();
    Lsn(at.0 + (window.len() - zeros) as u64)
}

/// The folder with the segments.
fn folder_of(found: &Found) -> PathBuf {
    let path = found.paths.first().cloned().unwrap_or_default();
    let inside = ["pg_wal", "pg_xlog"].map(|name| path.join(name));
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
