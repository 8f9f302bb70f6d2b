//! From where to where recovery can go: what ends transactions, restore points, and where recovery would
//! stop for a target. It stops at the first record that matches the target after the place where it began
//! (`recoveryStopsBefore` and `recoveryStopsAfter` in `src/backend/access/transam/xlogrecovery.c`), and
//! fails if the backup is not consistent there. Which backups there are is known in the end only, so it is
//! noted which matches lie between the places where backups are consistent: the first and the last of those
//! are enough.

use super::two_phase::{Standing, TwoPhase};
use serde::{Deserialize, Serialize};
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;
use walstat_format::payload::prepare::Prepare;
use walstat_format::payload::timeline::Switch;
use walstat_format::payload::xact::{self, End};
use walstat_format::payload::xlog::{self, RestorePoint};
use walstat_format::record::Record;
use walstat_format::rmgr::{TRANSACTION, XLOG};
use walstat_read::scan::observe::Observe;

/// A recovery target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// What recovery is to stop at.
    pub goal: Goal,
    /// `recovery_target_inclusive`.
    pub is_inclusive: bool,
}

/// What recovery is to stop at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Goal {
    /// `recovery_target_time`: stops before the first transaction that ends later; not inclusive, then or
    /// later.
    Time(Time),
    /// `recovery_target_lsn`: stops after the first record that begins here or later; not inclusive, before
    /// it.
    Lsn(Lsn),
    /// `recovery_target_xid`: stops after the record that ends the transaction; not inclusive, before it.
    Xid(u32),
    /// `recovery_target_name`: stops after the restore point, inclusive or not.
    Name(String),
}

/// A record that matches the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Match {
    /// Its start.
    pub lsn: Lsn,
    /// Where the record after it begins at the earliest.
    pub end: Lsn,
    /// Whether it closes its segment.
    pub switch: bool,
    /// The transaction that it ends.
    pub ends: Option<u32>,
    /// How replay stands when recovery stops at it.
    pub standing: Standing,
}

impl Target {
    /// Whether recovery stops before the record, and not after it.
    fn is_before(&self) -> bool {
        match self.goal {
            Goal::Time(_) => true,
            Goal::Lsn(_) | Goal::Xid(_) => !self.is_inclusive,
            Goal::Name(_) => false,
        }
    }

    /// What lies before this has been replayed when recovery stops at a record.
    pub fn stops_at(&self, place: &Match) -> Lsn {
        if self.is_before() { place.lsn } else { place.end }
    }

    /// When recovery stops at a record, those are replayed that begin before this.
    fn replayed_before(&self, place: &Match) -> Lsn {
        if self.is_before() { place.lsn } else { Lsn(place.lsn.0.saturating_add(1)) }
    }

    fn matches(&self, record: &Record<'_>, end: Option<&Ended>) -> bool {
        match &self.goal {
            Goal::Time(time) if self.is_inclusive => end.is_some_and(|end| end.time > *time),
            Goal::Time(time) => end.is_some_and(|end| end.time >= *time),
            Goal::Lsn(lsn) => record.lsn >= *lsn,
            Goal::Xid(xid) => end.is_some_and(|end| end.xid == *xid),
            Goal::Name(name) => restore_point(record).is_some_and(|p| p.name == name.as_bytes()),
        }
    }
}

/// A record that ends a transaction.
struct Ended {
    xid: u32,
    time: Time,
    commits: bool,
}

/// What the WAL says of the transaction that is the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct XidStory {
    /// It has written something.
    pub has_written: bool,
    /// It was prepared.
    pub is_prepared: bool,
    /// It ended as a subtransaction of this one.
    pub ended_with: Option<u32>,
}

/// A stretch of matches, or a place where a backup becomes consistent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Item {
    Matches { first: Match, last: Match },
    Consistent,
}

/// A restore point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedRestorePoint {
    /// Start of its record.
    pub lsn: Lsn,
    /// Its name.
    pub name: String,
    /// When it was made.
    pub time: Time,
}

/// What ended on a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TimelineEnds {
    /// The timeline, if the record with which it begins was read.
    pub timeline: Option<u32>,
    /// The earliest time at which a transaction ended.
    pub first_time: Option<Time>,
    /// The latest one.
    pub last_time: Option<Time>,
    /// Start of the last record that committed a transaction.
    pub last_commit: Option<Lsn>,
    /// The last transaction that ended.
    pub last_xid: Option<u32>,
}

