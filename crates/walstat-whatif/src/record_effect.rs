//! Records that mean something to the simulation beyond the blocks they refer to.

use super::blocks::Blocks;
use super::running_transactions::RunningTransactions;
use super::trace::RecordEffect;
use super::whole_record::WholeRecord;
use walstat_format::cursor::at;
use walstat_format::fork::Fork;
use walstat_format::lsn::Lsn;
use walstat_format::payload::checkpoint::Checkpoint;
use walstat_format::payload::prepare::Prepare;
use walstat_format::payload::seq::Sequence;
use walstat_format::payload::standby::RUNNING_XACTS;
use walstat_format::payload::truncate::{TRUNCATE, Truncate};
use walstat_format::payload::xact;
use walstat_format::payload::xact::End;
use walstat_format::payload::xlog::{
    BACKUP_END, CHECKPOINT_ONLINE, CHECKPOINT_REDO, CHECKPOINT_SHUTDOWN, FPI, FPI_FOR_HINT,
    FPW_CHANGE, PARAMETER_CHANGE, ParameterChange, full_page_writes,
};
use walstat_format::rmgr::{SEQUENCE, STANDBY, STORAGE, TRANSACTION, XLOG};

/// Forks of the free space map and the visibility map.
const MAPS: [u8; 2] = [Fork::Fsm as u8, Fork::Vm as u8];

/// Whether a record is written for a change of hint bits.
pub(crate) fn is_hint(record: &WholeRecord<'_>) -> bool {
    record.header.rmgr == XLOG && record.info() == FPI_FOR_HINT
}

/// What a record means, if anything. `running`: transactions that have an xid and have not ended.
pub(crate) fn of(
    record: &WholeRecord<'_>,
    running: &mut RunningTransactions,
    blocks: &mut Blocks,
    page_bytes: usize,
) -> Option<RecordEffect> {
    match record.header.rmgr {
        XLOG => xlog(record),
        TRANSACTION => transaction(record, running, blocks),
        STORAGE => {
            truncate(record, blocks, page_bytes as u32);
            None
        }
        STANDBY if record.info() == RUNNING_XACTS => Some(RecordEffect::RunningXacts),
        SEQUENCE => {
            let fork = blocks.fork_of(record.blocks.first()?);
            let logged = Sequence::parse(record.main_data())?;
            logged.is_called(record.version).filter(|called| *called)?;
            let value = logged.last_value(record.version)?;
            Some(RecordEffect::Sequence { fork, value, sequence: 0 })
        }
        _ => None,
    }
}

fn xlog(record: &WholeRecord<'_>) -> Option<RecordEffect> {
    let main = record.main_data();
    match record.info() {
        _ if record.header.is_switch() => Some(RecordEffect::Switch),
        info @ (CHECKPOINT_ONLINE | CHECKPOINT_SHUTDOWN) => {
            let checkpoint = Checkpoint::parse(main, record.version.checkpoint)?;
            Some(RecordEffect::Checkpoint {
                redo: checkpoint.redo,
                online: info == CHECKPOINT_ONLINE,
                full_page_writes: checkpoint.full_page_writes,
                time: checkpoint.time,
            })
        }
        CHECKPOINT_REDO => Some(RecordEffect::Redo),
        FPI_FOR_HINT => {
            let is_main = record.blocks.first().is_some_and(|block| block.fork == 0);
            Some(RecordEffect::Hint { is_main })
        }
        // Vacuum has no xid; whoever copies a map has one.
        FPI if record.header.xid == 0 => {
            let is_map = record.blocks.first().is_some_and(|block| MAPS.contains(&block.fork));
            is_map.then_some(RecordEffect::MapTruncated)
        }
        BACKUP_END => at(main, 0).map(|start| RecordEffect::BackupEnd { start: Lsn(start) }),
        FPW_CHANGE => full_page_writes(main).map(RecordEffect::FullPageWrites),
        PARAMETER_CHANGE => {
            let change = ParameterChange::parse(main, record.version)?;
            Some(RecordEffect::Parameters { log_hints: change.wal_log_hints })
        }
        _ => None,
    }
}

/// Pages of the maps that are cut off with their table are new when they come again.
fn truncate(record: &WholeRecord<'_>, blocks: &mut Blocks, page_bytes: u32) {
    let is_truncate = record.info() == TRUNCATE;
    let Some(cut) = Truncate::parse(record.main_data()).filter(|_| is_truncate) else { return };
    let maps = [
        (Fork::Fsm, cut.free_space_pages(page_bytes)),
        (Fork::Vm, cut.visibility_pages(page_bytes, record.version)),
    ];
    for (fork, left) in maps {
        if let Some(left) = left {
            blocks.truncate(cut.relation, fork as u8, left);
        }
    }
}

fn transaction(
    record: &WholeRecord<'_>,
    running: &mut RunningTransactions,
    blocks: &mut Blocks,
) -> Option<RecordEffect> {
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
    end.commits.then_some(RecordEffect::Commit { time: end.time, running: count })
}
