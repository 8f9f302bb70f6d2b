//! Why the base's checkpoints began: told by the same analysis as in a report, in the reading that makes the
//! trace.

use std::collections::BTreeMap;
use walstat_analyse::checkpoint::cause::{self, Settings, Verdict};
use walstat_analyse::checkpoint::server::Server;
use walstat_analyse::when::{Config, When};
use walstat_format::lsn::Lsn;
use walstat_format::version::Version;

/// Why checkpoints began, by redo point.
#[derive(Debug, Clone, Default)]
pub struct Causes {
    verdicts: BTreeMap<Lsn, Verdict>,
    /// What their spacing says about the settings.
    pub shown: Settings,
}

/// What a scan has to observe for it.
pub fn observer() -> When {
    When::new(Config { cycles: true, ..Config::default() })
}

impl Causes {
    /// As WAL up to `end` tells.
    pub fn of(seen: When, end: Lsn, segment_bytes: u64, version: &'static Version) -> Causes {
        let found = seen.finish(end);
        let cycles = found.cycles.unwrap_or_default();
        let server = Server { segment_bytes, version, pace: None };
        let (verdicts, shown) = cause::judge(&cycles, &found.clock, &server);
        let judged = cycles.cycles.iter().zip(verdicts);
        let verdicts = judged.filter_map(|(cycle, verdict)| Some((cycle.redo?, verdict?)));
        Causes { verdicts: verdicts.collect(), shown }
    }

    /// Why the checkpoint with this redo point began.
    pub fn of_redo(&self, redo: Lsn) -> Option<Verdict> {
        self.verdicts.get(&redo).copied()
    }
}
