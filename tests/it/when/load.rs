//! WAL made on purpose: rows, images, commits with times in and out of order, checkpoints that take
//! their time, clocks that jump. The same seed makes the same WAL.

use crate::common::builder::{Form, Wal};
use crate::common::record::{Block, Image, Rec, TRANSACTION, XLOG};
use crate::common::xorshift::Xorshift;
use walstat_format::lsn::Lsn;

/// 2026-01-01, in microseconds since 2000.
const BEGIN: i64 = 820_454_400_000_000;
/// Seconds from 1970 to 2000.
const EPOCH: i64 = 946_684_800;

/// What the load is like.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub seed: u64,
    pub records: u64,
    /// Microseconds from one record to the next, at most.
    pub pace: u64,
    /// One commit in so many records; 0: none.
    pub commits: u64,
    /// One checkpoint in so many records; 0: none.
    pub checkpoints: u64,
    /// One jump of the clock in so many records; 0: none.
    pub jumps: u64,
    /// Bytes of a row, at most, beside its images.
    pub bulk: u64,
}

impl Load {
    pub const PLAIN: Load = Load {
        seed: 7,
        records: 20_000,
        pace: 3000,
        commits: 6,
        checkpoints: 3000,
        jumps: 0,
        bulk: 120,
    };
}

struct Writer {
    wal: Wal,
    random: Xorshift,
    now: i64,
    /// Where the checkpoint at hand began, and its time.
    redo: Option<(Lsn, i64)>,
}

/// Writes it.
pub fn wal(form: Form, load: &Load) -> Wal {
    let random = Xorshift::new(load.seed);
    let mut writer = Writer { wal: Wal::new(form, 1), random, now: BEGIN, redo: None };
    for _ in 0..load.records {
        writer.step(load);
    }
    writer.wal
}

impl Writer {
    fn one_in(&mut self, count: u64) -> bool {
        count > 0 && self.random.below(count) == 0
    }

    fn step(&mut self, load: &Load) {
        self.now += self.random.below(load.pace + 1) as i64;
        if self.one_in(load.jumps) {
            let jumps = [-30_000_000, -3_600_000_000, 3_600_000_000, -86_400_000_000, 40_000_000];
            self.now += jumps[self.random.below(5) as usize];
        }
        if self.one_in(load.commits) {
            return self.commit();
        }
        let goes_on = self.redo.is_some();
        if self.one_in(if goes_on { load.checkpoints / 3 } else { load.checkpoints }) {
            return if goes_on { self.end_checkpoint() } else { self.begin_checkpoint() };
        }
        if !goes_on && self.one_in(load.checkpoints * 5) {
            let lsn = self.wal.next();
            self.checkpoint(0x00, lsn, self.now);
        }
        self.rows(load.bulk);
    }

    fn commit(&mut self) {
        let late = if self.one_in(3) { self.random.below(20_000) as i64 } else { 0 };
        let info = [0x00, 0x00, 0x00, 0x20, 0x30, 0x80][self.random.below(6) as usize];
        let mut record = Rec::new(TRANSACTION, info, 8 + 4 * self.random.below(4) as usize);
        record.main[..8].copy_from_slice(&(self.now - late).to_le_bytes());
        self.wal.add(&record);
    }

    fn rows(&mut self, bulk: u64) {
        let block = |random: &mut Xorshift, id: u8| {
            let relation = Some([1663, 5, 16384 + random.below(4) as u32]);
            let number = random.below(random.clone().below(200) + 1) as u32;
            let bytes = 1000 + random.below(7000) as u16;
            let hole = Some((500, 8192 - bytes));
            let image = (random.below(4) == 0).then_some(Image { bytes, hole, ..Image::WHOLE });
            let fork = if random.below(20) == 0 { 2 } else { 0 };
            Block { relation, number, image, fork, ..Block::new(id) }
        };
        let mut record = Rec::data(1 + self.random.below(bulk) as usize);
        for id in 0..self.random.below(3) as u8 {
            record.blocks.push(block(&mut self.random, id));
        }
        self.wal.add(&record);
    }

    fn begin_checkpoint(&mut self) {
        let lsn = if self.wal.form.version.pacing.marks_redo {
            self.wal.add(&Rec { xid: 0, ..Rec::new(XLOG, 0xE0, 4) })
        } else {
            self.wal.next()
        };
        self.redo = Some((lsn, self.now));
    }

    fn end_checkpoint(&mut self) {
        if let Some((redo, time)) = self.redo.take() {
            self.checkpoint(0x10, redo, time);
        }
    }

    fn checkpoint(&mut self, info: u8, redo: Lsn, time: i64) {
        let layout = self.wal.form.version.checkpoint;
        let mut record = Rec { xid: 0, ..Rec::new(XLOG, info, layout.bytes) };
        let seconds = time / 1_000_000 + EPOCH;
        let at = if layout.bytes == 80 { 56 } else { layout.bytes - 24 };
        record.main[..8].copy_from_slice(&redo.0.to_le_bytes());
        // ThisTimeLineID and PrevTimeLineID.
        record.main[8..16].copy_from_slice(&[1, 0, 0, 0, 1, 0, 0, 0]);
        record.main[at..at + 8].copy_from_slice(&seconds.to_le_bytes());
        self.wal.add(&record);
    }
}
