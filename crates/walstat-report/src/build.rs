//! Results of a scan → the model. Every number of a report is computed here or below, once.

use super::advice::advise;
use super::model::estimate::Estimates;
use super::model::filters::Filters;
pub use super::model::records::rfc3339;
use super::model::table::{RecordRow, RmgrRow};
use super::model::view::{Official, View};
use super::model::when::Overview;
use super::model::{self, CommandName, DEFAULT_DATA_PAGE_BYTES, Report, Sums};
use super::notes::{not_fetched, of_extensions, restored_nevertheless};
use super::official;
use std::collections::BTreeMap;
use std::ops::Range;
use walstat_analyse::amounts::Amounts;
use walstat_analyse::clock::Clock;
use walstat_analyse::dimension::{Dimension, Dimensions};
use walstat_analyse::ratios::{Ratios, ratio};
use walstat_analyse::select;
use walstat_analyse::totals::RecordTable;
use walstat_analyse::volume::Volume;
use walstat_analyse::why;
use walstat_analyse::why::ByteCause;
use walstat_format::fork::Fork;
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;
use walstat_format::rmgr;
use walstat_format::version::Version;
use walstat_read::input::plan::{Plan, Unfilled, WhyUnfilled};
use walstat_read::input::problem::Problem;
use walstat_read::input::segment::Segment;
use walstat_read::scan::books::Heading;
use walstat_read::scan::outcome::Outcome;

/// What was asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// The command: a report has causes, a report and a check have findings.
    pub command: CommandName,
    /// What the report has tables of.
    pub dimensions: Dimensions,
    /// Every checksum was verified.
    pub checksums_verified: bool,
    /// Start of the range, if it was given.
    pub start: Option<Lsn>,
    /// What was left out of the statistics.
    pub filters: select::Filters,
}

/// What was counted. Every report needs the statistics; a dimension that may be asked for is an
/// `Option` beside them.
#[derive(Debug, Clone)]
pub struct Counted<'c> {
    /// By record type, and the WAL's clock.
    pub(crate) statistics: &'c (RecordTable, Clock),
    /// When it was written, in a few numbers; the rules look at them.
    pub(crate) overview: Option<Overview>,
    /// What other settings would have written; the advice quotes it.
    pub(crate) estimates: Option<Estimates>,
    /// What vacuum pruned by records that statements write too.
    pub(crate) pruning: Amounts,
}

impl<'c> From<&'c (RecordTable, Clock)> for Counted<'c> {
    fn from(statistics: &'c (RecordTable, Clock)) -> Counted<'c> {
        let pruning = Amounts::default();
        Counted { statistics, overview: None, estimates: None, pruning }
    }
}

/// Begins to fill the model, from what was scanned and counted for every report; `paths` as they were given.
pub fn build<O>(
    paths: Vec<String>,
    plan: &Plan,
    outcome: &Outcome<O>,
    counted: Counted<'_>,
    request: &Request,
) -> Draft {
    let (table, clock) = counted.statistics;
    let all = table.sum(|_| true);
    let page_bytes = table.page_bytes().unwrap_or(DEFAULT_DATA_PAGE_BYTES);
    let totals = all.sums(page_bytes);
    let start = outcome.first.or(request.start).unwrap_or(plan.bounds().start);
    let version = plan.version();
    let asked = |dimension| request.dimensions.contains(&dimension);
    let range = range(start, outcome.ending.lsn, times(clock, &request.filters));
    let books = close_books(outcome, &totals);
    let ratios = Ratios::of(table, &totals, unfiltered(table, outcome, &request.filters));
    let why = why_rows(table, &counted.pruning, &totals);
    let input = input(paths, plan, request, table.page_bytes());
    let ending = ending(plan, outcome);
    let report = Report {
        why: (request.command == CommandName::Report).then_some(why),
        rmgrs: asked(Dimension::Rmgr).then(|| rmgr_rows(table, version, page_bytes).into()),
        records: asked(Dimension::Record).then(|| record_rows(table, version, page_bytes).into()),
        when: counted.overview,
        estimates: counted.estimates,
        problems: problems(plan, outcome, request),
        notes: notes(table, &books, plan, outcome, request),
        ..Report::of(request.command, input, range, books, (totals, ratios), ending)
    };
    Draft { report, official: official::lines(version, request.start, plan, outcome) }
}

