//! Live tests of archives: the real archivers and command line tools pack the WAL of real servers
//! on this machine, and walstat must say of every form what it says of the raw segments.
//!
//! Where a tool is missing its test says SKIPPED on standard error; `WALSTAT_REQUIRE_LIVE=1` makes
//! that a failure. `WALSTAT_LIVE_READS` is how often the directory of a working server is read
//! (default 200). Small trees of the same tools, which need none of them, are in `it/archives.rs`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::archiving::wait_for_archiver;
use crate::cluster::{Cluster, Settings};
use crate::server::Server;
use crate::shell::{Background, background, install, shell};
use crate::support::missing::have;
use crate::wait::wait;
use crate::walstat::judge;
use serde_json::Value;

/// 1 MB segments keep the archives small; the server keeps all its WAL.
const SMALL: [&str; 1] = ["--wal-segsize=1"];

fn server(tools: &[&str]) -> Option<Server> {
    let server = Server::debian_15()?;
    (have(&["/usr/bin/time"]) && have(tools)).then_some(server)
}

fn start<'s>(server: &'s Server, conf: &str) -> Cluster<'s> {
    Cluster::start(server, &Settings { initdb: &SMALL, conf })
}

fn pgbench(server: &Server, cluster: &Cluster, arguments: &[&str]) {
    let mut pgbench = Command::new(server.path("pgbench"));
    let output = pgbench.args(cluster.connection()).args(arguments).arg("postgres").output();
    let output = output.expect("pgbench runs");
    assert!(output.status.success(), "pgbench: {output:?}");
}

/// A load that goes on until it is dropped: so many seconds at most, and as fast as the options allow.
fn load(cluster: &Cluster, seconds: u32, options: &str) -> Background {
    let connection = cluster.connection().join(" ");
    let script = format!("pgbench {connection} -n -c 2 {options} -T {seconds} postgres");
    background(cluster.home(), &script)
}

fn switch(cluster: &Cluster) {
    cluster.sql("SELECT pg_switch_wal()");
}

#[test]
fn pgbackrest_and_barman() {
    let tools = ["pgbackrest", "barman", "xz", "zstd", "lz4"];
    let Some(server) = server(&tools) else { return };
    let mut cluster = start(&server, "archive_mode = on");
    let home = cluster.home().to_owned();
    let path = home.display();
    install("archivers.sh", &home);
    shell(&home, "bash archivers.sh make $HOME");
    cluster.set(&format!("archive_command = 'bash {path}/archivers.sh push {path} %p %f'"));
    cluster.reload();
    cluster.script("workload.sql");
    switch(&cluster);
    wait_for_archiver(&cluster.wal());
    cluster.stop();
    shell(&home, "bash archivers.sh finish $HOME");

    let whole = judge(&home, "walstat cp").agrees_with(&home, "cp");
    assert!(whole > 10_000, "{whole} records");
    for kind in ["none", "gz", "lz4", "zst", "bz2"] {
        for place in ["", "/archive", "/archive/demo", "/archive/demo/15-1/*"] {
            let script = format!("walstat pgbackrest-{kind}{place}");
            assert_eq!(judge(&home, &script).agrees_with(&home, "cp"), whole, "{script}");
        }
        let script = format!("tar -cf - pgbackrest-{kind} | walstat -");
        assert_eq!(judge(&home, &script).agrees_with(&home, "cp"), whole, "{script}");
    }
    for kind in ["none", "gzip", "bzip2", "xz", "zstd", "lz4"] {
        for place in ["", "/wals", "/wals/0000000100000000"] {
            let script = format!("walstat barman/{kind}{place}");
            assert_eq!(judge(&home, &script).agrees_with(&home, "cp"), whole, "{script}");
        }
    }
    for script in ["walstat pgbackrest-cipher", "tar -cf - pgbackrest-cipher | walstat -"] {
        let errors = judge(&home, script).exits(3).errors;
        assert!(errors.contains("encrypted") && errors.lines().count() == 1, "{errors}");
    }
    let name = shell(&home, "cd pgbackrest-cipher/archive/demo/15-1/* && ls | head -1");
    assert_eq!(name.len(), 24 + 1 + 40 + 4, "name, SHA-1 and suffix are kept: {name}");
}

