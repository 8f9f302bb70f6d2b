//! The damage matrix of `walstat check`: kinds of damage × containers × positions × releases, over
//! 3,000 cases, and the ones that look odd and are well. The verdict comes from an independent oracle:
//! what the codec's own tool makes of a file must be the segment that its name promises (all of its
//! bytes that a reader of whole records looks at), and no promised one may be missing.
//!
//! `WALSTAT_MATRIX=TEXT` runs the kinds with TEXT in their names, `WALSTAT_UNDER_TEST=PROGRAM` another
//! build. What a real server restores is held in `restore.rs`.
#![cfg(feature = "cli")]

mod common;
mod support;
#[path = "matrix/archive.rs"]
mod archive;
#[path = "matrix/archives.rs"]
mod archives;
#[path = "matrix/case.rs"]
mod case;
#[path = "matrix/chain.rs"]
mod chain;
#[path = "matrix/damage.rs"]
mod damage;
#[path = "matrix/form.rs"]
mod form;
#[path = "matrix/open.rs"]
mod open;
#[path = "matrix/verdict.rs"]
mod verdict;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use archive::Store;
use case::{Case, Judged, judge};
use chain::Chain;
use support::fixtures::sample;
use verdict::Verdict;

/// The releases, and the sample of each.
const RELEASES: [(&str, &str); 12] = [
    ("9.5", "pg9.5-mixed"),
    ("9.6", "pg9.6-mixed"),
    ("10", "pg10-mixed"),
    ("11", "pg11-mixed"),
    ("12", "pg12-mixed"),
    ("13", "pg13-mixed"),
    ("14", "pg14-mixed"),
    ("15", "pg15-mixed"),
    ("16", "pg16-workload"),
    ("17", "pg17-mixed"),
    ("18", "pg18-workload"),
    ("19", "pg19-mixed"),
];

/// Examples of each group of faults.
const EXAMPLES: usize = 3;

/// Faults of one kind: how many, of how many cases, and examples.
#[derive(Default)]
struct Group {
    cases: usize,
    faults: Vec<String>,
}

/// What came of all cases.
#[derive(Default)]
struct Tally {
    red: usize,
    green: usize,
    groups: BTreeMap<String, Group>,
}

impl Tally {
    fn add(&mut self, case: &Case<'_>, judged: Judged) {
        match judged.expected {
            Verdict::Red => self.red += 1,
            Verdict::Green => self.green += 1,
        }
        let group = self.groups.entry(case.group.clone()).or_default();
        group.cases += 1;
        if let Some((fault, said)) = judged.fault {
            group.faults.push(format!("{fault}: {}: {said}", case.subject));
        }
    }

    /// Groups with faults: a line each, and examples.
    fn faults(&self) -> Vec<String> {
        let wrong = self.groups.iter().filter(|(_, group)| !group.faults.is_empty());
        let text = |(name, group): (&String, &Group)| {
            let mut faults = group.faults.clone();
            faults.sort();
            let examples: Vec<String> =
                faults.iter().take(EXAMPLES).map(|fault| format!("\n      {fault}")).collect();
            format!("{name}: {} of {}{}", faults.len(), group.cases, examples.concat())
        };
        wrong.map(text).collect()
    }
}

fn chains() -> (Vec<Chain>, Vec<Chain>) {
    let made = |release: &str| [Chain::made(release, false), Chain::made(release, true)];
    let mut whole: Vec<Chain> = RELEASES.into_iter().flat_map(|(release, _)| made(release)).collect();
    whole.extend(RELEASES.into_iter().filter_map(|(_, name)| Chain::real(&sample(name))));
    assert!(whole.len() > 30, "real segments of most releases");
    (whole, RELEASES.into_iter().map(|(release, _)| Chain::open(release)).collect())
}

#[test]
fn green_exactly_where_every_name_keeps_its_promise() {
    let (whole, open) = chains();
    let mut cases = archives::all(&whole);
    cases.extend(open::all(&open));
    let part = std::env::var("WALSTAT_MATRIX").ok();
    cases.retain(|case| part.as_ref().is_none_or(|part| case.group.contains(part.as_str())));
    let (store, tally, next) = (Store::new(), Mutex::new(Tally::default()), AtomicUsize::new(0));
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(number) else { break };
                    if let Some(judged) = judge(case, &store, number) {
                        tally.lock().expect("no case has failed").add(case, judged);
                    }
                }
            });
        }
    });
    let tally = tally.into_inner().expect("no case has failed");
    let (faults, red, green) = (tally.faults(), tally.red, tally.green);
    println!("{red} damaged, {green} sound");
    assert!(faults.is_empty(), "{} of {red} damaged and {green} sound:\n{}", faults.len(), faults.join("\n"));
    if part.is_none() {
        assert!(red >= 3000 && green >= 500, "{red} damaged, {green} sound");
    }
}