/// A report that more may be filled into.
#[derive(Debug)]
#[must_use = "a draft has no advice yet"]
pub struct Draft {
    /// What was filled in so far.
    pub report: Report,
    official: Official,
}

impl Draft {
    /// Nothing more is filled in: what the rules look at is there.
    pub fn conclude(mut self) -> View {
        advise(&mut self.report);
        View::of(self.report, self.official)
    }
}

/// What is wrong. That the WAL is shorter than the range asked for is wrong where it is checked.
fn problems<O>(plan: &Plan, outcome: &Outcome<O>, request: &Request) -> Vec<model::Problem> {
    let uncovered = outcome.uncovered.iter().filter(|_| request.command == CommandName::Check);
    outcome.problems.iter().chain(uncovered).map(|found| problem(plan, found)).collect()
}

/// The volume of the range, whatever the filters left out of the table; of a span of time, if that was
/// the only one.
fn unfiltered<O>(table: &RecordTable, outcome: &Outcome<O>, filters: &select::Filters) -> Volume {
    if filters.are_of_time_alone() {
        return Volume::of(table, 0, 0);
    }
    Volume::of(table, outcome.books.get(Heading::Filtered), outcome.filtered_commits)
}

fn input(
    paths: Vec<String>,
    plan: &Plan,
    request: &Request,
    data_page_bytes: Option<u32>,
) -> model::Input {
    model::Input {
        paths,
        segments: plan.segments.len(),
        timelines: plan.timelines.clone(),
        system_identifier: plan.geometry.system_identifier.to_string(),
        postgres: plan.version().name.to_owned(),
        magic: format!("0x{:04X}", plan.version().magic),
        segment_bytes: plan.geometry.segment_bytes,
        page_bytes: plan.geometry.page_bytes,
        data_page_bytes,
        checksums_verified: request.checksums_verified,
        taken_for: plan.taken_for(),
        filters: filters(&request.filters),
        other_files: plan.other_files.clone(),
    }
}

/// The filters that are on, by the names of their options.
pub fn filters(filters: &select::Filters) -> Filters {
    let fork = |number| Fork::of(number).map_or_else(|| number.to_string(), |f| f.to_string());
    Filters {
        rmgr: filters.rmgrs.iter().map(|id| rmgr::name(*id).into()).collect(),
        record: filters.records.clone(),
        xid: filters.xid.map(|xid| xid.to_string()),
        relation: filters.relation.as_ref().map(|relation| relation.text.clone()),
        table: filters.relation.as_ref().and_then(|asked| asked.whole_table.then_some(true)),
        block: filters.block,
        fork: filters.fork.map(fork),
        database: filters.database,
        fullpage: filters.full_page.then_some(true),
        since: filters.span.as_ref().and_then(|span| rfc3339(span.times.start)),
        until: filters.span.as_ref().and_then(|span| rfc3339(span.times.end)),
    }
}

/// First and last time. Records that filters leave out tell the time too; a span of time leaves out
/// other times: that of a checkpoint, too, which states when it began.
pub(crate) fn times(clock: &Clock, filters: &select::Filters) -> Option<(Time, Time)> {
    match &filters.span {
        None => clock.all,
        Some(span) => {
            let seen = if filters.are_of_time_alone() { clock.counted } else { clock.all };
            let within = |time: Time| time.clamp(span.times.start, span.times.end);
            seen.map(|(first, last)| (within(first), within(last)))
        }
    }
}

fn range(start: Lsn, end: Lsn, times: Option<(Time, Time)>) -> model::Range {
    model::Range {
        start: start.to_string(),
        end: end.to_string(),
        first_time: times.and_then(|(first, _)| rfc3339(first)),
        last_time: times.and_then(|(_, last)| rfc3339(last)),
    }
}

fn close_books<O>(outcome: &Outcome<O>, totals: &Sums) -> model::Books {
    let get = |heading| outcome.books.get(heading);
    let accounted = outcome.books.total() + totals.total_bytes;
    model::Books {
        input_bytes: outcome.input_bytes,
        record_bytes: totals.record_bytes,
        fpi_bytes: totals.fpi_bytes,
        filtered_bytes: get(Heading::Filtered),
        padding_bytes: get(Heading::Padding),
        page_header_bytes: get(Heading::PageHeader),
        continuation_bytes: get(Heading::Continuation),
        switch_bytes: get(Heading::Switch),
        overwritten_bytes: get(Heading::Overwritten),
        incomplete_bytes: get(Heading::Incomplete),
        stale_bytes: get(Heading::Stale),
        zero_bytes: get(Heading::Zero),
        duplicate_bytes: get(Heading::Duplicate),
        damaged_bytes: get(Heading::Damaged),
        unaccounted_bytes: outcome.input_bytes.wrapping_sub(accounted) as i64,
    }
}

