//! Segments that come through a stream, in any order: each is a run of its own as it passes
//! by, and which runs belong together is decided when all have passed.

use super::pages::{Pages, Progress};
use super::reader::Reader;
use super::record::{Observe, Select};
use super::run::Run;
use super::scope::Scope;
use crate::input::discover::{Found, file_name};
use crate::input::plan::{InputError, Plan, Segment, belongs};
use crate::input::probe::{FirstPage, NotWal};
use crate::input::problem::{Problem, ProblemKind};
use crate::input::source::{Bytes, Source};
use crate::input::stream::{Item, StreamSegment, for_each_item};
use crate::wal::crc::Crc32c;
use crate::wal::lsn::Lsn;
use crate::wal::page::Geometry;
use crate::wal::segment::{SegmentName, number_of};
use crate::wal::version::Magic;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// What is asked of a scan before it is known what it will meet.
#[derive(Debug, Clone)]
pub struct Wanted<S> {
    /// How checksums are computed; `None`: they are not verified.
    pub crc: Option<Crc32c>,
    /// Range of LSNs.
    pub range: (Lsn, Lsn),
    /// Stop after that many counted records.
    pub limit: Option<u64>,
    /// Timeline to follow.
    pub timeline: Option<u32>,
    /// The filters.
    pub select: S,
}

impl<S> Wanted<S> {
    /// The scope of a scan of WAL of this geometry.
    pub fn scope(self, geometry: Geometry) -> Scope<S> {
        let (start, end) = self.range;
        Scope { geometry, crc: self.crc, start, end, limit: self.limit, select: self.select }
    }
}

/// Of that many other files in a stream the names are kept.
const UNREAD_MAX: usize = 1000;

/// A run that passed by. Segments without names that follow each other are one run.
struct Passed<O> {
    segments: Vec<Segment>,
    run: Run<O>,
    /// Checksum of all its bytes.
    content: Option<u32>,
}

/// What passes by.
struct Collector<'a, S, O> {
    scope: Option<Scope<S>>,
    wanted: Wanted<S>,
    progress: &'a Progress,
    prototype: &'a O,
    /// By number of the first segment and timeline.
    passed: BTreeMap<(u64, u32), Passed<O>>,
    problems: Vec<Problem>,
    /// Second copies of segments.
    copies: Vec<Passed<O>>,
    not_wal: Option<(PathBuf, NotWal)>,
    /// Files passed over before it was known what they are part of.
    unread: Vec<String>,
    /// Encrypted, or in a format that is not read: copies, if their segment comes in the clear too.
    maybe_copies: Vec<(SegmentName, Problem)>,
    /// The segment that passed by last: one without name and first page follows it.
    last: Option<(u64, u32)>,
    /// It had neither name nor first page: two of those in a row are no WAL any more.
    last_was_bare: bool,
}

/// Reads everything that `found` holds, files and streams. Gives the plan as it turned out,
/// and the runs by stretches.
pub fn scan<S: Select + Clone, O: Observe>(
    mut found: Found,
    wanted: Wanted<S>,
    progress: &Progress,
    prototype: &O,
) -> Result<(Plan, Vec<Run<O>>), InputError> {
    let timeline = wanted.timeline;
    let mut collector = Collector {
        scope: None,
        wanted,
        progress,
        prototype,
        passed: BTreeMap::new(),
        problems: Vec::new(),
        copies: Vec::new(),
        not_wal: None,
        unread: Vec::new(),
        maybe_copies: Vec::new(),
        last: None,
        last_was_bare: false,
    };
    collector.take_files(&mut found)?;
    let first = found.streams.first().cloned().unwrap_or_default();
    for stream in std::mem::take(&mut found.streams) {
        for_each_item(&stream, &mut |item| collector.take(item, &mut found))?;
    }
    collector.conclude(&found, timeline, first)
}

impl<O> Passed<O> {
    /// How far valid records go.
    fn reach(&self) -> Option<Lsn> {
        self.run.last.map(|last| last.next)
    }