impl TimelineEnds {
    fn add(&mut self, lsn: Lsn, ended: &Ended) {
        self.span(Some(ended.time), Some(ended.time));
        if ended.commits {
            self.last_commit = Some(lsn);
        }
        self.last_xid = Some(ended.xid);
    }

    fn span(&mut self, first: Option<Time>, last: Option<Time>) {
        self.first_time = self.first_time.into_iter().chain(first).min();
        self.last_time = self.last_time.max(last);
    }

    fn join(&mut self, later: TimelineEnds) {
        self.span(later.first_time, later.last_time);
        self.last_commit = later.last_commit.or(self.last_commit);
        self.last_xid = later.last_xid.or(self.last_xid);
    }
}

/// What there is to say of recovery.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RecoveryWindow {
    target: Option<Target>,
    /// Where backups are consistent that are known before the WAL is read, ascending.
    consistent: Vec<Lsn>,
    items: Vec<Item>,
    timelines: Vec<TimelineEnds>,
    restore_points: Vec<PlacedRestorePoint>,
    story: XidStory,
    two_phase: TwoPhase,
}

impl RecoveryWindow {
    /// Nothing yet. `consistent`: where backups begin and are consistent, as far as that is known.
    pub fn new(target: Option<Target>, mut consistent: Vec<Lsn>) -> RecoveryWindow {
        consistent.sort_unstable();
        RecoveryWindow { target, consistent, ..RecoveryWindow::default() }
    }

    /// What ended on each timeline, in WAL order.
    pub fn timelines(&self) -> &[TimelineEnds] {
        &self.timelines
    }

    /// All restore points, in WAL order.
    pub fn restore_points(&self) -> &[PlacedRestorePoint] {
        &self.restore_points
    }

    /// What the WAL says of the transaction that is the target.
    pub fn story(&self) -> XidStory {
        self.story
    }

    /// The record at which recovery from a backup stops that begins at `start` and is consistent from
    /// `consistent` on; `Err`: the record that it meets before it is consistent. `None`: none at all.
    pub fn stop(&self, start: Lsn, consistent: Lsn) -> Option<Result<Match, Match>> {
        let target = self.target.as_ref()?;
        self.items.iter().find_map(|item| {
            let Item::Matches { first, last } = item else { return None };
            if target.stops_at(first) >= consistent && first.lsn >= start {
                return Some(Ok(*first));
            }
            let met = [first, last].into_iter().find(|place| place.lsn >= start);
            met.map(|place| Err(*place))
        })
    }

    /// The first record that matches.
    pub fn first_match(&self) -> Option<Match> {
        self.items.iter().find_map(|item| match item {
            Item::Matches { first, .. } => Some(*first),
            Item::Consistent => None,
        })
    }

    /// The last record that matches.
    pub fn last_match(&self) -> Option<Match> {
        self.items.iter().rev().find_map(|item| match item {
            Item::Matches { last, .. } => Some(*last),
            Item::Consistent => None,
        })
    }

    fn push(&mut self, item: Item) {
        let joined = match (self.items.last(), &item, &self.target) {
            (
                Some(Item::Matches { first, last }),
                Item::Matches { first: next, last: end },
                Some(target),
            ) => {
                let (from, to) = (target.stops_at(last), target.stops_at(next));
                let is_between = |place: &Lsn| *place > from && *place <= to;
                let is_apart = self.consistent.iter().any(is_between);
                (!is_apart).then_some(Item::Matches { first: *first, last: *end })
            }
            (Some(Item::Consistent), Item::Consistent, _) => Some(Item::Consistent),
            _ => None,
        };
        if joined.is_some() {
            self.items.pop();
        }
        self.items.push(joined.unwrap_or(item));
    }

    fn take(&mut self, record: &Record<'_>, ended: Option<&Ended>) {
        if record.header.rmgr == XLOG {
            self.take_of_xlog(record);
        }
        if self.timelines.is_empty() {
            self.timelines.push(TimelineEnds::default());
        }
        if let (Some(ended), Some(now)) = (ended, self.timelines.last_mut()) {
            now.add(record.lsn, ended);
        }
        let before = self.two_phase.standing();
        self.two_phase.take(record);
        if let Some(target) = self.target.as_ref().filter(|it| it.matches(record, ended)) {
            let place = Match {
                lsn: record.lsn,
                end: record.end.aligned(),
                switch: record.header.is_switch(),
                ends: ended.map(|ended| ended.xid),
                standing: if target.is_before() { before } else { self.two_phase.standing() },
            };
            self.push(Item::Matches { first: place, last: place });
        }
    }

