//! `examples/spark/walstat_spark.py` on Apache Spark, in `local-cluster` mode: two executors, which are
//! processes of their own. Standard output is that of one machine, also where executors are killed on the
//! way, and where segments are damaged.

use crate::python::python;
use crate::support::fixtures::sample;
use crate::support::missing::have;
use crate::support::{Ran, WALSTAT, finish, walstat};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Two executors with a processor each, and nothing but what it has to say.
const CONFIGURATION: &str = "--master local-cluster[2,1,1024] --conf spark.ui.enabled=false \
                             --conf spark.ui.showConsoleProgress=false pyspark-shell";

/// The report of an archive on Spark; `None` where Spark is not installed.
fn on_spark(binary: &Path, archive: &Path, options: &[&str]) -> Option<Ran> {
    if !have(&["java"]) {
        return None;
    }
    let work = tempfile::tempdir().expect("a folder");
    let mut spark = python("examples/spark/walstat_spark.py")?;
    spark.arg("--prefix").arg(archive).arg("--walstat").arg(binary).args(options);
    spark.env("PYSPARK_SUBMIT_ARGS", CONFIGURATION).env("SPARK_LOCAL_IP", "127.0.0.1");
    spark.env("JAVA_TOOL_OPTIONS", crate::python::JAVA);
    spark.env("SPARK_WORKER_DIR", work.path()).env("SPARK_LOCAL_DIRS", work.path());
    Some(finish(spark.current_dir(work.path())))
}

/// All but the paths, which say where the parts were: `"paths": […],`.
fn without_paths(text: &str) -> String {
    let (before, rest) = text.split_once("\"paths\": [").expect("paths");
    let (_, after) = rest.split_once(']').expect("the end of the paths");
    format!("{before}{after}")
}

/// A program that is walstat, and kills the executor that runs it when it is first asked to count, and when
/// it is first asked to join. (The driver's own merge names its parts at once.)
fn deadly(folder: &Path) -> PathBuf {
    let script = format!(
        "#!/bin/bash\n\
         if [ \"$1 $2\" != 'merge part0' ] && mkdir \"$0.$1\" 2>/dev/null; then\n\
         pid=$$\n\
         until grep -qa CoarseGrainedExecutorBackend /proc/$pid/cmdline; do\n\
         pid=$(sed -n 's/^PPid:[[:space:]]*//p' /proc/$pid/status)\n\
         done\n\
         kill -9 $pid\n\
         fi\n\
         exec {WALSTAT} \"$@\"\n"
    );
    let file = folder.join("walstat");
    fs::write(&file, script).expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("executable");
    file
}

/// A copy of an archive of two timelines: a segment has a bit turned, one is cut off, one empty, one missing.
fn damaged(folder: &Path) -> PathBuf {
    let sample = sample("timeline");
    let archive = folder.join("archive");
    fs::create_dir(&archive).expect("a folder");
    for entry in fs::read_dir(&sample.wal).expect("a folder") {
        let entry = entry.expect("an entry");
        let mut bytes = fs::read(entry.path()).expect("readable");
        let name = entry.file_name();
        match name.to_str() {
            Some("000000010000000000000005") => bytes[20_000] ^= 0x10,
            Some("000000010000000000000006") => bytes.truncate(100_000),
            Some("000000010000000000000009") => bytes.clear(),
            Some("000000020000000000000009") => continue,
            _ => {}
        }
        fs::write(archive.join(name), bytes).expect("written");
    }
    fs::write(archive.join("notes.txt"), "not WAL").expect("written");
    archive
}

/// The history is read with every run, and segments that belong together with different ones.
#[test]
fn killed_executors_and_damaged_segments_change_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (archive, binary) = (damaged(folder.path()), deadly(folder.path()));
    let options = ["--stats=record,table,timeline"];
    let own = ["--run", "3", "--fan-in", "2"];
    let Some(ran) = on_spark(&binary, &archive, &[&own[..], &options].concat()) else { return };
    let archive = archive.to_str().expect("UTF-8");
    let one = walstat(&["--format", "json", options[0], archive]).exits(4);
    let ran = ran.exits(4);
    assert_eq!(without_paths(&ran.stdout), without_paths(&one.stdout), "{}", ran.stderr);
    for asked in ["--partial", "merge"] {
        let killed = folder.path().join(format!("walstat.{asked}"));
        assert!(killed.is_dir(), "no executor was killed at {asked}");
    }
    assert!(ran.stderr.contains("Lost executor"), "{}", ran.stderr);
    let input = &one.json()["input"];
    assert!(input["timelines"].as_array().is_some_and(|all| all.len() > 1), "{input}");
    let others = input["other_files"].as_array().cloned().unwrap_or_default();
    assert!(others.contains(&Value::from("notes.txt")), "{input}");
    let problems = one.json()["problems"].as_array().map_or(0, Vec::len);
    assert!(problems >= 4, "{problems}");
}
