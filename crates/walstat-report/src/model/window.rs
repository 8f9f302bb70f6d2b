//! From where to where recovery can go: timelines, backups, restore points, gaps, and a target.

use serde::{Deserialize, Serialize};

/// Makes a row: its keys, all of which are written and read.
macro_rules! row {
    ($(#[$meta:meta])* pub struct $row:ident { $($(#[$about:meta])* pub $key:ident: $type:ty,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct $row { $($(#[$about])* pub $key: $type,)+ }
    };
}

row! {
    /// From where to where recovery can go.
    pub struct Window {
        /// Timelines, the oldest first; those that the one followed has left come last.
        pub timelines: Vec<TimelineRow>,
        /// Base backups, by where they begin.
        pub backups: Vec<BackupRow>,
        /// Restore points on the timeline that is followed, in WAL order.
        pub restore_points: Vec<RestorePointRow>,
        /// Where WAL is missing or damaged on the timeline that is followed.
        pub gaps: Vec<GapRow>,
        /// What became of the target, if one was asked for.
        pub target: Option<TargetRow>,
    }
}

row! {
    /// A timeline.
    pub struct TimelineRow {
        /// Its number.
        pub timeline: u32,
        /// Where its WAL begins.
        pub start_lsn: String,
        /// Where its WAL ends, as far as it was read.
        pub end_lsn: String,
        /// The earliest end of a transaction.
        pub first_time: Option<String>,
        /// The latest one.
        pub last_time: Option<String>,
        /// Start of the last record that commits a transaction.
        pub last_commit_lsn: Option<String>,
        /// The last transaction that ended, committed or not.
        pub last_xid: Option<String>,
        /// `timeline_switch`: a newer timeline leaves it there; else how its WAL ends, in the words of
        /// `ending.kind`.
        pub ends_by: String,
    }
}

row! {
    /// A base backup.
    pub struct BackupRow {
        /// Its label, where a file says it.
        pub label: Option<String>,
        /// Where replay begins.
        pub start_lsn: String,
        /// Where it ended, as its files or the WAL say.
        pub stop_lsn: Option<String>,
        /// When it began, by its label.
        pub start_time: Option<String>,
        /// When it ended, by its history file.
        pub stop_time: Option<String>,
        /// Replayed up to here it is consistent; null where only its `pg_control` would tell.
        pub consistent_from: Option<String>,
        /// Whether it can be restored with this WAL.
        pub usable: bool,
        /// How far replay comes from it.
        pub reaches: Option<String>,
        /// Why it cannot be used.
        pub why: Option<String>,
    }
}

row! {
    /// A restore point.
    pub struct RestorePointRow {
        /// Its name.
        pub name: String,
        /// Start of its record.
        pub lsn: String,
        /// When it was made.
        pub time: Option<String>,
    }
}

row! {
    /// A stretch that recovery cannot pass.
    pub struct GapRow {
        /// Where it begins.
        pub start_lsn: String,
        /// Where the next WAL begins, if there is any and the place is known.
        pub end_lsn: Option<String>,
        /// The first segment of it.
        pub segment: String,
        /// What is wrong, in the words of `problems[].kind`.
        pub kind: String,
    }
}

row! {
    /// What became of a target.
    pub struct TargetRow {
        /// The target, as it was asked for.
        pub asked: String,
        /// `recovery_target_inclusive`.
        pub inclusive: bool,
        /// Whether a server restored from a usable backup stops there.
        pub reachable: bool,
        /// Why, in a sentence.
        pub why: String,
        /// What lies before it has been replayed when recovery stops.
        pub stops_before_lsn: Option<String>,
        /// Start of the backup to restore.
        pub backup_start_lsn: Option<String>,
    }
}
