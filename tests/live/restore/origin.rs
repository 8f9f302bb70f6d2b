//! The archive as it should be, and the base backup that it is restored onto: made once by real
//! servers. Two servers write it: a standby is promoted, and the old primary goes on.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::third;
use crate::archiving::{Files, files_of, insert, primary_with_backup, wait_for_archiver};
use crate::cluster::Cluster;
use crate::server::{Server, give_to_server_user};
use crate::shell::shell;
use crate::wait::wait;

/// Bytes of a segment.
pub const SEGMENT: usize = 1 << 20;

/// Where a record lies in the plain bytes of its segment.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// First byte.
    pub offset: usize,
    /// `xl_tot_len`.
    pub bytes: usize,
}

/// What all cases start from.
pub struct Origin {
    home: TempDir,
    /// The server that restores.
    pub server: Server,
    /// All files of the archive of two timelines.
    pub files: Files,
    /// What timeline 3 adds that follows timeline 2.
    pub third: Files,
    /// What timeline 3 adds that was restored to a point in timeline 1.
    pub rewound: Files,
    /// The same where the server followed the newest timeline, to a point before that begins.
    pub earlier: Files,
    /// Records that start in a segment, by the segment's name.
    pub records: BTreeMap<String, Vec<Place>>,
    /// The last segment before the one in which timeline 2 begins.
    pub before_switch: u64,
    /// Where timeline 2 begins.
    pub switch: u64,
}

/// `TTTTTTTT0000000000000NNN`: the numbers stay small.
pub fn segment(timeline: u32, number: u64) -> String {
    format!("{timeline:08X}{:08X}{:08X}", number / 4096, number % 4096)
}

/// Timeline and number of a complete segment's name.
pub fn parse(name: &str) -> Option<(u32, u64)> {
    let is_name = name.len() == 24 && name.bytes().all(|b| b.is_ascii_hexdigit());
    let part = |range| u64::from_str_radix(name.get(range)?, 16).ok();
    is_name.then_some(())?;
    Some((u32::try_from(part(0..8)?).ok()?, part(8..16)? * 4096 + part(16..24)?))
}

/// The name of timeline 2's history.
pub const HISTORY: &str = "00000002.history";

impl Origin {
    /// Makes everything. `None`, said loudly: there is no server.
    pub fn make() -> Option<Origin> {
        let server = Server::debian_15()?;
        let home = tempfile::Builder::new().prefix("walstat-restore-").tempdir().expect("a folder");
        give_to_server_user(home.path());
        install_fetch(home.path());
        shell(home.path(), "mkdir archive cases");
        write_archive(&server, home.path());
        fs::copy(program(), home.path().join("walstat")).expect("a copy");
        let files = files_of(&home.path().join("archive")).0;
        let switch = switch_point(&files);
        let before_switch = switch / SEGMENT as u64 - 1;
        let records = records(&server, &home.path().join("archive"), &files);
        let third = third::timeline(&server, home.path(), "third", "");
        let (high, low) = (0, (before_switch - 1) * SEGMENT as u64 + 600_000);
        let point = format!(
            "recovery_target_action = 'promote'\nrecovery_target_lsn = '{high:X}/{low:X}'\n"
        );
        let earlier = third::timeline(&server, home.path(), "earlier", &point);
        let point = format!("{point}recovery_target_timeline = '1'");
        let rewound = third::timeline(&server, home.path(), "rewound", &point);
        let origin =
            Origin { home, server, files, third, rewound, earlier, records, before_switch, switch };
        origin.is_as_intended();
        Some(origin)
    }

    /// The folder of everything; the servers' user may write there.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// A new folder in which the servers' user may write.
    pub fn scratch(&self, name: &str) -> PathBuf {
        let folder = self.home.path().join("cases").join(name);
        fs::create_dir(&folder).expect("a new folder");
        give_to_server_user(&folder);
        folder
    }

    /// Numbers of the complete segments of a timeline, ascending.
    pub fn numbers(&self, timeline: u32) -> Vec<u64> {
        let all = self.files.keys().filter_map(|name| parse(name));
        all.filter(|(t, _)| *t == timeline).map(|(_, number)| number).collect()
    }

