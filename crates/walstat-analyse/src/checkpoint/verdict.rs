//! The verdict on a checkpoint: why it began, how sure that is, and on what evidence. The judging itself is
//! in `cause.rs`.

use super::evidence::Evidence;

named! {
    /// Why a checkpoint began.
    pub enum Cause {
        Time "time" "checkpoint_timeout was over";
        Wal "wal" "as much WAL was written as max_wal_size allows";
        Requested "requested" "somebody asked for it: CHECKPOINT, a base backup, CREATE or DROP DATABASE";
        Shutdown "shutdown" "the server stopped";
        EndOfRecovery "end_of_recovery" "the server had recovered, after a crash or by a promotion";
        ShutdownOrRecovery "shutdown_or_recovery"
            "the server stopped, or had recovered after a crash: the same record is written for both";
    }
}

named! {
    /// How sure that is.
    pub enum Confidence {
        Possible "possible" "it fits, and so may something else";
        Likely "likely" "anything else would be a strange coincidence";
        Certain "certain" "the WAL says so, or leaves no other cause";
    }
}

/// Why, how sure, and from what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// Why.
    pub cause: Cause,
    /// How sure.
    pub confidence: Confidence,
    /// From what.
    pub evidence: Evidence,
}

impl Verdict {
    /// Whether it is more than possible: reports count and settings move only what is.
    pub fn is_sure(&self) -> bool {
        self.confidence > Confidence::Possible
    }
}

/// What a judge says.
pub(super) fn verdict(cause: Cause, confidence: Confidence, evidence: Evidence) -> Option<Verdict> {
    Some(Verdict { cause, confidence, evidence })
}