    /// The names of its segments' files.
    fn files(&self) -> Vec<String> {
        let paths = self.segments.iter().map(|segment| segment.source.path());
        paths.map(|path| file_name(path)).collect()
    }

    /// The problem if a second copy has other records, or damage.
    fn contradiction(&self, other: &Passed<O>) -> Option<Problem> {
        let alike = self.run.last == other.run.last && self.run.counted == other.run.counted;
        // Behind the end of the WAL, where a gap is open, copies may differ.
        let open = self.run.gap.is_some() || other.run.gap.is_some();
        let same = alike && (self.content == other.content || open);
        let broken = other.run.gap.as_ref().is_some_and(|gap| !gap.cause.is_end());
        let shorter = other.reach() < self.reach() && other.run.problems.is_empty() && !broken;
        if same || shorter {
            return None;
        }
        let file = other.segments.first()?.source.path().display().to_string();
        Some(Problem {
            lsn: Some(other.run.start),
            ..Problem::of_file(
                ProblemKind::DuplicateDiffers,
                &file,
                "the records of the other copy".into(),
                "other records".into(),
            )
        })
    }
}

impl<S: Select + Clone, O: Observe> Collector<'_, S, O> {
    /// Files beside the streams are read as if they came through one.
    fn take_files(&mut self, found: &mut Found) -> Result<(), InputError> {
        for candidate in std::mem::take(&mut found.candidates) {
            let io = |source| InputError::Io { path: candidate.path.clone(), source };
            let mut bytes = candidate.probe.source.open(0).map_err(io)?;
            let mut reader: Box<dyn std::io::Read> = match &mut bytes {
                Bytes::Raw(file) => Box::new(file),
                Bytes::Read(reader) => Box::new(reader),
            };
            let segment = StreamSegment {
                file: file_name(&candidate.path),
                name: candidate.name,
                first_page: candidate.probe.first_page,
                bytes: &mut reader,
            };
            let _ = self.take_segment(segment);
        }
        Ok(())
    }

    fn take(&mut self, item: Item<'_>, found: &mut Found) -> ControlFlow<()> {
        match item {
            Item::Segment(segment) => self.take_segment(segment),
            Item::History(timeline, text, file) => {
                found.add_history(timeline, text, file);
                ControlFlow::Continue(())
            }
            Item::NotWal(file, reason) => self.refuse(&file, None, reason),
            Item::Other(file) => {
                if self.unread.len() < UNREAD_MAX {
                    self.unread.push(file);
                }
                ControlFlow::Continue(())
            }
            Item::Cut(file, found) => {
                let expected = "the rest of the stream".to_owned();
                self.problems.push(Problem::of_file(
                    ProblemKind::Truncated,
                    &file,
                    expected,
                    found,
                ));
                ControlFlow::Continue(())
            }
        }
    }

    /// Refuses a file; `name`: what it is called, if that is a segment's name.
    fn refuse(&mut self, file: &str, name: Option<SegmentName>, reason: NotWal) -> ControlFlow<()> {
        let found = reason.to_string();
        let problem = Problem::of_file(ProblemKind::NotWal, file, "a WAL segment".into(), found);
        match name.filter(|_| reason.may_be_a_copy()) {
            Some(name) => self.maybe_copies.push((name, problem)),
            None => self.problems.push(problem),
        }
        self.not_wal.get_or_insert((PathBuf::from(file), reason));
        ControlFlow::Continue(())
    }

    fn take_segment(&mut self, item: StreamSegment<'_>) -> ControlFlow<()> {
        let Some(scope) = self.scope_for(&item) else {
            return match item.first_page {
                // Never written: normal, but how long it is nobody has said yet.
                Err(NotWal::Zeros) if item.name.is_some() => {
                    self.unread.push(item.file);
                    ControlFlow::Continue(())
                }
                first_page => {
                    let name = item.name.map(|file| file.name);
                    self.refuse(&item.file, name, first_page.err().unwrap_or(NotWal::Empty))
                }
            };
        };
        match &item.first_page {
            Err(reason) if reason.is_final() => {
                let name = item.name.as_ref().map(|file| file.name);
                return self.refuse(&item.file, name, reason.clone());
            }
            Ok(page) => {
                if let Err(problem) = belongs(page, &scope.geometry, &item.file) {
                    self.problems.push(problem);
                    return ControlFlow::Continue(());
                }
            }
            Err(_) => {}
        }
        if item.name.is_none() && item.first_page.is_err() {
            if self.last_was_bare {
                let found = "more segments without a first page".to_owned();
                let expected = "the end of the stream".to_owned();
                self.problems.push(Problem::of_file(
                    ProblemKind::TrailingBytes,
                    &item.file,
                    expected,
                    found,
                ));
                return ControlFlow::Break(());
            }
            self.last_was_bare = true;
        } else {
            self.last_was_bare = false;
        }
        match self.segment_of(&item, &scope.geometry) {
            Some(segment) => self.read(segment, item, scope),
            None => {
                let reason = item.first_page.err().unwrap_or(NotWal::MidSegment);
                self.refuse(&item.file, None, reason)
            }
        }
    }

    /// The scope of the scan, which the first good page of all decides.
    fn scope_for(&mut self, item: &StreamSegment<'_>) -> Option<Scope<S>> {
        if self.scope.is_none()
            && let Ok(page) = &item.first_page
            && let Magic::Known(version) = Magic::of(page.header.magic)
        {
            let FirstPage { long, .. } = page;
            self.scope = Some(self.wanted.clone().scope(Geometry {
                version,
                system_identifier: long.system_identifier,
                segment_bytes: long.segment_bytes,
                page_bytes: long.page_bytes,
            }));
        }
        self.scope.clone()
    }

    fn read(
        &mut self,
        segment: Segment,
        item: StreamSegment<'_>,
        scope: Scope<S>,
    ) -> ControlFlow<()> {
        let bytes = u64::from(scope.geometry.segment_bytes);
        let (start, end) = (segment.number * bytes, (segment.number + 1) * bytes);
        if start >= scope.end.0 || end <= scope.start.0 {
            return ControlFlow::Continue(());
        }
        let in_line = item.name.is_none() && item.first_page.is_ok();
        let follows = |passed: &Passed<O>| passed.run.end.0 == start && in_line;
        let before = self.passed.iter().find(|(_, passed)| follows(passed)).map(|(key, _)| *key);
        let part = Scope { limit: self.limit_left(&scope), ..scope.clone() };
        let mut reader: Reader<_, O> =
            Reader::new(&part, Lsn(start), Lsn(end), self.prototype.clone());
        let mut pages = Pages::new(&part, self.progress);
        pages.watch_content();
        let from = pages.first_page_in_range(&segment);
        let mut bytes = Bytes::Read(Box::new(item.bytes));
        if bytes.skip(from).is_ok() {
            pages.push_bytes(&segment, from, &mut bytes, &mut reader);
        }
        let mut run = reader.finish();
        run.observer.shrink();
        let mut done = run.range_end.is_some();
        match before.and_then(|key| self.passed.remove_entry(&key)) {
            Some((key, mut passed)) => {
                // What was taken for this segment, having no first page of its own, was not it.
                self.copies.extend(self.passed.remove(&(segment.number, segment.timeline)));
                passed.segments.push(segment);
                passed.run = passed.run.join(run, &scope);
                done = passed.run.range_end.is_some();
                self.passed.insert(key, passed);
            }
            None => self.keep(Passed { segments: vec![segment], run, content: pages.content() }),
        }
        match done && scope.limit.is_some() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// How many records the next segment may still count: what all before it have left, a
    /// record that goes on into it included.
    fn limit_left(&self, scope: &Scope<S>) -> Option<u64> {
        let runs = || self.passed.values().map(|passed| &passed.run);
        let counted: u64 = runs().map(|run| run.counted + u64::from(run.open.is_some())).sum();
        scope.limit.map(|limit| limit.saturating_sub(counted).max(1))
    }

    /// Keeps a run; of two copies of a segment the one that reaches further.
    fn keep(&mut self, passed: Passed<O>) {
        let Some(first) = passed.segments.first() else { return };
        let key = (first.number, first.timeline);
        let kept = match self.passed.remove(&key) {
            None => passed,
            Some(other) => {
                let (kept, dropped) = match passed.reach() > other.reach() {
                    true => (passed, other),
                    false => (other, passed),
                };
                self.problems.extend(kept.contradiction(&dropped));
                self.copies.push(dropped);
                kept
            }
        };
        self.passed.insert(key, kept);
    }

    /// What the name says of a segment in a stream, or else its first page, or its place.
    fn segment_of(&mut self, item: &StreamSegment<'_>, geometry: &Geometry) -> Option<Segment> {
        let name = item.name.as_ref();
        let (number, timeline) = match (name, &item.first_page) {
            (Some(file), _) => (file.name.number(geometry.segment_bytes)?, file.name.timeline),
            (None, Ok(page)) => {
                let number = number_of(page.header.address, geometry.segment_bytes)?;
                (number, page.header.timeline)
            }
            (None, Err(_)) => self.last.map(|(number, timeline)| (number + 1, timeline))?,
        };
        self.last = Some((number, timeline));
        Some(Segment {
            number,
            timeline,
            raw_bytes: None,
            modified: None,
            sha1: name.and_then(|file| file.sha1.clone()),
            partial: name.is_some_and(|file| file.partial),
            source: Source::Streamed(PathBuf::from(&item.file)),
        })
    }

    fn conclude(
        self,
        found: &Found,
        timeline: Option<u32>,
        path: PathBuf,
    ) -> Result<(Plan, Vec<Run<O>>), InputError> {
        let Some(scope) = self.scope else {
            let (file, reason) = self.not_wal.unwrap_or((path.clone(), NotWal::Empty));
            let path = if path == file { path } else { path.join(file) };
            return Err(InputError::NotWal { path, reason });
        };
        let mut plan = Plan::new(scope.geometry);
        let present = self.passed.keys().map(|(_, timeline)| *timeline).collect();
        let lineage = plan.follow(timeline, present, found)?;
        plan.problems = self.problems;
        plan.other_files = found.others.iter().cloned().chain(self.unread).collect();
        for (name, problem) in self.maybe_copies {
            let number = name.number(scope.geometry.segment_bytes);
            match number.is_some_and(|n| self.passed.contains_key(&(n, name.timeline))) {
                true => plan.other_files.push(problem.segment),
                false => plan.problems.push(problem),
            }
        }
        let mut by_number: BTreeMap<u64, BTreeMap<u32, Passed<O>>> = BTreeMap::new();
        for ((number, timeline), passed) in self.passed {
            by_number.entry(number).or_default().insert(timeline, passed);
        }
        let mut stretches: Vec<Run<O>> = Vec::new();
        for mut files in by_number.into_values() {
            let start = files.values().next().map_or(Lsn(0), |passed| passed.run.start);
            let best = lineage.files_for(start).find(|wanted| files.contains_key(wanted));
            let best = best.and_then(|timeline| files.remove(&timeline));
            plan.other_files.extend(files.into_values().flat_map(|passed| passed.files()));
            let Some(Passed { segments, run, .. }) = best else { continue };
            plan.segments.extend(segments);
            match stretches.pop_if(|before| before.end == run.start) {
                Some(before) => stretches.push(before.join(run, &scope)),
                None => stretches.push(run),
            }
        }
        for copy in self.copies {
            let read = copy.segments.iter().any(|s| plan.reads(s.number, s.timeline));
            match read {
                true => plan.duplicate_bytes += copy.run.input_bytes,
                false => plan.other_files.extend(copy.files()),
            }
        }
        plan.timelines = plan.timelines_read();
        if plan.segments.is_empty() {
            return Err(InputError::NoSegments { path });
        }
        Ok((plan, stretches))
    }
}
