//! What is read: the segments of one cluster and one history, each once, in order; and the other files
//! with a segment's name, which are only verified.

mod aside;
mod backups;
mod chain;
mod latest;
mod left_behind;
mod older_timelines;
mod resembling;
mod unfilled;

use super::control;
use super::discover::{Found, ToRestore, data_directory_of};
use super::error::InputError;
use super::history::{self, Histories, Misplaced};
use super::input_kind::InputKind;
use super::label::ToldLabel;
use super::moved::SegmentDirectories;
use super::names::backup_start;
use super::placing::{Key, Placed};
use super::problem::{Problem, ProblemKind};
use super::segment::Segment;
use super::source::Source;
use super::timeline::{Branch, Lineage, branches, newest_complete, without_history};
use aside::Aside;
pub use chain::Chain;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
pub use unfilled::{Unfilled, WhyUnfilled};
use walstat_format::lsn::Lsn;
use walstat_format::ordered::CollectOrdered;
use walstat_format::page::Geometry;
use walstat_format::segment::SegmentName;
use walstat_format::version::Version;

/// What is to be read.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Release, cluster and sizes.
    pub geometry: Geometry,
    /// All files of each segment, the one to be read first.
    pub files: BTreeMap<Key, Vec<Segment>>,
    /// The segments of one history, ascending by number, each number once.
    pub segments: Vec<Segment>,
    /// The timeline that is followed.
    pub timeline: u32,
    /// Whether it was asked for: a restore is to that one, and else to the latest.
    pub is_timeline_asked: bool,
    /// Whether the server that it lies with is on it, as `pg_control` says: newer ones are not its own.
    pub is_timeline_servers: bool,
    /// Its history.
    pub lineage: Lineage,
    /// Timelines that the segments are of.
    pub timelines: Vec<u32>,
    /// Histories of the other timelines that there are segments of.
    pub other_lineages: Vec<Lineage>,
    /// The timeline that was asked for, or else the newest, by its history, where there is no segment of it:
    /// a server that recovers to it follows it.
    pub latest: Option<Lineage>,
    /// The missing segments in which the range ends.
    pub end_in_hole: Option<Range<Lsn>>,
    /// Where timelines leave others, as their histories say.
    pub branches: Vec<Branch>,
    /// Places in histories that differ from those where timelines begin by the records, and lead to the same
    /// files.
    pub misplaced: Vec<Misplaced>,
    /// Histories as their files have them, by timeline, where `lineage` is what records or other histories
    /// tell instead.
    pub wrong_lineages: BTreeMap<u32, Lineage>,
    /// Where a newer timeline branches off the one that is followed, if that is known.
    pub branch_point: Option<Lsn>,
    /// Files that are no segments of this history, by name.
    pub other_files: Vec<String>,
    /// Bytes of second copies of segments.
    pub duplicate_bytes: u64,
    /// What is wrong with the files themselves.
    pub problems: Vec<Problem>,
    /// Problems of files older than all others. They count only where a backup is to be restored that needs
    /// those files.
    pub laid_away: Vec<Problem>,
    /// Notes about files that are not read.
    pub notes: Vec<String>,
    /// Where the WAL begins, if a file begins in the middle of its segment.
    pub begin: Option<Lsn>,
    /// Where a segment may lie that is gone when it is to be read.
    pub directories: SegmentDirectories,
    /// The data directory among the paths.
    pub data_directory: Option<PathBuf>,
    /// The one whose own WAL is read, if it is one alone.
    pub data_directory_read: Option<PathBuf>,
    /// The server's own directory of WAL, if nothing else is read.
    pub wal_alone: Option<PathBuf>,
    /// What the histories of base backups in streams tell; or why they cannot be read.
    pub backups: Vec<Result<ToldLabel, String>>,
    /// Histories of base backups whose WAL is older than all there is.
    pub removed_backups: Vec<String>,
    /// Whether there is the history of a base backup of which the first segment is not older.
    pub has_begun_backup: bool,
    /// What is known of the backup that is to be restored, if one is.
    pub to_restore: ToRestore,
    /// Whether it is WAL of a server alone, in which no backup is to be restored: it recovers from a crash.
    pub is_for_crash: bool,
    /// Whether it ends in WAL that a standby receives, as its `pg_control` says.
    pub is_standbys: bool,
    /// Segments that may be missing: from the first byte of one to that of a later one.
    pub accepted_gaps: Vec<Range<Lsn>>,
    /// Segments of the timeline that is followed that a server has recycled while it kept an older one, or
    /// has never archived.
    pub unfilled: Vec<Unfilled>,
}

