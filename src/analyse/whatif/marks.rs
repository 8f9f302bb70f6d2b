//! Records that mean something to the simulation beyond the blocks they refer to.

use super::blocks::Blocks;
use super::running::Running;
use super::trace::Mark;
use super::whole::Whole;
use crate::wal::cursor::at;
use crate::wal::lsn::Lsn;
use crate::wal::payload::checkpoint::Checkpoint;
use crate::wal::payload::prepare::Prepare;
use crate::wal::payload::seq::Sequence;
use crate::wal::payload::standby::RUNNING_XACTS;
use crate::wal::payload::xact::{self, End};
use crate::wal::payload::xlog::{
    CHECKPOINT_REDO, FPI, FPI_FOR_HINT, FPW_CHANGE, PARAMETER_CHANGE, ParameterChange,
    full_page_writes,
};
use crate::wal::rmgr::{
    SEQUENCE, STANDBY, TRANSACTION, XLOG, XLOG_BACKUP_END, XLOG_CHECKPOINT_ONLINE,
    XLOG_CHECKPOINT_SHUTDOWN,
};

/// Forks of the free space map and the visibility map.
const MAPS: [u8; 2] = [1, 2];

/// Whether a record is written for a change of hint bits.
pub fn is_hint(record: &Whole<'_>) -> bool {
    record.header.rmgr == XLOG && record.info() == FPI_FOR_HINT
}

/// What a record means, if anything. `running`: transactions that have an xid and have not ended.
pub fn of(record: &Whole<'_>, running: &mut Running, blocks: &mut Blocks) -> Option<Mark> {
    match record.header.rmgr {
        XLOG => xlog(record),
        TRANSACTION => transaction(record, running, blocks),
        STANDBY if record.info() == RUNNING_XACTS => Some(Mark::Running),
        SEQUENCE => {
            let fork = blocks.fork_of(record.blocks.first()?);
            let logged = Sequence::parse(record.main_data())?;
            logged.is_called(record.version).filter(|called| *called)?;
            let value = logged.last_value(record.version)?;
            Some(Mark::Sequence { fork, value, sequence: 0 })
        }
        _ => None,
    }
}

fn xlog(record: &Whole<'_>) -> Option<Mark> {
    let main = record.main_data();
    match record.info() {
        _ if record.header.is_switch() => Some(Mark::Switch),
        info @ (XLOG_CHECKPOINT_ONLINE | XLOG_CHECKPOINT_SHUTDOWN) => {
            let checkpoint = Checkpoint::parse(main, record.version.checkpoint)?;
            Some(Mark::Checkpoint {
                redo: checkpoint.redo,
                online: info == XLOG_CHECKPOINT_ONLINE,
                full_page_writes: checkpoint.full_page_writes,
                time: checkpoint.time,
            })
        }
        CHECKPOINT_REDO => Some(Mark::Redo),
        FPI_FOR_HINT => {
            let is_main = record.blocks.first().is_some_and(|block| block.fork == 0);
            Some(Mark::Hint { is_main })
        }
        // Vacuum has no xid; whoever copies a map has one.
        FPI if record.header.xid == 0 => {
            let is_map = record.blocks.first().is_some_and(|block| MAPS.contains(&block.fork));
            is_map.then_some(Mark::MapTruncated)
        }
        XLOG_BACKUP_END => at(main, 0).map(|start| Mark::BackupEnd { start: Lsn(start) }),
        FPW_CHANGE => full_page_writes(main).map(Mark::FullPageWrites),
        PARAMETER_CHANGE => {
            let change = ParameterChange::parse(main, record.version)?;
            Some(Mark::Parameters { log_hints: change.wal_log_hints })
        }
        _ => None,
    }
}

fn transaction(record: &Whole<'_>, running: &mut Running, blocks: &mut Blocks) -> Option<Mark> {
    let main = record.main_data();
    if record.info() & xact::OPCODE_MASK == xact::PREPARE {
        // Prepared transactions stay in the snapshots.
        Prepare::parse(main, record.version)?;
        return None;
    }
    let end = End::parse(record.header.info, main, record.version)?;
    let xid = end.prepared_xid.unwrap_or(record.header.xid);
    let count = running.end(xid, end.subxids.iter(), end.commits);
    end.dropped.iter().for_each(|relation| blocks.forget(relation));
    end.commits.then_some(Mark::Commit { time: end.time, running: count })
}
