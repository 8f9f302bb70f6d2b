//! `walstat check` held against a real server, row by row: an archive is packed in one way and spoiled by
//! a few operations, PostgreSQL 15 restores it with the `restore_command` that fits its suffix, and the
//! check must be green exactly where the restore reaches the end. With the good copy of every file that is
//! blamed, and of no other, the archive is as it was.
//!
//! The server runs alone, without clients (`postgres --single`), so a row takes a third of a second.
//! `WALSTAT_VERDICTS=TEXT` runs the rows with TEXT in them. Timelines, archivers' trees and damage by
//! chance are in `restore`.

mod archive;
mod origin;
mod table;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Output;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use walstat_format::lsn::Lsn;

use crate::server::as_server_user;
use archive::Archive;
use origin::{Origin, Reached};
use table::{Row, Want};

/// Servers that restore at once.
const AT_ONCE: usize = 2;

/// What the check says: whether it is green, and what it blames.
struct Said {
    is_green: bool,
    blamed: BTreeSet<String>,
    text: String,
}

fn check(origin: &Origin, folder: &Path) -> Said {
    let output = checked(origin, folder, &[]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let problems = report["problems"].as_array().cloned().unwrap_or_default();
    let name = |problem: &Value| problem["segment"].as_str().unwrap_or_default().to_owned();
    // A segment under any suffix; a history under its own name.
    let blamed = problems.iter().map(name);
    let blamed = blamed.map(|name| name.get(..24).map_or(name.clone(), str::to_owned)).collect();
    let errors = String::from_utf8_lossy(&output.stderr);
    let text = format!("exit {:?}: {problems:?} {errors}", output.status.code());
    Said { is_green: output.status.success(), blamed, text }
}

/// What the check says of the restore of the base backup.
fn restore_told(origin: &Origin, folder: &Path) -> String {
    let label = origin.label();
    let label = label.to_str().expect("a path in Unicode");
    let output = checked(origin, folder, &["--backup-label", label]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let checks = report["checks"].as_array().cloned().unwrap_or_default();
    let restore = checks.iter().find(|check| check["check"] == "restore");
    let text = restore.map(|check| check["text"].as_str().expect("a text").to_owned());
    text.unwrap_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

fn checked(origin: &Origin, folder: &Path, words: &[&str]) -> Output {
    let mut command = as_server_user(origin.program());
    command.args(["check", "--as", "archive", "-f", "json"]).args(words).arg(folder);
    command.output().expect("walstat runs")
}

/// Whether a server comes to the place that is told, or ends where that is told.
fn is_as_told(told: &str, reached: &Restored) -> bool {
    let is_ended = ["FATAL", "may end with an error"].iter().any(|words| told.contains(words));
    let lsn = told.strip_prefix("restorable to LSN ").and_then(|rest| rest.split(' ').next());
    let lsn: Option<Lsn> = lsn.and_then(|lsn| lsn.parse().ok());
    let may_end_before = told.contains("a server that reads ahead");
    match reached {
        Ok(at) => !is_ended && (lsn == Some(at.end) || may_end_before && lsn >= Some(at.end)),
        Err(_) => told.starts_with("not restorable") || is_ended,
    }
}

/// What is wrong with a row.
fn fault(origin: &Origin, number: usize, row: &Row) -> Option<String> {
    let folder = origin.folder(number);
    let mut archive = Archive::write(origin, folder.join("archive"), row.packing);
    row.operations.iter().for_each(|operation| archive.apply(operation));
    let said = check(origin, archive.folder());
    let told = restore_told(origin, archive.folder());
    let reached = origin.restore(&folder, archive.folder(), row.packing);
    let is_whole = reached == Ok(origin.whole);
    let fault = match (row.want, is_whole, said.is_green) {
        (Want::Sound, false, _) | (Want::Damaged | Want::Shorter, true, _) => "UNEXPECTED",
        (Want::Sound | Want::Shorter, _, false) => "FALSE RED",
        (Want::Damaged, _, true) => "FALSE GREEN",
        (Want::Damaged, _, _) if said.blamed != archive.spoiled => "THE WRONG FILE IS BLAMED",
        _ if !is_as_told(&told, &reached) => "A SERVER COMES ELSEWHERE",
        (Want::Damaged, _, _) => {
            archive.repair();
            let again = check(origin, archive.folder());
            if again.is_green { "" } else { "NOT WHOLE WITH THE GOOD COPY" }
        }
        _ => "",
    };
    std::fs::remove_dir_all(&folder).expect("a folder that can be removed");
    let walstat = &said.text;
    let text =
        || format!("{fault}: {row}\n    server: {reached:?}\n    walstat: {told}\n    {walstat}");
    (!fault.is_empty()).then(text)
}

#[test]
fn green_exactly_where_the_server_restores_and_the_blamed_file_is_the_one() {
    let Some(origin) = Origin::make() else { return };
    let mut rows = table::rows();
    let all = rows.len();
    assert!(all >= 100, "{all} rows");
    if let Ok(part) = std::env::var("WALSTAT_VERDICTS") {
        rows.retain(|row| row.to_string().contains(&part));
    }
    let (next, faults) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(row) = rows.get(number) else { break };
                    let fault = fault(&origin, number, row);
                    faults.lock().expect("no row has failed").extend(fault);
                }
            });
        }
    });
    let faults = faults.into_inner().expect("no row has failed");
    let (count, all) = (faults.len(), rows.len());
    assert!(faults.is_empty(), "{count} of {all} rows:\n{}", faults.join("\n"));
}

/// How far a restore came, or why it did not.
type Restored = Result<Reached, String>;