/// Makes the plan of files whose segments are known; `timeline`: the one asked for.
pub fn plan(found: &Found, mut placed: Placed, timeline: Option<u32>) -> Result<Plan, InputError> {
    let aside = Aside::leave_out(&mut placed, found);
    let (present, impostors) = older_timelines::present(&placed.files, found);
    placed.problems.extend(found.histories.problems());
    let histories = &latest::without_unfetched(&mut placed, &present, &found.histories);
    let servers = found.timeline_of_server(placed.geometry.system_identifier);
    let servers = servers.filter(|it| timeline.is_none() && present.contains(it));
    let wanted = timeline.or(servers);
    let to_restore = found.to_restore;
    let present = latest::without_partials(&mut placed, present, histories, wanted, to_restore);
    let latest = latest::without_segments(&present, histories, wanted);
    let followed = match wanted {
        Some(wanted) => latest::read_for(wanted, &present, latest.as_ref())
            .ok_or_else(|| without_timeline(found, wanted, &present))?,
        None => {
            newest_complete(&present, histories, to_restore.timeline, latest.as_ref()).unwrap_or(1)
        }
    };
    let others = present.iter().rev().filter(|other| **other != followed);
    let mut plan = Plan {
        timeline: followed,
        is_timeline_asked: timeline.is_some(),
        is_timeline_servers: servers.is_some(),
        lineage: latest::lineage_of(followed, latest.as_ref(), histories),
        other_lineages: others.map(|other| Lineage::of(*other, histories)).collect(),
        latest,
        branches: branches(&present, histories),
        misplaced: histories.misplaced().copied().collect(),
        branch_point: left_at(followed, histories),
        files: placed.files,
        other_files: each_backup_once(placed.others),
        problems: placed.problems,
        laid_away: placed.laid_away,
        notes: placed.notes,
        begin: placed.begin,
        directories: SegmentDirectories::of(&found.directories),
        data_directory: found.data_directory.clone(),
        data_directory_read: found.data_directory_read(),
        wal_alone: found.wal_alone(),
        backups: found.backups.clone(),
        to_restore,
        ..Plan::new(placed.geometry)
    };
    plan.wrong_lineages = plan.wrong_lineages(histories);
    plan.is_for_crash = plan.are_servers() && !to_restore.is_asked && !plan.is_told_to_recover();
    plan.tell_of_histories(&present, histories);
    plan.problems.extend(impostors);
    plan.check_backups();
    plan.problems.extend(plan.left_by_latest());
    aside.tell(&mut plan);
    plan.tell_left_behind();
    plan.check_first_pages();
    plan.choose();
    plan.is_standbys = plan.ends_in_standbys();
    plan.name_others();
    plan.notes.extend(plan.resembling());
    Ok(plan)
}

fn without_timeline(found: &Found, wanted: u32, present: &BTreeSet<u32>) -> InputError {
    let path = found.paths.first().cloned().unwrap_or_default();
    InputError::Timeline { path, wanted, present: present.iter().copied().collect() }
}

/// Where newer timelines leave one, the last of these places.
fn left_at(timeline: u32, histories: &Histories) -> Option<Lsn> {
    let newer = histories.all().filter(|(child, _)| *child > timeline);
    let newer = newer.map(|(child, ancestors)| Lineage::from_ancestors(child, ancestors));
    newer.filter_map(|newer| newer.leaves(timeline)).max()
}