fn why_rows(table: &RecordTable, pruning: &Amounts, totals: &Sums) -> Vec<model::Why> {
    let vacuum_images = why::vacuum_fpi_bytes(table, pruning);
    let causes = why::causes(table, pruning).into_iter();
    let mut rows: Vec<model::Why> = causes
        .map(|(cause, bytes)| model::Why {
            cause,
            label: cause.text().to_owned(),
            bytes,
            fpi_bytes: match cause {
                ByteCause::Vacuum => vacuum_images,
                cause if cause.is_images() => bytes,
                _ => 0,
            },
            share: ratio(bytes, totals.total_bytes),
        })
        .collect();
    model::Why::sort(&mut rows);
    rows
}

/// Every built-in resource manager of the release, and those of extensions that have records.
fn rmgr_rows(table: &RecordTable, version: &Version, page_bytes: u32) -> Vec<RmgrRow> {
    let ids = (0..=u8::MAX).map(|id| (id, table.sum(|record| record.rmgr == id)));
    ids.filter(|(id, totals)| *id <= version.rmgr_max || totals.count > 0)
        .map(|(id, totals)| RmgrRow {
            rmgr: rmgr::name(id).into(),
            id,
            sums: totals.sums(page_bytes),
        })
        .collect()
}

/// Every record type that has records.
fn record_rows(table: &RecordTable, version: &Version, page_bytes: u32) -> Vec<RecordRow> {
    let rows = table.rows().map(|(record, totals)| RecordRow {
        rmgr: rmgr::name(record.rmgr).into(),
        record: record.name(version).into(),
        info: format!("0x{:02X}", record.info()),
        sums: totals.sums(page_bytes),
    });
    rows.collect()
}

fn ending<O>(plan: &Plan, outcome: &Outcome<O>) -> model::Ending {
    let ending = outcome.ending;
    // A position at the very end of a segment is told as part of that segment.
    let inside = Lsn(ending.lsn.0.saturating_sub(1)).max(plan.bounds().start);
    model::Ending {
        kind: ending.kind,
        lsn: ending.lsn.to_string(),
        segment: plan.segment_name(inside),
        text: format!("{}.", ending.kind.text()),
    }
}

/// A problem as the model has it.
pub fn problem(plan: &Plan, problem: &Problem) -> model::Problem {
    let segment_bytes = u64::from(plan.geometry.segment_bytes);
    model::Problem {
        kind: problem.kind,
        segment: problem.segment.clone(),
        lsn: problem.lsn.map(|lsn| lsn.to_string()),
        offset: problem.lsn.map(|lsn| lsn.0 % segment_bytes),
        expected: problem.expected.clone(),
        found: problem.whole_found(),
        skipped_bytes: problem.skipped_bytes,
    }
}

/// Segments that the timeline followed has left: how many of each timeline, and how many `.partial` that
/// nobody fetches.
pub(crate) fn left_aside(plan: &Plan) -> (BTreeMap<u32, usize>, usize) {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    let bytes = plan.geometry.segment_bytes;
    // Of a `.partial` without WAL there is nothing to count.
    let has_wal = |file: &Segment| file.first_page.is_ok() || file.claims_whole_segment();
    let left = plan.files.iter().filter(|((timeline, number), files)| {
        *timeline != plan.timeline
            && plan.lineage.of_file(*number, bytes) != *timeline
            && files.iter().any(has_wal)
    });
    let left = left.map(|(key, _)| key);
    let (partial, left): (Vec<_>, Vec<_>) = left.partition(|key| plan.is_replaced_partial(key));
    left.iter().for_each(|(timeline, _)| *counts.entry(*timeline).or_default() += 1);
    (counts, partial.len())
}

