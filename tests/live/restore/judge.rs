//! The two verdicts over one archive: what the real server restores from it, and what
//! `walstat check` says of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use serde_json::Value;

use super::case::{Case, Verdict};
use super::origin::{Origin, SEGMENT};
use super::promise::{Promise, promises};
use super::server::{Reached, Restore, restore};
use super::tree::{Layout, Tree};
use crate::server::as_server_user;

/// A verdict, and why.
#[derive(Debug, Clone)]
pub struct Said {
    /// The verdict.
    pub verdict: Verdict,
    /// In a line.
    pub why: String,
}

/// What `walstat check` says of an archive. The only place that knows how it is called.
pub fn walstat(origin: &Origin, archive: &Path) -> Said {
    let mut command = as_server_user(origin.home().join("walstat"));
    command.args(["check", "--as", "archive", "--format", "json"]).arg(archive);
    let output = command.output().expect("walstat runs");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let problems = report["problems"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name =
        |problem: &Value| format!("{} {}", text(&problem["kind"]), text(&problem["segment"]));
    let kinds: Vec<String> = problems.iter().map(name).collect();
    let ending = text(&report["ending"]["kind"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    let verdict = match code {
        Some(0) => Verdict::Green,
        Some(3 | 4) => Verdict::Red,
        _ => panic!("walstat check {}: {output:?}", archive.display()),
    };
    let code = code.unwrap_or_default();
    let why = format!("exit {code}, ends {ending}: {} {}", kinds.join(", "), errors.trim());
    Said { verdict, why }
}

/// The oracle, with what it has found out about archives without damage.
pub struct Oracle<'o> {
    origin: &'o Origin,
    promises: Mutex<BTreeMap<Promise, Reached>>,
}

impl<'o> Oracle<'o> {
    /// An oracle that knows nothing yet.
    pub fn new(origin: &'o Origin) -> Oracle<'o> {
        Oracle { origin, promises: Mutex::default() }
    }

    /// What the server restores from an archive, against what its names promise.
    pub fn judge(&self, case: &Case, tree: &Tree<'_>, scratch: &Path) -> Said {
        let red = |why: String| Said { verdict: Verdict::Red, why };
        let promises = match promises(tree) {
            Ok(promises) => promises,
            Err(name) => return red(format!("{name} promises what no server has written")),
        };
        let mut why = Vec::new();
        for promise in &promises {
            let expected = self.reached_without_damage(promise);
            for &layout in &case.fetched_as {
                let target = promise.target.clone();
                let data = scratch.join("data");
                let restore = restore(
                    self.origin,
                    &Restore { archive: &tree.folder, layout, target, data: &data },
                );
                match restore {
                    Ok(reached) if reached == expected => why.push(format!("reaches {reached}")),
                    Ok(reached) => return red(format!("reaches {reached}, promised {expected}")),
                    Err(error) => return red(error),
                }
            }
        }
        Said { verdict: Verdict::Green, why: why.join("; ") }
    }

    /// Where a restore ends from an archive with all the files up to the last ones promised.
    fn reached_without_damage(&self, promise: &Promise) -> Reached {
        let mut promises = self.promises.lock().expect("no case has failed");
        if let Some(&reached) = promises.get(promise) {
            return reached;
        }
        let scratch = self.origin.scratch(&format!("promise-{}", promises.len()));
        let folder = scratch.join("archive");
        let mut tree = Tree::write(self.origin, folder, Layout::Raw, promise.state);
        for name in tree.names().iter().filter(|name| !promise.has(name)) {
            tree.remove(name);
        }
        let (data, target) = (scratch.join("data"), promise.target.clone());
        let wanted = Restore { archive: &tree.folder, layout: Layout::Raw, target, data: &data };
        let reached = restore(self.origin, &wanted)
            .unwrap_or_else(|error| panic!("{promise:?} without damage: {error}"));
        assert!(reached.end as usize > SEGMENT && reached.rows > 0, "{promise:?}: {reached}");
        promises.insert(promise.clone(), reached);
        reached
    }
}
