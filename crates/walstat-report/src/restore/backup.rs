//! A backup, as far as its own files tell of it.

use super::Wal;
use walstat_analyse::backup::CheckpointAt;
use walstat_format::lsn::Lsn;
use walstat_read::input::control::Control;
use walstat_read::input::discover::ToRestore;
use walstat_read::input::label::{BackupLabel, Label};

/// What is to be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// Where replay begins.
    pub start: Lsn,
    /// The backup's label, if there is one: an LSN alone says less.
    pub label: Option<Label>,
    /// Its `pg_control`, if that is there.
    pub control: Option<Control>,
    /// What is wrong with its `pg_control`, or with another of its files.
    pub is_broken: Option<String>,
}

impl Backup {
    /// One whose label was read.
    pub fn of(read: BackupLabel) -> Backup {
        let BackupLabel { label, control, is_broken } = read;
        Backup { start: label.start, label: Some(label), control, is_broken }
    }

    /// One of which nothing is known but where replay begins.
    pub fn from_lsn(start: Lsn) -> Backup {
        Backup { start, label: None, control: None, is_broken: None }
    }

    /// What is to be known of it where WAL is looked for.
    pub fn to_restore(&self) -> ToRestore {
        ToRestore {
            is_asked: true,
            begins: Some(self.start),
            timeline: self.label.as_ref().map(|label| label.timeline),
            cluster: self.control.as_ref().map(|control| control.system_identifier),
            segment_bytes: self.control.as_ref().map(|control| control.wal_segment_bytes),
        }
    }

    /// The same as the release of the WAL reads its label: an older one takes less from it than from the
    /// checkpoint that it names (`StartupXLOG` and `read_backup_label` in
    /// `src/backend/access/transam/xlog.c`).
    pub(crate) fn read_by(self, wal: &Wal<'_>) -> Backup {
        let Some(label) = self.label else { return self };
        let CheckpointAt::Noted(found) = wal.backups.checkpoint_at(label.checkpoint) else {
            return self;
        };
        let rules = wal.plan.version().recovery;
        let start = if rules.reads_label_start { label.start } else { found.redo };
        let timeline = if rules.reads_label_timeline { label.timeline } else { found.timeline };
        Backup { start, label: Some(Label { start, timeline, ..label }), ..self }
    }
}