#[test]
fn pg_receivewal_and_pg_basebackup() {
    let Some(server) = server(&["pg_receivewal", "pg_basebackup", "pgbench"]) else { return };
    let mut cluster = start(&server, "");
    let home = cluster.home().to_owned();
    let connection = cluster.connection().join(" ");
    switch(&cluster);
    let methods = ["none", "gzip", "lz4"];
    let receivers = methods.map(|method| {
        shell(&home, &format!("mkdir receive-{method}"));
        cluster.sql(&format!("SELECT pg_create_physical_replication_slot('{method}', true)"));
        let call = format!("pg_receivewal {connection} -n -S {method} --compress={method}");
        background(&home, &format!("{call} -D receive-{method}"))
    });
    pgbench(&server, &cluster, &["-q", "-i"]);
    // Before the first whole segment there may be one of zeros only, which is no WAL yet.
    for method in methods {
        let whole = format!("ls receive-{method} | grep -qv partial");
        shell(&home, &format!("timeout 600 bash -c 'until {whole}; do sleep 0.1; done'"));
    }
    let mut partial = 0;
    let load = load(&cluster, 60, "--rate=200");
    for round in 0..10 {
        std::thread::sleep(Duration::from_millis(200));
        for method in methods {
            // A write in the middle of the copy would tear it: a page without the one before.
            let copy = format!(
                "receiver=$(pgrep -f 'pg_receivewal.* -D receive-{method}$') && kill -STOP $receiver && \
                 until grep -q '^State:.T' /proc/$receiver/status; do sleep 0.01; done && \
                 rm -rf copy && cp -r receive-{method} copy; kill -CONT $receiver; ls copy"
            );
            let names = shell(&home, &copy);
            let script = format!("walstat copy # {method}, round {round}");
            judge(&home, &script).agrees_with(&home, "data");
            partial += usize::from(names.contains(".partial"));
        }
    }
    assert!(partial > 20, "the segment being written was there: {partial} of 30");

    let forms = [
        ("-Ft", "pg_wal.tar"),
        ("-Ft -z", "pg_wal.tar.gz"),
        ("-Ft -X fetch", "base.tar"),
        ("-Ft -X fetch -z", "base.tar.gz"),
        ("-Ft -X fetch --compress=server-zstd", "base.tar.zst"),
        ("-Ft -X fetch --compress=server-lz4", "base.tar.lz4"),
        ("-Fp", "pg_wal"),
    ];
    for (index, (options, file)) in forms.iter().enumerate() {
        shell(&home, &format!("pg_basebackup {connection} -c fast {options} -D base{index}"));
        for script in [format!("walstat base{index}"), format!("walstat base{index}/{file}")] {
            judge(&home, &script).agrees_with(&home, "data");
        }
        if *file != "pg_wal" {
            let script = format!("cat base{index}/{file} | walstat -");
            judge(&home, &script).agrees_with(&home, "data");
        }
    }
    drop(load);
    cluster.stop();
    receivers.into_iter().for_each(Background::wait);
    for method in methods {
        let count = judge(&home, &format!("walstat receive-{method}")).agrees_with(&home, "data");
        assert!(count > 1000, "{method}: {count}");
    }
}

/// Segments of a stopped server in `segments`, and their number of records.
fn segments(server: &Server, cluster: &mut Cluster) -> u64 {
    let home = cluster.home().to_owned();
    pgbench(server, cluster, &["-q", "-i"]);
    cluster.stop();
    shell(&home, "mkdir segments && cp data/pg_wal/0* segments");
    judge(&home, "walstat segments").agrees_with(&home, "segments")
}

