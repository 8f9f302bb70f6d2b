//! What the WAL between two checkpoints says about why the second one began.

use crate::analyse::tape::{CheckpointSeen, Event, FilesChange, Placed};
use crate::wal::lsn::Lsn;

/// How the oids that a checkpoint knows of compare with those that may have been handed out.
///
/// A server takes oids in stocks and writes down how far the stock reaches. A server that stops
/// in good order gives back what is left of its stock; one that crashed has lost it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Oids {
    /// It cannot be told: no stock was taken.
    #[default]
    Unknown,
    /// What was left was given back.
    GivenBack,
    /// What was left is lost.
    Lost,
}

/// What there was to see since the checkpoint before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Signs {
    /// What became of the stock of oids.
    pub oids: Oids,
    /// A torn record was replaced.
    pub overwrite: bool,
    /// Recovery has ended, with a record of its own.
    pub end_of_recovery: bool,
    /// The record directly before the checkpoint's is a switch to the next segment.
    pub after_switch: bool,
    /// Files of a database were copied: where.
    pub copied: Option<Lsn>,
    /// Records are missing: another checkpoint may have begun among them.
    pub lost: bool,
}

/// Watches out for signs.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    signs: Signs,
    /// How far oids may have been handed out.
    stock: Option<u32>,
    /// Whether a stock was taken since the server was started.
    is_taken: bool,
    /// The last switch to the next segment.
    switch: Option<Lsn>,
}

impl Watch {
    /// Takes note of an event.
    pub fn event(&mut self, placed: &Placed) {
        match &placed.event {
            Event::NextOid(oid) => (self.stock, self.is_taken) = (Some(*oid), true),
            Event::Overwrite(_) => self.signs.overwrite = true,
            // A server that was promoted has no stock yet.
            Event::EndOfRecovery(_) => {
                (self.signs.end_of_recovery, self.is_taken) = (true, false);
            }
            Event::Files(FilesChange::Copied) => self.signs.copied = Some(placed.lsn),
            Event::Switch => self.switch = Some(placed.lsn),
            Event::Lost => self.signs.lost = true,
            _ => {}
        }
    }

    /// What there was to see up to a checkpoint's record; begins anew.
    pub fn since_checkpoint(&mut self, seen: &CheckpointSeen) -> Signs {
        let next = seen.says.next_oid;
        let mut signs = std::mem::take(&mut self.signs);
        signs.oids = match (self.is_taken, self.stock) {
            // A server may have stopped, or crashed, in what is missing.
            _ if signs.lost => Oids::Unknown,
            (_, Some(stock)) if seen.is_shutdown && next < stock => Oids::GivenBack,
            (true, Some(stock)) if seen.is_shutdown && next == stock => Oids::Lost,
            _ => Oids::Unknown,
        };
        signs.after_switch = self.switch == Some(seen.previous);
        self.stock = Some(next);
        self.is_taken &= !seen.is_shutdown;
        signs
    }
}