    /// What the cases rely on: it is a test of this file, not of walstat.
    fn is_as_intended(&self) {
        let (old, new) = (self.numbers(1), self.numbers(2));
        let switch = self.before_switch + 1;
        assert!(old.len() >= 6 && old.windows(2).all(|w| w[0] + 1 == w[1]), "{old:?}");
        assert!(new.len() >= 3 && new[0] == switch, "{new:?} begins with {switch}");
        assert!(*old.last().expect("segments") > switch, "the old server went on");
        assert!(self.files.contains_key(&format!("{}.partial", segment(1, switch))));
        assert!(self.files.contains_key(HISTORY));
        let few = self.records.values().filter(|records| records.len() < 500).count();
        assert_eq!(few, 2, "segments with a backup alone; all others have rows");
    }
}

/// The program under test: the one just built, unless `WALSTAT_UNDER_TEST` names another.
fn program() -> PathBuf {
    let named = std::env::var_os("WALSTAT_UNDER_TEST").map(PathBuf::from);
    named.unwrap_or_else(|| env!("CARGO_BIN_EXE_walstat").into())
}

/// The restore_command, where the servers' user can read it.
fn install_fetch(home: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/live/restore/fetch.sh");
    fs::copy(source, home.join("fetch.sh")).expect("the script can be copied");
}

/// Rows of a transaction.
const ROWS_EACH: u64 = 100;

fn write_archive(server: &Server, home: &Path) {
    let primary = primary_with_backup(server, home);
    let standby = primary.standby();
    insert(&primary, 1..2600, ROWS_EACH);
    primary.sql("SELECT pg_switch_wal()");
    insert(&primary, 2600..2900, ROWS_EACH);
    catch_up(&primary, &standby);
    standby.promote();
    insert(&standby, 10_000..11_200, ROWS_EACH);
    standby.sql("SELECT pg_switch_wal()");
    insert(&standby, 11_200..11_600, ROWS_EACH);
    standby.sql("SELECT pg_switch_wal()");
    insert(&primary, 20_000..21_400, ROWS_EACH);
    primary.sql("SELECT pg_switch_wal()");
    for cluster in [&primary, &standby] {
        wait_for_archiver(&cluster.wal());
    }
    // Ended at once: a server that is stopped in order archives one segment more.
}

fn catch_up(primary: &Cluster, standby: &Cluster) {
    let is_there = || {
        standby.sql("SELECT pg_last_wal_replay_lsn()") == primary.sql("SELECT pg_current_wal_lsn()")
    };
    wait("the standby catches up", is_there);
}

/// Where timeline 2 begins, as its history says.
fn switch_point(files: &Files) -> u64 {
    let text = String::from_utf8_lossy(&files[HISTORY]).into_owned();
    let position = text.split_whitespace().nth(1).expect("an LSN");
    lsn(position)
}

/// `0/3000028` as a number.
pub fn lsn(text: &str) -> u64 {
    let (high, low) = text.split_once('/').unwrap_or_else(|| panic!("{text} is an LSN"));
    let part = |hex| u64::from_str_radix(hex, 16).unwrap_or_else(|_| panic!("{text} is an LSN"));
    (part(high) << 32) + part(low)
}

/// Where pg_waldump finds records.
fn records(server: &Server, archive: &Path, files: &Files) -> BTreeMap<String, Vec<Place>> {
    let mut records: BTreeMap<String, Vec<Place>> = BTreeMap::new();
    for timeline in [1, 2] {
        let names: Vec<&String> =
            files.keys().filter(|n| parse(n).is_some_and(|(t, _)| t == timeline)).collect();
        let (first, last) = (names.first().expect("segments"), names.last().expect("segments"));
        let mut command = Command::new(server.path("pg_waldump"));
        let output = command.arg(archive.join(first)).arg(archive.join(last)).output();
        let text = String::from_utf8(output.expect("pg_waldump runs").stdout).expect("UTF-8");
        for line in text.lines() {
            let after = |label: &str| line.split(label).nth(1).expect(label).trim_start();
            let end = |c: char| c == ',' || c.is_whitespace();
            let at = lsn(after("lsn: ").split(end).next().expect("an LSN"));
            let total = after("len (rec/tot):").split_once('/').expect("two lengths").1;
            let bytes = total.trim_start().split(end).next().expect("a length");
            let place =
                Place { offset: at as usize % SEGMENT, bytes: bytes.parse().expect("a number") };
            records.entry(segment(timeline, at / SEGMENT as u64)).or_default().push(place);
        }
    }
    records
}