#[test]
fn command_line_tools_and_pipes() {
    let tools = ["gzip", "lz4", "zstd", "bzip2", "xz", "lzip", "brotli", "shuf"];
    let Some(server) = server(&tools) else { return };
    let mut cluster = start(&server, "");
    let home = cluster.home().to_owned();
    let whole = segments(&server, &mut cluster);
    let same = |script: &str| {
        let count = judge(&home, script).agrees_with(&home, "segments");
        assert_eq!(count, whole, "{script}");
    };
    let each = "rm -rf packed; mkdir packed; for s in segments/*; do";
    let xz = ["xz -0", "xz -0 --format=lzma"];
    for tool in ["gzip -1", "lz4", "lz4 -BD", "zstd", "bzip2", "lzip -0"].into_iter().chain(xz) {
        shell(&home, &format!("{each} {tool} -c <$s >packed/${{s##*/}}; done"));
        same("walstat packed");
        // Everything but LZMA-alone may stand one behind the other.
        if !tool.contains("lzma") {
            same("cat packed/* | walstat -");
        }
        same("tar -cf - packed | walstat -");
        same(&format!("tar -cf - segments | {tool} -c | walstat -"));
        let first = tool.split(' ').next().expect("a word");
        let suffix = if tool.contains("lzma") { "lzma" } else { first };
        shell(&home, "rm -f one.*");
        shell(&home, &format!("tar -cf - segments | {tool} -c >one.tar.{suffix}"));
        same(&format!("walstat one.tar.{suffix}"));
    }
    // Brotli has no magic number: by its suffix alone.
    shell(&home, &format!("{each} brotli -1 -c $s >packed/${{s##*/}}.br; done"));
    same("walstat packed");
    same("for s in packed/*; do brotli -dc $s; done | walstat -");
    same("cat segments/* | walstat -");
    same("cat $(ls segments/* | shuf) | walstat -");
    same("tar -C segments -cf - $(ls segments | shuf) | walstat -");
    same("walstat <(cat segments/*)");
    same("walstat <(tar -cf - segments)");
    same("zstd -c segments/* | zstd -dc | walstat -");
    same("walstat $(ls segments/* | shuf)");

    // The same segment in several forms counts once.
    shell(&home, "cp -r segments mixed && cp $(ls segments/* | sed -n 2p) second");
    let name = shell(&home, "basename $(ls segments/* | sed -n 2p)");
    for (tool, suffix) in [("zstd -q", "zst"), ("gzip", "gz"), ("head -c 300000", "partial")] {
        shell(&home, &format!("{tool} <second >mixed/{name}.{suffix}"));
    }
    same("walstat mixed");
    same("tar -cf - mixed | walstat -");
}

#[test]
fn encryption_tools() {
    let Some(server) = server(&["gpg", "openssl", "age", "age-keygen"]) else { return };
    let mut cluster = start(&server, "");
    let home = cluster.home().to_owned();
    segments(&server, &mut cluster);
    shell(
        &home,
        "cp $(ls segments/* | sed -n 2p) segment; mkdir -m 700 .gnupg; age-keygen -o key 2>public",
    );
    let gpg = "gpg --batch --quiet --pinentry-mode loopback --passphrase secret";
    let openssl = "openssl enc -aes-256-cbc -pbkdf2 -k secret";
    let forms = [
        (format!("{gpg} -c"), format!("{gpg} -d")),
        (format!("{gpg} --armor -c"), format!("{gpg} -d")),
        (openssl.to_owned(), format!("{openssl} -d")),
        (format!("{openssl} -a"), format!("{openssl} -d -a")),
        ("age -r $(sed 's/.*: //' public)".to_owned(), "age -d -i key".to_owned()),
        ("age -a -r $(sed 's/.*: //' public)".to_owned(), "age -d -i key".to_owned()),
    ];
    for (encrypt, decrypt) in forms {
        shell(
            &home,
            &format!(
                "rm -rf secret; mkdir secret; {encrypt} <segment >secret/000000010000000000000002"
            ),
        );
        for script in ["walstat secret", "walstat secret/*", "cat secret/* | walstat -"] {
            let errors = judge(&home, script).exits(3).errors;
            let told = errors.contains("encrypted") && errors.contains("walstat -");
            assert!(told && errors.lines().count() == 1, "{encrypt}: {script}: {errors}");
        }
        let script = format!("{decrypt} <secret/* 2>/dev/null | walstat -");
        judge(&home, &script).agrees_with(&home, "segments");
    }
    shell(&home, "gpgconf --kill all");
}

/// The largest memory of the last run, kB.
fn peak(home: &Path) -> u64 {
    let text = std::fs::read_to_string(home.join("peak")).expect("what time wrote");
    let last = text.lines().last().and_then(|line| line.split(' ').next());
    last.and_then(|word| word.parse().ok()).expect("a number")
}

