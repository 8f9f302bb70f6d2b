//! Checkpoint records (`CHECKPOINT_SHUTDOWN`, `CHECKPOINT_ONLINE`): the `CheckPoint` struct of
//! `src/include/catalog/pg_control.h`, laid out as [`CheckpointLayout`]
//! says. The same bytes are in `pg_control`.

use super::Time;
use crate::checkpoint_layout::{MultiOffset, NextXid};
use crate::cursor::{Cursor, at};
use crate::lsn::Lsn;
use serde::{Deserialize, Serialize};

pub use crate::checkpoint_layout::CheckpointLayout;

/// A checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Where recovery from this checkpoint begins.
    pub redo: Lsn,
    /// Timeline that goes on.
    pub timeline: u32,
    /// Timeline before; another one right after a promotion only.
    pub previous_timeline: u32,
    /// full_page_writes.
    pub full_page_writes: bool,
    /// wal_level as its number (17 and later): 0 minimal, 1 replica, 2 logical.
    pub wal_level: Option<u32>,
    /// The next xid with its epoch in the high half.
    pub next_xid: u64,
    /// The next oid.
    pub next_oid: u32,
    /// The next multixact, and where its members will lie.
    pub next_multixact: (u32, u64),
    /// The oldest xid that can still be looked up, in any database.
    pub oldest_xid: u32,
    /// The oldest multixact that can still be looked up, in any database.
    pub oldest_multixact: u32,
    /// When the checkpoint was begun.
    pub time: Time,
    /// The oldest running xid; 0 at a shutdown.
    pub oldest_active_xid: u32,
}

/// What initdb makes has lower numbers; a server that is started for others begins with this one
/// (`FirstNormalObjectId`).
pub const FIRST_NORMAL_OID: u32 = 16384;

impl Checkpoint {
    /// Whether it was made while initdb set the cluster up.
    pub fn is_of_initdb(&self) -> bool {
        self.next_oid < FIRST_NORMAL_OID
    }

    /// Reads the main data of a checkpoint record; `None` if it is too short.
    pub fn parse(main_data: &[u8], layout: CheckpointLayout) -> Option<Checkpoint> {
        let mut cursor = Cursor::new(main_data);
        let redo = Lsn(cursor.field()?);
        let (timeline, previous_timeline) = cursor.field()?;
        let full_page_writes = cursor.field()?;
        let mut cursor = Cursor::new(main_data.get(layout.next_oid..)?);
        let next_oid = cursor.field()?;
        let next_multixact = (cursor.field()?, multi_offset(&mut cursor, layout)?);
        // Each of the oldest is followed by its database.
        let (oldest_xid, _): (u32, u32) = cursor.field()?;
        let (oldest_multixact, _): (u32, u32) = cursor.field()?;
        // The oldest and the newest xid with a commit timestamp lie between.
        let oldest_active_xid = at(main_data, layout.time + 16)?;
        Some(Checkpoint {
            redo,
            timeline,
            previous_timeline,
            full_page_writes,
            wal_level: layout.wal_level.and_then(|offset| at(main_data, offset)),
            next_xid: next_xid(main_data, layout)?,
            next_oid,
            next_multixact,
            oldest_xid,
            oldest_multixact,
            time: Time::from_pg_time(at(main_data, layout.time)?),
            oldest_active_xid,
        })
    }
}

fn next_xid(main_data: &[u8], layout: CheckpointLayout) -> Option<u64> {
    match layout.next_xid {
        NextXid::Full(offset) => at(main_data, offset),
        NextXid::EpochFirst(offset) => {
            let (epoch, xid): (u32, u32) = at(main_data, offset)?;
            Some(u64::from(epoch) << 32 | u64::from(xid))
        }
    }
}

fn multi_offset(cursor: &mut Cursor<'_>, layout: CheckpointLayout) -> Option<u64> {
    match layout.multi_offset {
        MultiOffset::Four => cursor.field::<u32>().map(u64::from),
        MultiOffset::Eight => cursor.field(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A checkpoint whose numbers say where they were written.
    fn checkpoint(layout: CheckpointLayout) -> Vec<u8> {
        let mut data = vec![0xEEu8; layout.bytes];
        let mut put = |at: usize, bytes: &[u8]| data[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &0x1234u64.to_le_bytes());
        put(8, &7u32.to_le_bytes());
        put(12, &6u32.to_le_bytes());
        put(16, &[1]);
        put(20, &2u32.to_le_bytes());
        match layout.next_xid {
            NextXid::EpochFirst(at) => put(at, &[3, 0, 0, 0, 100, 0, 0, 0]),
            NextXid::Full(at) => put(at, &[100, 0, 0, 0, 3, 0, 0, 0]),
        }
        let wide = matches!(layout.multi_offset, MultiOffset::Eight);
        let offset = [21u32, 0];
        let words = [&[16384, 20][..], &offset[..1 + usize::from(wide)], &[50, 1, 10, 1]].concat();
        for (index, word) in words.iter().enumerate() {
            put(layout.next_oid + index * 4, &word.to_le_bytes());
        }
        put(layout.time, &1_500_000_000i64.to_le_bytes());
        put(layout.time + 16, &90u32.to_le_bytes());
        data
    }

    #[test]
    fn fields_are_found_in_each_layout() {
        let layouts = [
            (CheckpointLayout::V9_5, None),
            (CheckpointLayout::V12, None),
            (CheckpointLayout::V17, Some(2)),
            (CheckpointLayout::V19, Some(2)),
        ];
        for (layout, wal_level) in layouts {
            let data = checkpoint(layout);
            let want = Checkpoint {
                redo: Lsn(0x1234),
                timeline: 7,
                previous_timeline: 6,
                full_page_writes: true,
                wal_level,
                next_xid: 3 << 32 | 100,
                next_oid: 16384,
                next_multixact: (20, 21),
                oldest_xid: 50,
                oldest_multixact: 10,
                time: Time(1_500_000_000_000_000),
                oldest_active_xid: 90,
            };
            assert_eq!(Checkpoint::parse(&data, layout), Some(want));
            assert_eq!(Checkpoint::parse(&data[..layout.time + 19], layout), None);
        }
    }
}