    fn take_of_xlog(&mut self, record: &Record<'_>) {
        match record.header.rmgr_info() {
            // The record itself makes the backup consistent.
            xlog::BACKUP_END => self.push(Item::Consistent),
            xlog::RESTORE_POINT => {
                let lsn = record.lsn;
                self.restore_points.extend(restore_point(record).map(|point| PlacedRestorePoint {
                    lsn,
                    name: String::from_utf8_lossy(point.name).into_owned(),
                    time: point.time,
                }));
            }
            xlog::CHECKPOINT_SHUTDOWN | xlog::END_OF_RECOVERY => {
                let switch = record.main_data_start().first_chunk().copied().map(Switch::parse);
                if let Some(switch) = switch.filter(|switch| switch.from != switch.to) {
                    let timeline = Some(switch.to);
                    self.timelines.push(TimelineEnds { timeline, ..TimelineEnds::default() });
                }
            }
            _ => {}
        }
    }

    /// Takes note of what a record says of the transaction that is the target.
    fn hear(&mut self, record: &Record<'_>, target: u32) {
        self.story.has_written |= record.header.xid == target;
        if record.header.rmgr != TRANSACTION {
            return;
        }
        let info = record.header.info;
        let Some(main_data) = record.main_data() else { return };
        if info & xact::OPCODE_MASK == xact::PREPARE {
            let prepare = Prepare::parse(&main_data, record.version);
            self.story.is_prepared |= prepare.is_some_and(|prepare| prepare.xid == target);
        } else if let Some(end) = End::parse(info, &main_data, record.version)
            && end.subxids.iter().any(|sub| sub == target)
        {
            self.story.ended_with = Some(end.prepared_xid.unwrap_or(record.header.xid));
        }
    }
}

/// The restore point that a record is.
fn restore_point<'r>(record: &Record<'r>) -> Option<RestorePoint<'r>> {
    let is_one = record.header.rmgr == XLOG && record.header.rmgr_info() == xlog::RESTORE_POINT;
    is_one.then(|| RestorePoint::parse(record.main_data_start())).flatten()
}

/// Which transaction a record ends, and when: of one that was prepared the record's header names
/// another.
fn ended(record: &Record<'_>) -> Option<Ended> {
    let info = record.header.info;
    if record.header.rmgr != TRANSACTION {
        return None;
    }
    let time = xact::end_time(info, record.main_data_start())?;
    let opcode = info & xact::OPCODE_MASK;
    let is_prepared = [xact::COMMIT_PREPARED, xact::ABORT_PREPARED].contains(&opcode);
    let xid = if is_prepared {
        End::parse(info, &record.main_data()?, record.version)?.prepared_xid?
    } else {
        record.header.xid
    };
    Some(Ended { xid, time, commits: xact::commits(info) })
}

impl Observe for RecoveryWindow {
    // Lists of subtransactions may be long, and what was prepared is named behind them.
    const WHOLE: bool = true;

    #[inline]
    fn observe(&mut self, record: &Record<'_>) {
        let goal = self.target.as_ref().map(|target| &target.goal);
        let is_lsn = matches!(goal, Some(Goal::Lsn(_)));
        if let Some(Goal::Xid(xid)) = goal {
            self.hear(record, *xid);
        }
        if is_lsn || [TRANSACTION, XLOG].contains(&record.header.rmgr) {
            let ended = ended(record);
            self.take(record, ended.as_ref());
        }
    }

    fn merge(&mut self, mut later: RecoveryWindow) {
        if let Some(target) = &self.target {
            let mut inherited = self.two_phase.inherited(&later.two_phase);
            for item in &mut later.items {
                let Item::Matches { first, last } = item else { continue };
                for place in [first, last] {
                    let replayed = target.replayed_before(place);
                    place.standing = inherited.known(replayed, place.standing);
                }
            }
        }
        later.items.into_iter().for_each(|item| self.push(item));
        self.two_phase.merge(later.two_phase);
        let mut timelines = later.timelines.into_iter();
        match (self.timelines.last_mut(), timelines.next()) {
            (Some(now), Some(first)) if first.timeline.is_none() => now.join(first),
            (_, first) => self.timelines.extend(first),
        }
        self.timelines.extend(timelines);
        self.restore_points.extend(later.restore_points);
        self.story.has_written |= later.story.has_written;
        self.story.is_prepared |= later.story.is_prepared;
        self.story.ended_with = later.story.ended_with.or(self.story.ended_with);
    }
}
