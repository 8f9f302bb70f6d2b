//! Where following stopped, and what had been counted: written whole, and read back.

use super::super::model::follow::HappeningRow;
use super::family::Family;
use super::{Owner, Reporter};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use walstat_analyse::follow::{Following, Stored};
use walstat_analyse::totals::Totals;
use walstat_format::block::RelFileLocator;
use walstat_format::lsn::Lsn;
use walstat_format::rmgr::RecordType;
use walstat_read::follow::Follower;
use walstat_read::scan::run::Last;

/// The version of the form.
const VERSION: u32 = 1;

/// What is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct State {
    /// The version of this form, first.
    walstat_follow_state: u32,
    /// The cluster.
    pub system_identifier: u64,
    /// The timeline that was read last.
    pub timeline: u32,
    /// Where the first counted record starts.
    start: Lsn,
    /// After the last counted record.
    pub position: Lsn,
    lost_bytes: u64,
    /// The record before the position.
    #[serde(default)]
    last: Option<Last>,
    records: Vec<(u8, u8, Totals)>,
    tables: Family,
    kinds: Family,
    owners: Vec<(RelFileLocator, Owner)>,
    redo: Option<Lsn>,
    /// Transactions that go on.
    #[serde(default)]
    open: Stored,
    /// What happened and could not be told yet, by the names of those it is to be told to.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub untold: BTreeMap<String, Vec<HappeningRow>>,
    /// The last key: what is cut off has it not.
    end: bool,
}

/// What a file of another form says.
#[derive(Deserialize)]
struct Form {
    walstat_follow_state: Option<u32>,
}

impl State {
    /// Reads a state back.
    ///
    /// # Errors
    ///
    /// What was found, and what was expected.
    pub fn parse(text: &[u8]) -> Result<State, String> {
        let form = serde_json::from_slice::<Form>(text)
            .map_err(|error| format!("found {error}, expected a whole state of walstat follow"))?;
        match form.walstat_follow_state {
            Some(VERSION) => {}
            Some(newer) => {
                return Err(format!(
                    "found version {newer} of a state, expected version {VERSION}"
                ));
            }
            None => return Err("found another file, expected a state of walstat follow".to_owned()),
        }
        serde_json::from_slice(text)
            .map_err(|error| format!("found {error}, expected a whole state of walstat follow"))
    }

    /// The state as it is stored.
    pub fn text(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl Reporter {
    /// Where it stands, right after a telling.
    pub fn state(&self, follower: &mut Follower) -> State {
        let counted = follower.counted(|following: &mut Following| {
            let rows = following.records.rows();
            let records = rows.map(|(of, totals)| (of.rmgr, of.slot, *totals)).collect();
            (records, following.open_to_store(), following.marks.ended())
        });
        let (records, open, redo) = counted.unwrap_or_default();
        State {
            walstat_follow_state: VERSION,
            system_identifier: self.cluster,
            timeline: follower.timeline(),
            start: follower.start(),
            position: follower.position(),
            lost_bytes: follower.lost_bytes(),
            last: follower.last(),
            records,
            tables: self.tables.clone(),
            kinds: self.kinds.clone(),
            owners: self.owners.iter().map(|(file, owner)| (*file, owner.clone())).collect(),
            redo,
            open,
            untold: BTreeMap::new(),
            end: true,
        }
    }

    /// Goes on where another one stopped.
    pub fn go_on(&mut self, state: State, follower: &mut Follower) {
        follower.go_on(state.start, state.lost_bytes, state.last);
        follower.counted(|following: &mut Following| {
            for (rmgr, slot, totals) in &state.records {
                following.records.add(RecordType { rmgr: *rmgr, slot: *slot }, totals);
            }
            state.redo.into_iter().for_each(|redo| following.marks.begin_at(redo));
            following.go_on(state.open.clone());
        });
        (self.tables, self.kinds) = (state.tables, state.kinds);
        self.tells_checkpoints = state.redo.is_some();
        self.owners = state.owners.into_iter().collect();
    }
}
