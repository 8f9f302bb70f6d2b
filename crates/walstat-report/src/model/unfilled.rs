//! A report in which nothing is filled in but what every report has.

use super::threshold::Thresholds;
use super::{Books, CommandName, Ending, Input, Range, Ratios, Report, SCHEMA, Sums, VERSION};

impl Report {
    /// The report of a command, with no table and no finding yet.
    pub(crate) fn of(
        command: CommandName,
        input: Input,
        range: Range,
        books: Books,
        (totals, ratios): (Sums, Ratios),
        ending: Ending,
    ) -> Report {
        Report {
            walstat: VERSION.to_owned(),
            schema: SCHEMA.to_owned(),
            command,
            input,
            range,
            books,
            totals,
            ratios,
            ending,
            problems: Vec::new(),
            notes: Vec::new(),
            thresholds: Thresholds::default(),
            why: None,
            maintenance: None,
            rmgrs: None,
            records: None,
            relations: None,
            names: None,
            tables: None,
            databases: None,
            tablespaces: None,
            forks: None,
            blocks: None,
            transactions: None,
            kinds: None,
            kind_sample: None,
            when: None,
            settings: None,
            pg_wal: None,
            estimates: None,
            large_transactions: None,
            large_work: None,
            bytes_a_day: None,
            advice_together: None,
            timeline: None,
            checkpoints: None,
            checkpoint_summary: None,
            recovery: None,
            replication: None,
            commits: None,
            whatif: None,
            window: None,
            findings: None,
            checks: None,
            state: None,
            accepted_gaps: None,
            segment_groups: None,
        }
    }
}
