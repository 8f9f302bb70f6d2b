//! The settings of a simulated run, as far as they are others than the base's.

use crate::wal::image::Compression;
use crate::wal::lsn::Lsn;

/// Where checkpoints come from.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Checkpoints {
    /// At the same records as in the base.
    #[default]
    AsBase,
    /// A redo point before the first record at or after each of these; each completes at once.
    /// None of the base's own.
    At(Vec<Lsn>),
    /// That many times as far apart as in the base, by commits.
    Factor(f64),
    /// After that many bytes of WAL, at a commit.
    Bytes(u64),
    /// After that many microseconds, at a commit.
    Time(i64),
    /// As the server times them by WAL and clock.
    Timed(Timed),
}

/// What the server times checkpoints by.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Timed {
    /// max_wal_size, bytes; as the base shows it if not given.
    pub max_wal_size: Option<u64>,
    /// checkpoint_timeout, microseconds; as the base shows it if not given.
    pub timeout: Option<i64>,
    /// checkpoint_completion_target; the release's default if not given.
    pub completion_target: Option<f64>,
    /// Whether a request that comes while a checkpoint runs is lost: the server skips it if nothing
    /// was logged since that one's end.
    pub requests_lost: bool,
    /// By how many segments each request is served late: the checkpointer may still be asleep in the
    /// checkpoint before.
    pub late_segments: u64,
}

/// One setting that is another than the base's.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Where checkpoints come from.
    Checkpoints(Checkpoints),
    /// max_wal_size, bytes.
    MaxWalSize(u64),
    /// checkpoint_timeout, microseconds.
    CheckpointTimeout(i64),
    /// checkpoint_completion_target.
    CompletionTarget(f64),
    /// wal_compression; `None` is off.
    Compression(Option<Compression>),
    /// full_page_writes.
    FullPageWrites(bool),
    /// wal_log_hints or data checksums.
    LogHints(bool),
    /// Whether wal_level is logical.
    Logical(bool),
    /// archive_timeout.
    ArchiveTimeout(ArchiveTimeout),
    /// wal_segment_size, bytes.
    SegmentBytes(u64),
}

/// archive_timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveTimeout {
    /// No segment is left early.
    Off,
    /// A segment in which something was logged is left after that many microseconds.
    After(i64),
}

/// All settings; what is `None` is as in the base.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    /// Where checkpoints come from.
    pub checkpoints: Checkpoints,
    /// full_page_writes.
    pub full_page_writes: Option<bool>,
    /// Whether changes of hint bits are logged: wal_log_hints or data checksums.
    pub log_hints: Option<bool>,
    /// wal_compression; `Some(None)` is off.
    pub compression: Option<Option<Compression>>,
    /// Whether wal_level is logical.
    pub logical: Option<bool>,
    /// archive_timeout, in place of all switches of the base.
    pub archive_timeout: Option<ArchiveTimeout>,
    /// wal_segment_size, bytes.
    pub segment_bytes: Option<u64>,
}

impl Settings {
    /// The same with one of them changed.
    pub fn change(&mut self, change: &Change) {
        match change {
            Change::Checkpoints(checkpoints) => self.checkpoints = checkpoints.clone(),
            Change::MaxWalSize(bytes) => self.time(|timed| timed.max_wal_size = Some(*bytes)),
            Change::CheckpointTimeout(time) => self.time(|timed| timed.timeout = Some(*time)),
            Change::CompletionTarget(target) => {
                self.time(|timed| timed.completion_target = Some(*target))
            }
            Change::Compression(compression) => self.compression = Some(*compression),
            Change::FullPageWrites(on) => self.full_page_writes = Some(*on),
            Change::LogHints(on) => self.log_hints = Some(*on),
            Change::Logical(on) => self.logical = Some(*on),
            Change::ArchiveTimeout(timeout) => self.archive_timeout = Some(*timeout),
            Change::SegmentBytes(bytes) => self.segment_bytes = Some(*bytes),
        }
    }

    /// What the server times checkpoints by: it does, from now on.
    fn time(&mut self, set: impl FnOnce(&mut Timed)) {
        let mut timed = match self.checkpoints {
            Checkpoints::Timed(timed) => timed,
            _ => Timed::default(),
        };
        set(&mut timed);
        self.checkpoints = Checkpoints::Timed(timed);
    }
}
