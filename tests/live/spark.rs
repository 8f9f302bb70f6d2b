//! `examples/spark/walstat_spark.py` on Apache Spark, in `local-cluster` mode: two executors, which are processes
//! of their own. Standard output is that of one machine, also where executors are killed on the way, and where
//! segments are damaged.

use crate::python::python;
use crate::support::fixtures::sample;
use crate::support::missing::have;
use crate::support::{Ran, WALSTAT, finish, walstat};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where executors keep what they work with; and so that nothing is asked of the network's names.
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
    spark.env("SPARK_WORKER_DIR", work.path()).env("SPARK_LOCAL_DIRS", work.path());
    Some(finish(spark.current_dir(work.path())))
}

/// All but the paths, which say where the parts were: `"paths": […],`.
fn without_paths(text: &str) -> String {
    let (before, rest) = text.split_once("\"paths\": [").expect("paths");
    let (_, after) = rest.split_once(']').expect("the end of the paths");
    format!("{before}{after}")
}

/// A program that is walstat, and kills the executor that runs it when it is first asked to count, and when it is
/// first asked to join.
fn deadly(folder: &Path) -> PathBuf {
    let script = format!(
        "#!/bin/bash\n\
         if mkdir \"$0.$1\" 2>/dev/null && [ \"$1 $2\" != 'merge part0' ]; then\n\
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

#[test]
fn killed_executors_and_a_history_in_another_run_lose_nothing() {
    let sample = sample("timeline");
    let folder = tempfile::tempdir().expect("a folder");
    let binary = deadly(folder.path());
    let options = ["--stats=record,table,timeline"];
    let own = ["--run", "3", "--fan-in", "2"];
    let Some(ran) = on_spark(&binary, &sample.wal, &[&own[..], &options].concat()) else { return };
    let wal = sample.wal.to_str().expect("UTF-8");
    let one = walstat(&["--format", "json", options[0], wal]).exits(0);
    let ran = ran.exits(0);
    assert_eq!(without_paths(&ran.stdout), without_paths(&one.stdout), "{}", ran.stderr);
    assert!(one.json()["input"]["timelines"].as_array().is_some_and(|all| all.len() > 1));
    for asked in ["--partial", "merge"] {
        let killed = folder.path().join(format!("walstat.{asked}"));
        assert!(killed.is_dir(), "no executor was killed at {asked}");
    }
    assert!(ran.stderr.contains("Lost executor"), "{}", ran.stderr);
}

#[test]
fn damage_is_told_as_on_one_machine() {
    let sample = sample("pg15-mixed");
    let folder = tempfile::tempdir().expect("a folder");
    let archive = folder.path().join("archive");
    fs::create_dir(&archive).expect("a folder");
    let files = fs::read_dir(&sample.wal).expect("a folder").map(|entry| entry.expect("an entry"));
    let mut files: Vec<PathBuf> = files.map(|entry| entry.path()).collect();
    files.retain(|path| path.to_string_lossy().contains("/0000000100"));
    files.sort();
    for (number, file) in files.iter().enumerate().filter(|(number, _)| *number != 4) {
        let mut bytes = fs::read(file).expect("readable");
        match number {
            2 => bytes[1000] ^= 0x10,
            7 => bytes.truncate(2000),
            9 => bytes.clear(),
            _ => {}
        }
        fs::write(archive.join(file.file_name().expect("a name")), bytes).expect("written");
    }
    fs::write(archive.join("notes.txt"), "not WAL").expect("written");
    let binary = Path::new(WALSTAT);
    let Some(ran) = on_spark(binary, &archive, &["--run", "2", "--fan-in", "3"]) else { return };
    let one = walstat(&["--format", "json", archive.to_str().expect("UTF-8")]).exits(4);
    let ran = ran.exits(4);
    assert_eq!(without_paths(&ran.stdout), without_paths(&one.stdout), "{}", ran.stderr);
    let problems = one.json()["problems"].as_array().map_or(0, Vec::len);
    assert!(problems >= 4, "{problems}");
    let others: Value = vec!["notes.txt"].into();
    assert_eq!(one.json()["input"]["other_files"], others);
}