/// How far a timeline goes on, by its whole segments, behind the one in which the timeline that is followed
/// left it.
fn goes_on(plan: &Plan, timeline: u32) -> Option<String> {
    let bytes = u64::from(plan.geometry.segment_bytes);
    let (_, span) =
        plan.lineage.spans().find(|(of, _)| *of == timeline && !plan.is_timeline_asked)?;
    let mut files = plan.files.range((timeline, 0)..=(timeline, u64::MAX)).rev();
    // A server has files of later numbers ready, with what they had before.
    let is_written = |file: &Segment, number: u64| {
        let page = file.first_page.as_ref().ok();
        page.is_some_and(|page| page.header.address.0 == number.saturating_mul(bytes))
    };
    let is_whole = |(key, files): &(&(u32, u64), &Vec<Segment>)| {
        files.iter().any(|file| file.claims_whole_segment() && is_written(file, key.1))
    };
    let ((_, last), _) = files.find(is_whole)?;
    let end = Lsn(last.saturating_add(1).saturating_mul(bytes));
    (last.saturating_mul(bytes) >= span.end.0).then(|| {
        format!(
            ", which left it at {}: a restore does not have what timeline {timeline} wrote from there on to \
             {end} at most",
            span.end
        )
    })
}

/// What is verified and not counted: segments of timelines that the one followed has left.
fn not_counted(plan: &Plan) -> Vec<String> {
    let (counts, partial) = left_aside(plan);
    let note = |(timeline, count): (u32, usize)| {
        let segments = if count == 1 { "segment" } else { "segments" };
        let followed = plan.timeline;
        let goes_on = goes_on(plan, timeline).unwrap_or_default();
        let is_newer = plan.is_timeline_servers && timeline > followed;
        let servers =
            if is_newer { ", the one that the server is on by its pg_control" } else { "" };
        format!(
            "{count} {segments} of timeline {timeline} verified but not counted: timeline \
             {followed} is followed{servers}{goes_on} (-t {timeline} counts them)"
        )
    };
    let not_read = (partial > 0).then(|| {
        format!(
            "{partial} .partial not read: a newer timeline begins in that segment, or has all of it"
        )
    });
    counts.into_iter().map(note).chain(not_read).collect()
}

/// A hole in which segments need not be missing.
fn before_reset(hole: &Range<Lsn>) -> String {
    let Range { start, end } = hole;
    format!(
        "no WAL from {start} to {end}, where pg_resetwal began it anew, as pg_upgrade has it: a backup from \
         before is restored to {start} at most; whether WAL behind that was lost cannot be seen"
    )
}

/// A hole in which no file was lost.
fn unfilled(hole: &Unfilled) -> String {
    let Range { start, end } = &hole.range;
    let why = match hole.why {
        WhyUnfilled::Recycled => {
            "the server has recycled it, while an older segment waited for the archiver; its recovery begins \
             behind it, by pg_control or, without that in sight, by the timeline that it began since"
        }
        WhyUnfilled::NeverArchived => {
            "the server that archives here was a standby then, and has archived only what it was made from; \
             no backup from before is restored with this archive alone"
        }
    };
    format!("no WAL from {start} to {end}: {why}")
}

/// The space that segments take which were closed before they were full.
fn closed_early(books: &model::Books) -> Option<String> {
    books.closed_early_ratio().map(|_| {
        format!(
            "{} bytes are the unused rest of segments that were closed early (archive_timeout, \
             pg_switch_wal, backups)",
            books.switch_bytes
        )
    })
}

fn notes<O>(
    table: &RecordTable,
    books: &model::Books,
    plan: &Plan,
    outcome: &Outcome<O>,
    request: &Request,
) -> Vec<String> {
    let mut notes = plan.notes.clone();
    notes.extend(outcome.checksums_alone.iter().map(restored_nevertheless));
    notes.extend(outcome.unfetched.first().map(not_fetched));
    notes.extend(outcome.holes.before_reset.iter().map(before_reset));
    notes.extend(plan.unfilled.iter().map(unfilled));
    if let Some(file) = &outcome.open {
        notes.push(format!(
            "{file} is not filled to its end, which is normal only in a server's own directory: if this is \
             an archive, check it with --as archive"
        ));
    }
    if let Some(Problem { expected, found, .. }) = &outcome.uncovered {
        notes.push(format!("asked for: {expected}; found: {found}"));
    }
    if !request.checksums_verified {
        notes.push("checksums were not verified".to_owned());
    }
    if request.command == CommandName::Check {
        notes.extend(of_extensions(table));
    }
    notes.extend(not_counted(plan));
    // The report says it beside the causes of all other bytes.
    if request.command != CommandName::Report {
        notes.extend(closed_early(books));
    }
    notes
}
