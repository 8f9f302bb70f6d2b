//! `docs/recovery.md`, as somebody follows it: every command of it, in its order, on a server that has lost a
//! table.

use crate::archiving::wait_for_archiver;
use crate::cluster::{Cluster, Settings};
use crate::server::Server;
use crate::shell::shell;
use std::fs;
use std::path::Path;

/// The commands of a paper: its blocks of shell.
fn commands(paper: &str) -> Vec<String> {
    let blocks = paper.split("```sh\n").skip(1);
    blocks.filter_map(|block| Some(block.split_once("\n```")?.0.to_owned())).collect()
}

/// Puts a `cp` before the system's that takes its time for each file of the archive.
const SLOW_ARCHIVE: &str = r#"cat > cp <<'END'
#!/bin/sh
case $1 in */archive/*) sleep 1 ;; esac
exec /bin/cp "$@"
END
chmod +x cp"#;

#[test]
fn the_paper_leads_back_to_the_table() {
    let Some(server) = Server::debian_15() else { return };
    let conf = "archive_mode = on\narchive_command = 'cp %p ../archive/%f'";
    let mut cluster = Cluster::start(&server, &Settings { conf, ..Settings::default() });
    let home = cluster.home().to_owned();
    shell(&home, "mkdir archive");
    cluster.sql("CREATE DATABASE shop");
    let in_shop = |cluster: &Cluster<'_>, statement: &str| {
        cluster.psql(&["-c", "\\connect shop", "-c", statement])
    };
    in_shop(&cluster, "CREATE TABLE orders AS SELECT i AS id FROM generate_series(1, 1234) i");
    // In a tablespace: neither this server's files nor the backup's may be touched.
    shell(&home, "mkdir place");
    cluster.sql(&format!("CREATE TABLESPACE place LOCATION '{}/place'", home.display()));
    in_shop(&cluster, "CREATE TABLE items (id int PRIMARY KEY, note text) TABLESPACE place");
    in_shop(&cluster, "INSERT INTO items SELECT i, 'old' FROM generate_series(1, 2000) i");
    let connection = cluster.connection().join(" ");
    // What ALTER SYSTEM has set is in the backup too, and has no say on the second server.
    cluster.sql("ALTER SYSTEM SET archive_mode = on");
    let places = format!("-T {0}/place={0}/place_of_backup", home.display());
    shell(
        &home,
        &format!("pg_basebackup {connection} -c fast -X none {places} -D backup 2>/dev/null"),
    );
    // As the backup of a standby has it, that of a server that was recovered, and a copy of one that runs.
    shell(
        &home,
        "touch backup/standby.signal
         cp data/postmaster.pid backup/
         echo \"recovery_target_time = '2026-01-01 00:00:00+00'\" >> backup/postgresql.conf
         printf 'Recovery_Target_xid = 44' >> backup/postgresql.auto.conf
         echo >> backup/postgresql.auto.conf
         echo \"recovery_end_command = 'touch ../ended'\" >> backup/postgresql.auto.conf",
    );
    let files_of_backup = "find place_of_backup -type f -exec md5sum {} + | sort";
    let backup_before = shell(&home, files_of_backup);
    in_shop(&cluster, "INSERT INTO orders VALUES (1235)");
    // A hot standby opens after the backup's own WAL, segments before the target, with more in each than a
    // server reads ahead.
    for first in (1236..81_236).step_by(20_000) {
        cluster.sql("SELECT pg_switch_wal()");
        let last = first + 19_999;
        let insert = format!("INSERT INTO orders SELECT generate_series({first}, {last})");
        in_shop(&cluster, &insert);
    }
    in_shop(&cluster, "DROP TABLE orders");
    in_shop(&cluster, "CREATE TABLE later (id int)");
    in_shop(&cluster, "DELETE FROM items WHERE id <= 1500");
    in_shop(&cluster, "INSERT INTO items VALUES (7, 'new'), (2001, 'new')");
    cluster.sql("SELECT pg_switch_wal()");
    wait_for_archiver(&cluster.wal());

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/recovery.md");
    let paper = fs::read_to_string(path).expect("the paper");
    let commands = commands(&paper);
    assert_eq!(commands.len(), 5, "{commands:?}");
    let here = home.display().to_string();
    let walstat = Path::new(env!("CARGO_BIN_EXE_walstat"));
    // Where the servers' user can run it.
    fs::copy(walstat, home.join("walstat")).expect("the program");
    shell(&home, SLOW_ARCHIVE);
    let programs = server.path("pg_ctl").parent().expect("a folder").display().to_string();
    let environment =
        format!("export PATH={here}:{programs}:$PATH PGHOST={here} PGUSER=postgres\n");
    let mut said = Vec::new();
    for command in &commands {
        let placed =
            ["/archive", "/backup", "/recovered"].iter().fold(command.clone(), |text, name| {
                text.replace(&format!(" {name}"), &format!(" {here}{name}"))
            });
        // A query that waits for a lock would wait for ever.
        let limited =
            format!("{environment}timeout 120 bash -euo pipefail <<'STORY'\n{placed}\nSTORY");
        said.push(shell(&home, &limited));
    }
    assert!(said[0].contains("# drop_table, shop.public.orders"), "{}", said[0]);
    assert!(said[3].contains("81235"), "{}", said[3]);
    assert_eq!(in_shop(&cluster, "SELECT count(*), max(id) FROM orders"), "81235|81235");
    assert_eq!(shell(&home, files_of_backup), backup_before);
    // What is missing is back, and what came since is as it was.
    let items = "SELECT count(*), max(id), sum((note = 'new')::int) FROM items";
    assert_eq!(in_shop(&cluster, items), "2001|2001|2");
    assert!(!home.join("ended").exists(), "a command of the backup's settings was run");
    // It starts again.
    shell(&home, &format!("{programs}/pg_ctl -D {here}/recovered -l log -w -m fast restart"));
    shell(&home, &format!("{programs}/pg_ctl -D {here}/recovered -m immediate stop"));
    cluster.stop();
}
