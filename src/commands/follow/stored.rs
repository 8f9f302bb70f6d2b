//! `--state`: where following stopped, in a file that is written whole, and left as it is where it does not
//! belong to the WAL.

use crate::failure::Failure;
use crate::output::write_bytes;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use walstat_read::follow::{Follower, StartAt};
use walstat_read::input::limited;
use walstat_read::input::plan::Plan;
use walstat_report::follow::Reporter;
use walstat_report::follow::state::State;
use walstat_report::model::follow::HappeningRow;

/// One with all the rows that are remembered has some 30 MB.
const STATE_BYTES_MAX: u64 = 1 << 30;

/// A state's file, and what it says.
pub struct Stored {
    path: PathBuf,
    state: Option<State>,
}

impl Stored {
    /// Reads the file, if it is there.
    pub fn read(path: &Path) -> Result<Stored, Failure> {
        let shown = path.display();
        let state = match read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(Failure::Usage(format!("{shown}: {error}"))),
            Ok(text) => {
                let read = State::parse(&text);
                Some(read.map_err(|reason| Failure::Usage(format!("{shown}: {reason}")))?)
            }
        };
        Ok(Stored { path: path.to_owned(), state })
    }

    /// Where it stopped.
    pub fn start(&self) -> Option<StartAt> {
        let before =
            |state: &State| StartAt::Before { position: state.position, timeline: state.timeline };
        self.state.as_ref().map(before)
    }

    /// What happened and could not be told, by the names of those it is to be told to.
    pub fn take_untold(&mut self) -> BTreeMap<String, Vec<HappeningRow>> {
        self.state.as_mut().map(|state| std::mem::take(&mut state.untold)).unwrap_or_default()
    }

    /// Refuses the state of another cluster.
    pub fn check(&self, plan: &Plan) -> Result<(), Failure> {
        let Some(state) = &self.state else { return Ok(()) };
        let (found, expected) = (state.system_identifier, plan.geometry.system_identifier);
        if found == expected {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "{}: found the state of cluster {found}, expected {expected}, that of the WAL",
            self.path.display()
        )))
    }

    /// Goes on there.
    pub fn go_on(self, reporter: &mut Reporter, follower: &mut Follower) {
        if let Some(state) = self.state {
            reporter.go_on(state, follower);
        }
    }
}

/// The bytes of a state, which lies on disk whatever its path looks like: it is written there.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    limited::read_on(File::open(path)?, STATE_BYTES_MAX, &mut bytes)?;
    Ok(bytes)
}

/// Writes a state.
pub fn write(path: &Path, state: &State) -> Result<(), Failure> {
    write_bytes(Some(path), &state.text())
}
