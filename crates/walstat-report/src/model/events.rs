//! What `walstat events` prints: what was done to tables, and where recovery has to stop before it.

use super::{CommandName, Ending, Input, Problem, Range, Report};
use serde::Serialize;

/// What was done to tables.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventsReport {
    /// The program's version.
    pub walstat: String,
    /// The version of the keys.
    pub schema: String,
    /// What was asked for.
    pub command: CommandName,
    /// What was read.
    pub input: Input,
    /// From where to where.
    pub range: Range,
    /// The events, in the order of the WAL.
    pub events: Vec<EventRow>,
    /// How the WAL ends.
    pub ending: Ending,
    /// What is wrong in the WAL.
    pub problems: Vec<Problem>,
    /// What is missing, and why.
    pub notes: Vec<String>,
    /// Those of the notes that say why names or events may be missing.
    #[serde(skip)]
    pub warnings: Vec<String>,
    /// How a server is told where recovery ends; only people see it.
    #[serde(skip)]
    pub settings: RecoverySettings,
    /// Timelines of which there is WAL that is not counted, since another one is followed; only people see
    /// it, `notes` say it.
    #[serde(skip)]
    pub other_timelines: Vec<u32>,
}

/// How a server of the release is told where recovery ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoverySettings {
    /// The file that the settings go to.
    pub file: &'static str,
    /// Whether there is `recovery_target_lsn`; else the transaction is named.
    pub has_lsn: bool,
}

/// What was done to a table, an index or a database by one transaction.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct EventRow {
    /// Where it begins.
    pub lsn: String,
    /// Where the record of the commit begins; `null` without one.
    pub commit_lsn: Option<String>,
    /// When the transaction ended.
    pub time: Option<String>,
    /// The transaction.
    pub xid: String,
    /// `committed`, `aborted`, `in_progress`, `prepared`.
    pub outcome: String,
    /// What was done.
    pub event: String,
    /// The database.
    pub database: Option<String>,
    /// The table's schema.
    pub schema: Option<String>,
    /// The table; of an index, that which it belongs to.
    pub table: Option<String>,
    /// The index; `null` unless it is about one.
    pub index_name: Option<String>,
    /// All names that the table, or the index, had in this WAL, with their schemas; only if it had several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// `tablespace/database/relfilenode`: before the event, if there was such a file.
    pub relation: Option<String>,
    /// Rows that were changed; `null` where rows are not counted.
    pub rows: Option<u64>,
    /// Bytes of WAL that these rows took, or the new file; `null` where there is neither.
    pub bytes: Option<u64>,
    /// Where recovery has to stop.
    pub recovery_target: RecoveryTarget,
    /// The backup that names come from begins after that; only people see it.
    #[serde(skip)]
    pub is_before_backup: bool,
    /// Why a server does not open where recovery stops before it; only people see it, `notes` say it.
    #[serde(skip)]
    pub unopened: Option<String>,
    /// It stays, whatever becomes of the transaction; only people see it, `notes` say it.
    #[serde(skip)]
    pub is_irrevocable: bool,
    /// It ended by COMMIT PREPARED, before which it waits with its locks; only people see it.
    #[serde(skip)]
    pub was_prepared: bool,
}

/// Where recovery stops right before a transaction: all that committed before is there, nothing of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RecoveryTarget {
    /// Where, not inclusive; `null` where a server does not open there, as all others are then.
    pub recovery_target_lsn: Option<String>,
    /// `off`: without it a server stops after the place.
    pub recovery_target_inclusive: &'static str,
    /// The same; `null` where no transaction ends there.
    pub recovery_target_xid: Option<String>,
    /// Inclusive or not; `null` where no time stops at the same place.
    pub recovery_target_time: Option<String>,
    /// The timeline on which the place lies.
    pub recovery_target_timeline: u32,
    /// The last transaction that ended before, inclusive, which stops at no later place either, where none
    /// ends there; only people see it.
    #[serde(skip)]
    pub after_xid: Option<String>,
}

impl EventsReport {
    /// The events of WAL of which `report` says what else there is to say.
    pub fn new(
        report: Report,
        events: Vec<EventRow>,
        warnings: Vec<String>,
        settings: RecoverySettings,
        other_timelines: Vec<u32>,
    ) -> EventsReport {
        let Report { walstat, schema, command, input, range, ending, problems, .. } = report;
        let notes = report.notes.iter().chain(&warnings).cloned().collect();
        EventsReport {
            walstat,
            schema,
            command,
            input,
            range,
            events,
            ending,
            problems,
            notes,
            warnings,
            settings,
            other_timelines,
        }
    }
}
