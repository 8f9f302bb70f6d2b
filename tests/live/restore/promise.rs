//! What the names in an archive promise: how far a restore must come, on which timelines. Follows the
//! histories as they should be, whatever became of them.

use std::collections::{BTreeMap, BTreeSet};

use super::origin::{SEGMENT, lsn, parse, segment};
use super::tree::{State, Tree};
use crate::archiving::Files;

/// One restore that must succeed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Promise {
    /// The archive without damage.
    pub state: State,
    /// The last complete segment of each timeline.
    last: BTreeMap<u32, u64>,
    /// Timelines of which a history is promised.
    histories: BTreeSet<u32>,
    /// `recovery_target_timeline`.
    pub target: String,
}

impl Promise {
    /// Whether a file of the archive without damage is promised.
    pub fn has(&self, name: &str) -> bool {
        match (parse(name), history_of(name)) {
            (Some((timeline, number)), _) => self.last.get(&timeline).is_some_and(|l| number <= *l),
            (_, Some(timeline)) => self.histories.contains(&timeline),
            _ => false,
        }
    }
}

/// The timeline of a history's name.
fn history_of(name: &str) -> Option<u32> {
    u32::from_str_radix(name.strip_suffix(".history")?, 16).ok()
}

/// Ancestors of a timeline, and the segment in which each was left.
fn ancestors(files: &Files, timeline: u32) -> BTreeMap<u32, u64> {
    let text = files.get(&format!("{timeline:08X}.history"));
    let text = text.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default();
    let ancestor = |line: &str| {
        let mut words = line.split_whitespace();
        let timeline = words.next()?.parse().ok()?;
        Some((timeline, lsn(words.next()?) / SEGMENT as u64))
    };
    text.lines().filter_map(ancestor).collect()
}

/// The promises of an archive; `Err`: a name that no server has given.
pub fn promises(tree: &Tree<'_>) -> Result<Vec<Promise>, String> {
    let mut last: BTreeMap<u32, u64> = BTreeMap::new();
    for (timeline, number) in tree.promised() {
        if tree.numbers(timeline).last().is_none_or(|&last| number > last) {
            return Err(segment(timeline, number));
        }
        let last = last.entry(timeline).or_default();
        *last = number.max(*last);
    }
    let newer = |&timeline: &u32| timeline > 1;
    let mut histories: BTreeSet<u32> = last.keys().copied().filter(newer).collect();
    histories.extend(
        tree.files.keys().filter_map(|name| history_of(name)).filter(|t| tree.has_history(*t)),
    );
    // A timeline promises what it stands on.
    for (timeline, left) in last.clone().into_keys().flat_map(|t| ancestors(&tree.files, t)) {
        let needed = last.entry(timeline).or_default();
        *needed = (left - 1).max(*needed);
    }
    let all: BTreeSet<u32> = last.keys().chain(&histories).copied().collect();
    // Where a timeline was left for a newer one before its last segment, that one is not on the way.
    let is_on_the_way = |timeline: u32, number: u64| {
        let left =
            all.iter().filter_map(|newer| ancestors(&tree.files, *newer).get(&timeline).copied());
        left.into_iter().any(|left| number < left)
    };
    let newest = all.last().copied().unwrap_or(1);
    let ends = last.iter().filter(|&(t, n)| *t != newest && !is_on_the_way(*t, *n));
    let targets = ends.map(|(timeline, _)| timeline.to_string()).chain(["latest".to_owned()]);
    let promise = |target| Promise {
        state: tree.state,
        last: last.clone(),
        histories: histories.clone(),
        target,
    };
    Ok(targets.map(promise).collect())
}
