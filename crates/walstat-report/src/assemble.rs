//! The report of every command is put together here, of whatever was counted for it; what one command alone
//! asks for, that one adds.

use super::build::{Counted, Draft, Request, build, times};
use super::estimate::estimates;
use super::known::Known;
use super::large_work::{self, LargeFound};
use super::maintenance;
use super::model::CommandName;
use super::model::follow::PgWal;
use super::model::table::Sort;
use super::restart;
use super::settings;
use super::when::{Origin, Questions};
use super::{when as told_when, who as told_who};
use walstat_analyse::checkpoint::cause::{self, Judged};
use walstat_analyse::counters::{Counters, Statistics};
use walstat_analyse::dimension::{Dimension, Dimensions};
use walstat_analyse::finished_transactions::Order;
use walstat_analyse::kind::FoundKinds;
use walstat_analyse::large_transactions::LargeTransaction;
use walstat_analyse::restore_input::RestoreInput;
use walstat_analyse::sample;
use walstat_analyse::select::Filters;
use walstat_analyse::when::{self, When, WhenFound};
use walstat_analyse::who::{self, Who};
use walstat_analyse::why;
use walstat_names::server_settings::ServerSettings;
use walstat_read::input::plan::Plan;
use walstat_read::scan::outcome::Outcome;

/// What the rules need tables of.
pub fn dimensions() -> Dimensions {
    Dimensions::from([Dimension::Rmgr, Dimension::Record, Dimension::Table])
}

/// Counters of an overview: who wrote the WAL is not in it.
pub fn overview() -> Counters {
    Counters { when: Some(When::new(when::Config::OVERVIEW)), ..Counters::default() }
}

/// Counters of all that the rules look at; with what is `known` of names.
pub fn whole(known: &Known) -> Counters {
    let who = Who::new(&dimensions(), 0, Order::Bytes, known.store());
    Counters { who, advice: Some(Default::default()), ..overview() }
}

/// WAL that was read and counted, concluded.
#[derive(Debug)]
pub struct Gathered {
    /// The paths, as they were given.
    pub(crate) paths: Vec<String>,
    /// What there was to read.
    pub plan: Plan,
    /// What was read, and what every report says of it.
    pub scanned: Outcome<Statistics>,
    /// Who wrote it, as far as that was asked for.
    pub who: who::Counted,
    /// When it was written, as far as that was asked for.
    pub when: Option<when::WhenFound>,
    /// Some of its images, and who wrote much at once, as far as there is to be advice.
    pub(crate) advice: Option<(sample::SampledImages, Vec<LargeTransaction>, FoundKinds)>,
    /// What a restore needs to know, as far as that was asked for.
    pub restore: RestoreInput,
    /// The settings of the server, as far as they are known.
    pub(crate) settings: Option<ServerSettings>,
    /// What lies in `pg_wal`, and what keeps it there, if that is what was read.
    pub pg_wal: Option<PgWal>,
    /// Why names are missing.
    pub warnings: Vec<String>,
}

impl Gathered {
    /// Concludes what was counted, with what is `known` of names.
    pub fn of(
        paths: Vec<String>,
        plan: Plan,
        scanned: Outcome<Counters>,
        known: Known,
    ) -> Gathered {
        let mut counters = Counters::default();
        let scanned = scanned.map(|all| {
            counters = all;
            std::mem::take(&mut counters.statistics)
        });
        let end = scanned.ending.lsn;
        let settings = known.settings(&plan).cloned();
        let (who, warnings) = known.finish(counters.who, &plan);
        Gathered {
            who,
            when: counters.when.map(|when| when.finish(end)),
            advice: counters
                .advice
                .map(|(sample, (large, kinds))| (sample.finish(), large.finish(), kinds.finish())),
            restore: counters.restore.unwrap_or_default(),
            settings,
            pg_wal: None,
            warnings,
            paths,
            plan,
            scanned,
        }
    }