/// Seconds of the processor that the last run took.
fn seconds(home: &Path) -> f64 {
    let text = std::fs::read_to_string(home.join("peak")).expect("what time wrote");
    let words = text.lines().last().expect("a line").split(' ').skip(1);
    words.map(|word| word.parse::<f64>().expect("seconds")).sum()
}

#[test]
fn bombs_cost_neither_memory_nor_patience() {
    let Some(server) = server(&["zstd", "gzip", "bzip2"]) else { return };
    let mut cluster = start(&server, "");
    let home = cluster.home().to_owned();
    segments(&server, &mut cluster);
    shell(&home, "mkdir bombs && cp $(ls segments/* | sed -n 2p) segment");
    let name = shell(&home, "basename $(ls segments/* | sed -n 2p)");
    let more = "(cat segment; head -c 512M /dev/zero)";
    shell(
        &home,
        &format!(
            "{more} | zstd -q -c >bombs/{name}.zst & {more} | gzip -1 -c >bombs/{name}.gz; wait"
        ),
    );
    shell(&home, &format!("head -c 256M /dev/zero | bzip2 -9 -c >bombs/{name}.bz2"));
    shell(&home, &format!("zstd -q --ultra -20 --long=31 -c <segment >bombs/{name}.long"));
    judge(&home, "walstat segment").exits(0);
    let plain = peak(&home);
    for (file, code) in [("zst", 4), ("gz", 4), ("bz2", 3), ("long", 3)] {
        for script in [format!("walstat bombs/*.{file}"), format!("walstat - <bombs/{name}.{file}")]
        {
            let ran = judge(&home, &script).exits(code);
            let (needed, took) = (peak(&home), seconds(&home));
            assert!(needed < plain + 64 * 1024, "{script}: {needed} kB, plain {plain} kB");
            assert!(took < 5.0, "{script}: {took} s of the processor");
            if file == "long" {
                assert!(ran.errors.contains("128 MiB"), "{}", ran.errors);
            }
        }
    }
    // All of them beside good segments: these are read.
    shell(&home, "cp bombs/* segments");
    judge(&home, "walstat segments").exits(4).has_problem("trailing_bytes", &name);
    assert!(peak(&home) < plain + 64 * 1024, "{} kB", peak(&home));
}

/// pg_waldump's statistics of one timeline over a range.
fn pg_waldump(server: &Server, wal: &Path, range: &[&str]) -> String {
    let mut command = Command::new(server.path("pg_waldump"));
    let output = command.args(["--stats=record", "-p"]).arg(wal).args(range).output();
    String::from_utf8(output.expect("pg_waldump runs").stdout).expect("UTF-8")
}

fn catch_up(primary: &Cluster, standby: &Cluster) {
    let is_there = || standby.sql("SELECT pg_last_wal_replay_lsn()") == primary.insert_lsn();
    wait("the standby catches up", is_there);
}

/// It writes what it receives into segments that were used before: behind its last record the page is old.
#[test]
fn the_directory_of_a_standby_is_sound_wherever_it_stands() {
    let Some(server) = server(&["pgbench", "pg_basebackup"]) else { return };
    // Little of it is kept, so that it is used again: the last setting counts.
    let keep = if server.number() < 13 { "wal_keep_segments = 0" } else { "wal_keep_size = 0" };
    let primary = start(&server, &format!("{keep}\nmin_wal_size = 4MB\nmax_wal_size = 4MB"));
    pgbench(&server, &primary, &["-q", "-i"]);
    let standby = primary.standby();
    let mut recycled = 0;
    for round in 0..300 {
        pgbench(&server, &primary, &["-n", "-t", "20"]);
        catch_up(&primary, &standby);
        let report = judge(&standby.data(), "walstat .").exits(0).report;
        recycled += usize::from(report["ending"]["kind"] == "recycled");
        if recycled == 10 {
            break;
        }
        if round % 20 == 0 {
            primary.sql("CHECKPOINT");
            catch_up(&primary, &standby);
            standby.sql("CHECKPOINT");
        }
    }
    assert_eq!(recycled, 10);
}

