//! Where the fields of a checkpoint record lie, by release (`CheckPoint` in
//! `src/include/catalog/pg_control.h`, which changed in 12, 17 and 19). What they mean is in
//! [`crate::payload::checkpoint`].

/// Where the fields that move lie in the main data.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointLayout {
    /// Size of the struct, its padding included; bytes.
    pub bytes: usize,
    pub(crate) wal_level: Option<usize>,
    pub(crate) next_xid: NextXid,
    pub(crate) next_oid: usize,
    pub(crate) multi_offset: MultiOffset,
    pub(crate) time: usize,
}

/// How the next xid is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NextXid {
    /// Its epoch, then the xid, each of 4 bytes.
    EpochFirst(usize),
    /// One number of 8 bytes.
    Full(usize),
}

/// How long the offset of the next multixact's members is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum MultiOffset {
    Four,
    Eight,
}

impl CheckpointLayout {
    /// 9.5 to 11.
    pub const V9_5: CheckpointLayout = CheckpointLayout {
        bytes: 80,
        wal_level: None,
        next_xid: NextXid::EpochFirst(20),
        next_oid: 28,
        multi_offset: MultiOffset::Four,
        time: 56,
    };
    /// 12 to 16.
    pub const V12: CheckpointLayout = CheckpointLayout {
        bytes: 88,
        wal_level: None,
        next_xid: NextXid::Full(24),
        next_oid: 32,
        multi_offset: MultiOffset::Four,
        time: 64,
    };
    /// 17 and 18: what was padding is wal_level.
    pub const V17: CheckpointLayout = CheckpointLayout { wal_level: Some(20), ..Self::V12 };
    /// 19.
    pub const V19: CheckpointLayout = CheckpointLayout {
        bytes: 96,
        wal_level: Some(20),
        next_xid: NextXid::Full(32),
        next_oid: 40,
        multi_offset: MultiOffset::Eight,
        time: 72,
    };
}
