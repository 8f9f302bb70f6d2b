//! Why the base's checkpoints began: told by the same analysis as in a report, in the reading that makes the
//! trace.

use std::collections::BTreeMap;
use walstat_analyse::checkpoint::cause::{self, InferredSettings, Judged, Verdict};
use walstat_analyse::checkpoint::server::{KnownPace, Server};
use walstat_analyse::when::{Config, When};
use walstat_format::lsn::Lsn;

/// Why checkpoints began, by redo point.
#[derive(Debug, Clone, Default)]
pub(crate) struct Causes {
    verdicts: BTreeMap<Lsn, Verdict>,
    /// What their spacing says about the settings.
    pub(crate) shown: InferredSettings,
    /// What the server's settings are now, if that is known.
    pub(crate) pace: Option<KnownPace>,
    /// The same of its archive_timeout, in seconds.
    pub(crate) archive_timeout: Option<u64>,
}

/// What a scan has to observe for it.
pub(crate) fn observer() -> When {
    When::new(Config { cycles: true, ..Config::default() })
}

impl Causes {
    /// As WAL up to `end` tells.
    pub(crate) fn of(seen: When, end: Lsn, server: &Server) -> Causes {
        let found = seen.finish(end);
        let cycles = found.cycles.unwrap_or_default();
        let Judged { verdicts, settings: shown } = cause::judge(&cycles, &found.clock, server);
        let judged = cycles.cycles.iter().zip(verdicts);
        let verdicts = judged.filter_map(|(cycle, verdict)| Some((cycle.redo?, verdict?)));
        Causes {
            verdicts: verdicts.collect(),
            shown,
            pace: server.pace,
            archive_timeout: server.archive_timeout,
        }
    }

    /// Why the checkpoint with this redo point began.
    pub(crate) fn of_redo(&self, redo: Lsn) -> Option<Verdict> {
        self.verdicts.get(&redo).copied()
    }
}
