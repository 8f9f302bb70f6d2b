//! What a checkpoint's cause was told from: numbers, no words. The report says it in English.

/// What a checkpoint's cause was told from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// A base backup started from its redo point.
    BackupFromRedoPoint,
    /// It is the first one after an END_OF_RECOVERY record.
    AfterEndOfRecovery,
    /// This timeline begins with it.
    BeginsTimeline(u32),
    /// A record torn by a crash was replaced before it.
    TornRecordReplaced,
    /// A checkpoint had begun before it and never ended; a server that stops ends it first.
    CheckpointNeverEnded,
    /// So many transactions before it never ended.
    TransactionsNeverEnded(usize),
    /// The server gave back the oids that it had in stock, as one that stops does.
    OidsGivenBack,
    /// The server lost the oids that it had in stock, as one that crashed has.
    OidsLost,
    /// Its record follows directly after a switch to the next segment.
    AfterSwitch,
    /// Nothing was written after it.
    NothingAfterIt,
    /// It is a shutdown checkpoint, and nothing tells whether the server stopped or had recovered.
    ShutdownCheckpoint,
    /// A database was copied directly before it.
    AfterDatabaseCopied,
    /// A database was copied directly after it.
    BeforeDatabaseCopied,
    /// A database was dropped directly after it.
    BeforeDatabaseDropped,
    /// It began in the segment of the previous checkpoint, and sooner than any checkpoint_timeout.
    NeitherTimeNorVolume {
        /// Seconds since the checkpoint before began.
        seconds: i64,
    },
    /// Others were further apart, in time and in segments.
    SoonerThanOthers {
        /// Seconds since the checkpoint before began.
        seconds: i64,
        /// Segments since the checkpoint before.
        segments: u64,
    },
    /// Its segment had begun so long before; the volume begins one as soon as a segment is full.
    LateInSegment {
        /// Seconds since then, at least.
        seconds: i64,
    },
    /// The same, and it was spread out while others wrote, which nobody waits for.
    SpreadLateInSegment {
        /// Seconds since then, at least.
        seconds: i64,
    },
    /// Nothing was written since the previous checkpoint, and then neither time nor volume begins one.
    NothingBefore,
    /// It was complete when next to nothing had been written, although others went on to write.
    DoneAtOnce {
        /// Bytes that were written meanwhile.
        bytes: u64,
    },
    /// It took its time while others wrote, too soon for any checkpoint_timeout.
    TookItsTime {
        /// Seconds since the checkpoint before began.
        seconds: i64,
        /// Segments since the checkpoint before.
        segments: u64,
    },
    /// Too soon for any checkpoint_timeout, while others went on to write.
    UnderLoad {
        /// Seconds since the checkpoint before began.
        seconds: i64,
        /// Segments since the checkpoint before.
        segments: u64,
        /// How many checkpoints were like that, this one included.
        checkpoints: usize,
    },
    /// checkpoint_timeout was over, by the server's settings.
    TimeoutOver {
        /// Seconds since the checkpoint before began.
        seconds: i64,
        /// The setting, in seconds.
        timeout: i64,
    },
    /// The segments were full that max_wal_size allows, by the server's settings.
    SegmentsFilled {
        /// Segments since the checkpoint before.
        segments: u64,
        /// So many begin one.
        needed: u64,
    },
    /// By the server's settings neither time nor volume can have begun it.
    SettingsExclude {
        /// Seconds since the checkpoint before began.
        seconds: i64,
        /// The setting checkpoint_timeout, in seconds.
        timeout: i64,
        /// Segments since the checkpoint before.
        segments: u64,
        /// So many begin one.
        needed: u64,
    },
    /// Others were as far apart in time; or it is the only one, and people set such a timeout.
    RegularTime {
        /// Seconds since the checkpoint before began.
        seconds: i64,
        /// How many checkpoints were so far apart, this one included.
        checkpoints: usize,
    },
    /// Others were as far apart in segments; or it is the only one, and began with a segment.
    RegularVolume {
        /// Segments since the checkpoint before.
        segments: u64,
        /// How many checkpoints were so far apart, this one included.
        checkpoints: usize,
        /// The setting for which a checkpoint begins after so many segments.
        max_wal_size: MaxWalSize,
    },
}

/// Between what the setting max_wal_size lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxWalSize {
    /// It is that much at least.
    pub least_bytes: u64,
    /// It is less than that.
    pub most_bytes: u64,
}