fn misplaced_note(misplaced: &Misplaced) -> String {
    let Misplaced { history, timeline, told, begins } = *misplaced;
    format!(
        "{}: timeline {timeline} begins at {begins}, not at {told}: a server restores the same, but for a \
         backup with its checkpoint, or a transaction that stays prepared, between the two",
        history::name_of(history)
    )
}

fn missing_history(timeline: u32) -> Problem {
    let name = history::name_of(timeline);
    let expected = format!("the history of timeline {timeline}, beside segments of an older one");
    Problem::of_file(ProblemKind::MissingHistory, &name, expected, "no such file".to_owned())
}

impl Plan {
    /// A plan of nothing yet.
    pub fn new(geometry: Geometry) -> Plan {
        Plan {
            geometry,
            files: BTreeMap::new(),
            segments: Vec::new(),
            timeline: 0,
            is_timeline_asked: false,
            is_timeline_servers: false,
            lineage: Lineage::default(),
            timelines: Vec::new(),
            other_lineages: Vec::new(),
            latest: None,
            end_in_hole: None,
            branches: Vec::new(),
            misplaced: Vec::new(),
            wrong_lineages: BTreeMap::new(),
            branch_point: None,
            other_files: Vec::new(),
            duplicate_bytes: 0,
            problems: Vec::new(),
            laid_away: Vec::new(),
            notes: Vec::new(),
            begin: None,
            directories: SegmentDirectories::default(),
            data_directory: None,
            data_directory_read: None,
            wal_alone: None,
            backups: Vec::new(),
            removed_backups: Vec::new(),
            has_begun_backup: false,
            to_restore: ToRestore::default(),
            is_for_crash: false,
            is_standbys: false,
            accepted_gaps: Vec::new(),
            unfilled: Vec::new(),
        }
    }

    /// Whether the last segment is a server's that receives it, and writes over what was there before.
    fn ends_in_standbys(&self) -> bool {
        let control = self.data_directory_read.as_deref().map(control::read);
        self.taken_for() == InputKind::PgWal
            && control.and_then(Result::ok).is_some_and(|control| control.state.is_standby())
    }

    /// Whether all files are servers' own.
    fn are_servers(&self) -> bool {
        self.files.values().flatten().all(|file| file.taken_for == InputKind::PgWal)
    }

    /// Whether the server in whose directory the WAL lies recovers with more than that.
    fn is_told_to_recover(&self) -> bool {
        let data = self.wal_alone.as_deref().and_then(data_directory_of);
        data.is_some_and(|data| control::is_told_to_recover(&data))
    }

    /// Problems and notes of histories of timelines.
    fn tell_of_histories(&mut self, present: &BTreeSet<u32>, histories: &Histories) {
        let without_history = without_history(present, histories, self.are_servers());
        self.problems.extend(without_history.into_iter().map(missing_history));
        self.problems.extend(latest::contradicting(present, histories));
        self.notes.extend(self.histories_alone(present, histories));
        self.notes.extend(self.misplaced.iter().map(misplaced_note));
        self.notes.extend(histories.passed_over().map(ToString::to_string));
    }

    /// Takes the best file of each segment of the history that is followed.
    pub fn choose(&mut self) {
        let ours = self.files.iter().filter(|(key, _)| self.follows(key));
        let ours = ours.filter_map(|(_, files)| files.first());
        // There may be very many: no room is kept for more, nor for sorting. Each number is there once.
        let mut segments = Vec::with_capacity(ours.clone().count());
        segments.extend(ours.cloned());
        segments.sort_unstable_by_key(|segment| segment.number);
        let timelines: BTreeSet<u32> =
            segments.iter().map(|segment| segment.timeline).collect_set();
        self.timelines = timelines.into_iter().collect();
        self.segments = segments;
    }

    /// Whether some of the files were only listed.
    pub fn is_presumed(&self) -> bool {
        let is_presumed = |segment: &Segment| {
            matches!(segment.source, Source::Listed(_)) && segment.first_page.is_ok()
        };
        self.segments.iter().any(is_presumed)
    }

