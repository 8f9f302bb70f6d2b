//! A server that archives, its base backup and its load: what tests start from that restore archives.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;

use crate::cluster::{Cluster, Settings};
use crate::server::Server;
use crate::shell::shell;
use crate::wait::wait;

/// Plain files by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// A server that archives into `home/archive`, with a table `marker` and a base backup in `home/backup`.
/// Checkpoints come only where they are asked for.
pub fn primary_with_backup<'s>(server: &'s Server, home: &Path) -> Cluster<'s> {
    let archive = home.join("archive").display().to_string();
    let conf = format!(
        "archive_mode = on\narchive_command = 'test ! -f {archive}/%f && cp %p {archive}/%f'\n\
         checkpoint_timeout = 1h\nbgwriter_lru_maxpages = 0"
    );
    let primary = Cluster::start(server, &Settings { initdb: &["--wal-segsize=1"], conf: &conf });
    primary.sql("CREATE TABLE marker (id int PRIMARY KEY, note text)");
    // A backup of one database is copied in half the time.
    primary.sql("UPDATE pg_database SET datistemplate = false");
    primary.sql("DROP DATABASE template0");
    primary.sql("DROP DATABASE template1");
    primary.sql("SELECT pg_switch_wal()");
    let connection = primary.connection().join(" ");
    shell(home, &format!("pg_basebackup {connection} -c fast -X none -D backup 2>/dev/null"));
    primary
}

/// Rows in transactions of so many: how many rows are there tells how far a restore came.
pub fn insert(cluster: &Cluster, ids: Range<u64>, each: u64) {
    let (first, last) = (ids.start, ids.end - 1);
    cluster.sql(&format!(
        "DO $$ BEGIN FOR i IN {first}..{last} LOOP \
         INSERT INTO marker VALUES (i, repeat(md5(i::text), 30)); \
         IF (i + 1) % {each} = 0 THEN COMMIT; END IF; END LOOP; END $$"
    ));
}

/// Waits until all of a server's complete segments are in its archive.
pub fn wait_for_archiver(wal: &Path) {
    let status = wal.join("archive_status");
    let is_ready = |path: &Path| path.extension().is_some_and(|suffix| suffix == "ready");
    let none_waits = || {
        let entries = fs::read_dir(&status).expect("archive_status");
        !entries.filter_map(Result::ok).any(|entry| is_ready(&entry.path()))
    };
    wait("the archiver has nothing to do", none_waits);
}

/// The files from the base backup on, and the backup's history: its name and text.
pub fn files_of(archive: &Path) -> (Files, (String, Vec<u8>)) {
    let entries = fs::read_dir(archive).expect("the archive").map(|entry| entry.expect("an entry"));
    let mut files: Files = entries
        .map(|entry| {
            let name = entry.file_name().into_string().expect("a plain name");
            (name, fs::read(entry.path()).expect("a file"))
        })
        .collect();
    let is_backup = |name: &&String| name.ends_with(".backup");
    let name = files.keys().find(is_backup).expect("the base backup's history").clone();
    let history = files.remove(&name).expect("the base backup's history");
    files.retain(|file, _| file.as_str() >= &name[..24] && !file.ends_with(".backup"));
    (files, (name, history))
}