#[test]
fn a_promotion_with_both_timelines_in_one_archive() {
    let Some(server) = server(&["pgbench", "pg_basebackup"]) else { return };
    let mut primary = start(&server, "archive_mode = on");
    let home = primary.home().to_owned();
    shell(&home, "mkdir archive");
    let path = home.join("archive").display().to_string();
    primary.set(&format!("archive_command = 'cp %p {path}/%f'"));
    primary.reload();
    pgbench(&server, &primary, &["-q", "-i"]);
    switch(&primary);
    let begin = primary.insert_lsn();
    let mut standby = primary.standby();
    pgbench(&server, &primary, &["-n", "-c", "2", "-t", "300"]);
    catch_up(&primary, &standby);
    standby.promote();
    pgbench(&server, &standby, &["-n", "-c", "2", "-t", "200"]);
    pgbench(&server, &primary, &["-n", "-c", "2", "-t", "100"]);
    let ends = [primary.insert_lsn(), standby.insert_lsn()];
    for cluster in [&primary, &standby] {
        switch(cluster);
        wait_for_archiver(&cluster.wal());
    }
    standby.stop();
    primary.stop();

    let names = shell(&home, "ls archive");
    let partial = names.lines().find(|name| name.ends_with(".partial"));
    let partial = partial.unwrap_or_else(|| panic!("a .partial at the switch: {names}"));
    let begin_2 = shell(&home, "ls archive/00000002*[0-9A-F] | head -1");
    let number = u64::from_str_radix(&begin_2[begin_2.len() - 8..], 16).expect("a number");
    let archive = home.join("archive");
    let begins = [begin, format!("0/{:X}", number << 20 | 0x28)];
    for (timeline, (start, end)) in [1, 2].into_iter().zip(begins.iter().zip(&ends)) {
        let timeline = timeline.to_string();
        let range = ["-t", timeline.as_str(), "-s", start.as_str(), "-e", end.as_str()];
        let official = pg_waldump(&server, &archive, &range);
        assert!(official.contains("Transaction/COMMIT"), "{official}");
        let call = [&["--stats=record", "--format", "pg_waldump"], &range[..]].concat();
        assert_eq!(crate::walstat::text(&call, &archive), official, "timeline {timeline}");
    }
    for script in ["walstat archive", "tar -cf - archive | walstat -"] {
        let both = judge(&home, script).exits(0).report;
        assert_eq!(both["input"]["timelines"], serde_json::json!([1, 2]), "{script}");
        let others = both["input"]["other_files"].as_array().expect("a list").clone();
        assert!(others.iter().any(|name| name == partial), "{partial} in {others:?}: {script}");
    }
    // As the new primary alone would have left it.
    let whole = partial.trim_end_matches(".partial");
    let unwanted = names.lines().filter(|name| name.starts_with("00000001"));
    for name in unwanted.filter(|name| *name >= whole && *name != partial) {
        std::fs::remove_file(archive.join(name)).expect("it was there");
    }
    let first = judge(&home, "walstat -t 1 archive").exits(0).report;
    assert_eq!(first["ending"]["kind"], "timeline_switch", "{}", first["ending"]);
    assert_eq!(
        judge(&home, "walstat archive").exits(0).report["input"]["timelines"],
        serde_json::json!([1, 2])
    );
}

#[test]
fn the_directory_of_a_working_server_has_normal_ends_only() {
    let Some(server) = server(&["pgbench"]) else { return };
    let reads = std::env::var("WALSTAT_LIVE_READS").map_or(200, |n| n.parse().expect("a number"));
    let conf = "wal_keep_size = 0\nmin_wal_size = 2MB\nmax_wal_size = 4MB\nautovacuum = on";
    let cluster = start(&server, conf);
    let home = cluster.home().to_owned();
    pgbench(&server, &cluster, &["-q", "-i"]);
    let mut load = load(&cluster, 600, "");
    let (mut segments, mut ends) = (std::collections::BTreeSet::new(), Vec::new());
    for read in 0..reads {
        if read % 10 == 0 {
            cluster.sql("CHECKPOINT");
        }
        let script = if read % 2 == 0 { "walstat data" } else { "walstat data/pg_wal" };
        let report = judge(&home, script).exits(0).report;
        assert_eq!(report["problems"], Value::Array(Vec::new()), "read {read}");
        let ending = &report["ending"];
        segments.insert(ending["segment"].to_string());
        ends.push(ending["kind"].as_str().expect("a kind").to_owned());
    }
    assert!(load.runs(), "the load went on all the time");
    drop(load);
    assert!(segments.len() > 2, "the server went on to other segments: {segments:?}");
    let normal = ["zeroed", "recycled", "incomplete_record", "complete", "shutdown", "switch"];
    let other = ends.iter().find(|kind| !normal.contains(&kind.as_str()));
    assert_eq!(other, None);
}

