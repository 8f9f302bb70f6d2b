//! The settings of a simulated run, as far as they are others than the base's.

use super::base_checkpoint::CauseReading;
use walstat_format::image::Compression;
use walstat_format::lsn::Lsn;

/// Where checkpoints come from.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Checkpoints {
    /// At the same records as in the base.
    #[default]
    AsBase,
    /// A redo point before the first record at or after each of these; each completes at once.
    /// None of the base's own.
    At(Vec<Lsn>),
    /// None but those of backups, shutdown and recovery, which the next three leave too.
    Never,
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
    pub(crate) timeout: Option<i64>,
    /// checkpoint_completion_target; the release's default if not given.
    pub(crate) completion_target: Option<f64>,
    /// Whether a request that comes while a checkpoint runs is lost: the server skips it if nothing
    /// was logged since that one's end.
    pub(crate) requests_lost: bool,
    /// How long a checkpoint takes at least, microseconds.
    pub(crate) least_micros: i64,
    /// Whether a backup that began in silence asked for its checkpoint at once, and copied then.
    pub(crate) backups_at_once: bool,
    /// By how many segments each request is served late: the checkpointer may still be asleep in the
    /// checkpoint before.
    pub(crate) late_segments: u64,
    /// How much later than asked for by volume a checkpoint begins, microseconds.
    pub(crate) late_micros: i64,
    /// How much later the clock asks for a checkpoint than it seems, microseconds.
    pub(crate) clock_off: i64,
    /// Whether WAL is written as soon as it is logged, not at a commit or when its buffers are full.
    pub(crate) unbuffered: bool,
    /// How checkpoints of the base are taken whose cause is not certain.
    pub(crate) reading: CauseReading,
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

impl Change {
    /// The option of the command line that asks for it, and a value that does.
    pub(crate) fn named(&self) -> (&'static str, String) {
        let switch = |on: &bool| if *on { "on" } else { "off" }.to_owned();
        let micros = |micros: i64| format!("{micros}us");
        match self {
            Change::Checkpoints(Checkpoints::At(places)) => {
                let places: Vec<String> = places.iter().map(Lsn::to_string).collect();
                ("redo-at", places.join(","))
            }
            Change::Checkpoints(checkpoints) => ("checkpoint-every", checkpoints.distance()),
            Change::MaxWalSize(bytes) => ("max-wal-size", bytes.to_string()),
            Change::CheckpointTimeout(time) => ("checkpoint-timeout", micros(*time)),
            Change::CompletionTarget(target) => {
                ("checkpoint-completion-target", target.to_string())
            }
            Change::Compression(codec) => ("wal-compression", codec_name(*codec).to_owned()),
            Change::FullPageWrites(on) => ("full-page-writes", switch(on)),
            Change::LogHints(on) => ("wal-log-hints", switch(on)),
            Change::Logical(on) => {
                ("wal-level", if *on { "logical" } else { "replica" }.to_owned())
            }
            Change::ArchiveTimeout(ArchiveTimeout::Off) => ("archive-timeout", "off".to_owned()),
            Change::ArchiveTimeout(ArchiveTimeout::After(time)) => {
                ("archive-timeout", micros(*time))
            }
            Change::SegmentBytes(bytes) => ("wal-segment-size", bytes.to_string()),
        }
    }
}

impl Checkpoints {
    /// How far apart they are.
    fn distance(&self) -> String {
        match self {
            Checkpoints::Factor(factor) => format!("{factor}x"),
            Checkpoints::Bytes(bytes) => bytes.to_string(),
            Checkpoints::Time(micros) => format!("{micros}us"),
            Checkpoints::Never => "none".to_owned(),
            Checkpoints::AsBase | Checkpoints::At(_) | Checkpoints::Timed(_) => "1x".to_owned(),
        }
    }
}

/// A codec as wal_compression names it.
pub(crate) fn codec_name(codec: Option<Compression>) -> &'static str {
    codec.map_or("off", Compression::name)
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
    pub(crate) compression: Option<Option<Compression>>,
    /// Whether wal_level is logical.
    pub logical: Option<bool>,
    /// archive_timeout, in place of all switches of the base.
    pub archive_timeout: Option<ArchiveTimeout>,
    /// wal_segment_size, bytes.
    pub(crate) segment_bytes: Option<u64>,
}

impl Settings {
    /// The same with one of them changed.
    pub(crate) fn change(&mut self, change: &Change) {
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