    /// Whether a segment is part of the history that is followed.
    fn follows(&self, (timeline, number): &Key) -> bool {
        self.lineage.of_file(*number, self.geometry.segment_bytes) == *timeline
    }

    /// Whether there is only a `.partial` of a segment, which nobody fetches, since a newer timeline has all
    /// of it: where that one begins, and what the older one would have gone on with. Its own first segment
    /// may be gone, with all before.
    pub fn is_replaced_partial(&self, key: &Key) -> bool {
        let (timeline, number) = *key;
        let is_whole = |timeline| {
            let files = self.files.get(&(timeline, number));
            files.is_some_and(|files| files.iter().any(Segment::claims_whole_segment))
        };
        let bytes = u64::from(self.geometry.segment_bytes);
        let is_left_there =
            |newer: &Lineage| newer.leaves(timeline).is_some_and(|at| at.0 / bytes == number);
        let mut newer = self.other_lineages.iter().chain([&self.lineage]);
        !is_whole(timeline)
            && newer.any(|it| {
                it.timeline() > timeline && (is_whole(it.timeline()) || is_left_there(it))
            })
    }

    /// Names the segments of other histories.
    fn name_others(&mut self) {
        let others = self.files.iter().filter(|(key, _)| !self.follows(key));
        let names: Vec<String> = others.flat_map(|(_, files)| files).map(Segment::file).collect();
        self.other_files.extend(names);
        self.other_files.sort();
    }

    /// Takes note of segments that may be missing, and of those that are in no file: not where a range
    /// that begins `from` before them is asked for, with all in it.
    ///
    /// # Errors
    ///
    /// When a gap does not begin or end where a segment does.
    pub fn accept(&mut self, gaps: &[Range<Lsn>], from: Lsn) -> Result<(), InputError> {
        check_bounds(gaps, self.geometry.segment_bytes)?;
        self.accepted_gaps = gaps.to_vec();
        self.leave_out_partial();
        self.unfilled = self.holes_unfilled();
        self.unfilled.retain(|hole| from == Lsn(0) || from >= hole.range.end);
        Ok(())
    }

    /// Leaves out what lies in an accepted gap and stands in for no segment, a left-over `.partial`: the
    /// segment is missing with it as without it.
    fn leave_out_partial(&mut self) {
        let bytes = u64::from(self.geometry.segment_bytes);
        let is_whole = |files: &Vec<Segment>| files.iter().any(Segment::claims_whole_segment);
        // The newest whole segment of each timeline.
        let whole = self.files.iter().filter(|(_, files)| is_whole(files));
        let newest: BTreeMap<u32, u64> = whole.map(|(key, _)| *key).collect_map();
        let goes_on = |timeline: u32, number: u64| {
            newest.iter().any(|(later, newest)| {
                let descends = |lineage: &Lineage| lineage.has(timeline);
                let is_of_it = *later == timeline || self.lineage_of(*later).is_some_and(descends);
                *newest > number && is_of_it
            })
        };
        let is_left_over = |((timeline, number), files): &(&Key, &Vec<Segment>)| {
            let start = Lsn(number.saturating_mul(bytes));
            self.accepted_gaps.iter().any(|gap| gap.contains(&start))
                && files.iter().all(|file| file.named && !file.claims_whole_segment())
                && goes_on(*timeline, *number)
        };
        let left_over = self.files.iter().filter(is_left_over);
        let left_over: BTreeSet<Key> = left_over.map(|(key, _)| *key).collect_set();
        self.segments.retain(|segment| !left_over.contains(&(segment.timeline, segment.number)));
        for key in left_over {
            let files = self.files.remove(&key).into_iter().flatten();
            self.other_files.extend(files.map(|file| file.file()));
        }
        self.other_files.sort();
    }

