//! What is known of a server beside its WAL, as far as causes of checkpoints go.

use walstat_format::version::Version;

/// A server.
#[derive(Debug, Clone, Copy)]
pub struct Server {
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// The release.
    pub version: &'static Version,
    /// When its settings begin checkpoints, if they are known.
    pub pace: Option<KnownPace>,
    /// Its `archive_timeout` in seconds, 0 for none, if it is known.
    pub archive_timeout: Option<u64>,
}

/// What settings say about when a checkpoint begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownPace {
    /// `checkpoint_timeout`, in seconds.
    pub timeout: i64,
    /// Segments after which the volume begins one.
    pub segments: u64,
}