    /// WAL of which nothing but the statistics were counted.
    pub fn plain(paths: Vec<String>, plan: Plan, scanned: Outcome<Statistics>) -> Gathered {
        let counters = |statistics| Counters { statistics, ..Counters::default() };
        Gathered::of(paths, plan, scanned.map(counters), Known::default())
    }
}

/// What of a report is wanted, and how it is put together.
#[derive(Debug, Clone)]
pub struct ReportOptions {
    /// Rows of tables.
    pub rows: told_who::Rows,
    /// What was asked about times and rates.
    pub questions: Questions,
}

impl Default for ReportOptions {
    fn default() -> ReportOptions {
        ReportOptions::by(told_who::By::Table)
    }
}

impl ReportOptions {
    /// The same with partitions as `by` says.
    pub fn by(by: told_who::By) -> ReportOptions {
        let rows = told_who::Rows { by, sort: Sort::Bytes, shown: 0 };
        ReportOptions { rows, questions: Questions::default() }
    }
}

/// Puts the report together, but for its advice.
pub fn assemble(gathered: Gathered, request: &Request, options: &ReportOptions) -> Draft {
    let Gathered { paths, plan, scanned, who, when, advice, settings, pg_wal, warnings, .. } =
        gathered;
    let origin = Origin::of(&plan, settings.as_ref());
    let has_overview = matches!(request.command, CommandName::Report | CommandName::Check);
    let overview = when.as_ref().filter(|_| has_overview);
    let judged = when.as_ref().map(|found| judged(found, origin)).unwrap_or_default();
    let cycles = when.as_ref().and_then(|found| found.cycles.as_ref());
    let (sample, rest) = advice.map(|(sample, large, kinds)| (sample, (large, kinds))).unzip();
    let (large, kinds) = rest.unzip();
    let pruning = who.vacuums.as_ref().map(|vacuums| vacuums.pruning()).unwrap_or_default();
    let statistics = &scanned.observer;
    let shown = times(&statistics.1, &request.filters);
    let overview =
        overview.map(|found| told_when::overview(found, &judged, &origin.server(), shown));
    let counted = Counted {
        statistics,
        overview,
        estimates: sample
            .and_then(|sample| estimates(&sample, cycles, &judged.verdicts, &statistics.0)),
        pruning,
    };
    let mut draft = build(paths, &plan, &scanned, counted, request);
    draft.report.settings = settings.map(|found| settings::told(&found));
    if let Some(found) = when.filter(|_| request.command != CommandName::Check) {
        let asked = told_when::WhenAsked {
            dimensions: &request.dimensions,
            questions: &options.questions,
            origin,
        };
        told_when::fill(&mut draft.report, found, &judged, &asked);
    }
    if pg_wal.is_some()
        && let Some(bytes) = restart::of_standby(&plan, scanned.ending.lsn)
    {
        let overview = draft.report.when.iter_mut();
        overview.for_each(|overview| told_when::replays_at_least(overview, bytes));
    }
    draft.report.pg_wal = pg_wal;
    draft.report.notes.extend(warnings);
    draft.report.kind_sample =
        kinds.and_then(|kinds| told_who::kind_sample(kinds, &who.names, options.rows.by));
    let large = large.map(|large| LargeFound::of(large, &who.names));
    told_who::fill(&mut draft.report, who, &request.dimensions, options.rows, plan.version());
    if let Some(large) = large {
        maintenance::count_rewrites(&mut draft.report, large.rewritten_bytes());
        large_work::fill(&mut draft.report, large);
    }
    draft.report.maintenance =
        maintenance::rows(&draft.report, why::vacuum_fpi_bytes(&statistics.0, &pruning));
    draft
}

/// Why the checkpoints began, as far as cycles were found.
fn judged(found: &WhenFound, origin: Origin) -> Judged {
    let cycles = found.cycles.as_ref();
    cycles.map(|cycles| cause::judge(cycles, &found.clock, &origin.server())).unwrap_or_default()
}

/// What is asked of a report with all that the rules look at.
pub fn whole_request(command: CommandName) -> Request {
    Request {
        command,
        dimensions: dimensions(),
        checksums_verified: true,
        start: None,
        filters: Filters::default(),
    }
}