    /// Leaves only what the range needs.
    pub fn clip(&mut self, range: &Range<Lsn>) -> Result<(), InputError> {
        let bytes = u64::from(self.geometry.segment_bytes);
        let Range { start: first, end: last } = self.bounds();
        let path = self.segments.first().map(|s| s.source.path().to_owned()).unwrap_or_default();
        let inside =
            |number: u64| number * bytes < range.end.0 && (number + 1) * bytes > range.start.0;
        self.end_in_hole = self.segments.windows(2).find_map(|pair| match pair {
            [a, b]
                if inside(a.number)
                    && !inside(b.number)
                    && (a.number + 1) * bytes < range.end.0 =>
            {
                Some(Lsn((a.number + 1) * bytes)..Lsn(b.number * bytes))
            }
            _ => None,
        });
        self.segments.retain(|segment| inside(segment.number));
        self.files.retain(|(_, number), _| inside(*number));
        self.problems.retain(|problem| {
            let name = SegmentName::leading(&problem.segment);
            let number = name.and_then(|name| name.number(self.geometry.segment_bytes));
            number.is_none_or(inside)
        });
        if self.segments.is_empty() {
            return Err(InputError::Range { path, first, last });
        }
        Ok(())
    }

    /// The history of a timeline of which there are segments.
    pub fn lineage_of(&self, timeline: u32) -> Option<&Lineage> {
        let mut all = self.other_lineages.iter().chain([&self.lineage]);
        all.find(|lineage| lineage.timeline() == timeline)
    }

    /// From the first byte of the first segment to the end of the last one.
    pub fn bounds(&self) -> Range<Lsn> {
        let bytes = u64::from(self.geometry.segment_bytes);
        let first = self.segments.first().map_or(0, |s| s.number * bytes);
        let last = self.segments.last().map_or(0, |s| (s.number + 1) * bytes);
        Lsn(first)..Lsn(last)
    }

    /// The name of the segment in which `lsn` lies.
    pub fn segment_name(&self, lsn: Lsn) -> String {
        self.chain().segment_name(lsn)
    }

    /// The segments that are read, with their history.
    pub fn chain(&self) -> Chain<'_> {
        Chain {
            geometry: &self.geometry,
            segments: &self.segments,
            lineage: &self.lineage,
            accepted_gaps: &self.accepted_gaps,
            unfilled: &self.unfilled,
            is_for_crash: self.is_for_crash,
            is_standbys: self.is_standbys,
        }
    }

    /// What the input is taken for: the directory of the last segment decides.
    pub fn taken_for(&self) -> InputKind {
        let named = self.segments.iter().rfind(|segment| segment.named);
        let last = named.or(self.segments.last());
        last.map_or(InputKind::Copy, |segment| segment.taken_for)
    }

    /// The release that wrote the WAL.
    pub fn version(&self) -> &'static Version {
        self.geometry.version
    }
}

/// Names of files, of which histories of base backups are given with each set of segments that they are
/// beside: the same one is one file.
fn each_backup_once(mut files: Vec<String>) -> Vec<String> {
    files.sort();
    files.dedup_by(|file, before| file == before && backup_start(file).is_some());
    files
}

/// Checks that gaps begin and end where segments do.
///
/// # Errors
///
/// When one does not; the nearest place that is one is named.
pub fn check_bounds(gaps: &[Range<Lsn>], segment_bytes: u32) -> Result<(), InputError> {
    let bytes = u64::from(segment_bytes);
    let mut bounds = gaps.iter().flat_map(|gap| [gap.start, gap.end]);
    let Some(wrong) = bounds.find(|bound| !bound.0.is_multiple_of(bytes)) else { return Ok(()) };
    let below = wrong.0 / bytes * bytes;
    let is_nearer = wrong.0 - below >= bytes / 2;
    let nearest = below.checked_add(bytes).filter(|_| is_nearer).unwrap_or(below);
    let reason = format!(
        "an accepted gap begins and ends where segments of {bytes} bytes do: found {wrong}, expected the \
         nearest, {}",
        Lsn(nearest)
    );
    Err(InputError::Apart { reason })
}