/// What is done to one segment of a good archive, and the problem that must be told.
const DAMAGES: [(&str, &str, &str); 6] = [
    ("removed", "rm $S", "missing_segment"),
    // In the middle of a page that is full of records.
    (
        "one bit flipped",
        "printf '\\x01' | dd of=$S bs=1 seek=500000 conv=notrunc status=none; ! cmp -s $S good",
        "checksum",
    ),
    ("truncated", "truncate -s 500000 $S", "truncated"),
    ("of another cluster", "cp other/* $S", "other_cluster"),
    ("of another segment size", "cp resized/* $S", "segment_size"),
    ("of another release", "cp release/* $S", "other_release"),
];

/// The archive, and one segment each that belongs elsewhere: to the cluster whose WAL is in
/// `other`, to the same cluster with segments of 2 MB, to PostgreSQL 14.
fn lay_out(server: &Server, home: &Path, other: &Path) {
    shell(home, "mkdir archive other resized release && cp data/pg_wal/0* archive");
    shell(home, &format!("cp $(ls {}/0* | sed -n 5p) other", other.display()));
    let resetwal = server.path("pg_resetwal").display().to_string();
    shell(home, &format!("{resetwal} --wal-segsize=2 -D data && cp data/pg_wal/0* resized"));
    let fixture = "tests/fixtures/mixed-9.5-14/wal.tar.zst";
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join(fixture);
    let member = "pg14-mixed/00000001000000000000000A";
    let unpack = format!("zstd -q -dc --long=27 {} | tar -xf - {member}", fixture.display());
    judge(home, &format!("{unpack} && mv {member} release"));
}

#[test]
fn damage_in_an_archive_of_200_segments_is_named() {
    let Some(server) = server(&["pgbench", "zstd"]) else { return };
    let mut cluster = start(&server, "");
    // Other arguments are another template: a cluster with a system identifier of its own.
    let initdb = [&SMALL[..], &["--no-instructions"]].concat();
    let mut other = Cluster::start(&server, &Settings { initdb: &initdb, conf: "" });
    let home = cluster.home().to_owned();
    pgbench(&server, &cluster, &["-q", "-i", "-s", "18"]);
    cluster.stop();
    pgbench(&server, &other, &["-q", "-i"]);
    other.stop();
    let other = other.wal();
    lay_out(&server, &home, &other);
    let whole = judge(&home, "walstat archive");
    let end = whole.report["range"]["end"].clone();
    let segments = whole.report["input"]["segments"].as_u64().expect("a number");
    assert!(segments >= 200, "{segments} segments are too few");
    whole.agrees_with(&home, "archive");
    let name = shell(&home, "ls archive | sed -n 100p");
    let number = u64::from_str_radix(&name[16..], 16).expect("a number");
    let behind = format!("0/{:X}", (number + 3) << 20);
    let range = judge(&home, &format!("walstat -s {behind} archive")).exits(0).report;
    shell(&home, &format!("cp archive/{name} good"));
    for (what, damage, kind) in DAMAGES {
        shell(&home, &format!("S=archive/{name}; {damage}"));
        let ran = judge(&home, "walstat archive").exits(4);
        ran.has_problem(kind, &name);
        assert_eq!(ran.report["range"]["end"], end, "{what}: the rest is read");
        let again = judge(&home, &format!("walstat -s {behind} archive")).report;
        assert_eq!(again["totals"], range["totals"], "{what}: a range behind it");
        shell(&home, &format!("rm -f archive/{name} && cp good archive/{name}"));
    }
    assert_eq!(judge(&home, "walstat archive").exits(0).report["range"]["end"], end);
}
