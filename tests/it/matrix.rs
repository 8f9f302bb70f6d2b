//! The damage matrix of `walstat check`: kinds of damage × containers × positions × releases, over
//! 3,000 cases, and the ones that look odd and are well. The verdict comes from an independent oracle:
//! what the codec's own tool makes of a file must be the segment that its name promises (all of its
//! bytes that a reader of whole records looks at), and no promised one may be missing.
//!
//! `WALSTAT_MATRIX=TEXT` runs the kinds with TEXT in their names, `WALSTAT_UNDER_TEST=PROGRAM` another
//! build. What a real server restores is held in `live/restore.rs`.

mod archive;
mod archives;
mod case;
mod chain;
mod damage;
mod form;
mod open;
mod timelines;
mod verdict;

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::SystemTime;

use crate::support::fixtures::sample;
use crate::support::missing::have;
use archive::Store;
use case::{Case, Judged, TAKEN_FOR, judge};
use chain::Chain;
use verdict::{Answer, Input, InputKind, Verdict, ask};

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
        // Of what an input is taken for, the kind of damage says nothing.
        let is_taken = judged.fault.as_ref().is_some_and(|(fault, _)| *fault == TAKEN_FOR);
        let name = if is_taken { "what the input is taken for" } else { &case.group };
        let group = self.groups.entry(name.to_owned()).or_default();
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
    let mut whole: Vec<Chain> =
        RELEASES.into_iter().flat_map(|(release, _)| made(release)).collect();
    whole.extend(RELEASES.into_iter().filter_map(|(_, name)| Chain::real(&sample(name))));
    assert!(whole.len() > 30, "real segments of most releases");
    (whole, RELEASES.into_iter().map(|(release, _)| Chain::open(release)).collect())
}

/// Codecs' tools that are not installed, which is said loudly: their cases do not run.
fn without_tool() -> Vec<&'static str> {
    let tools = ["gzip", "lz4", "zstd", "bzip2", "xz"];
    tools.into_iter().filter(|tool| !have(&[tool])).collect()
}

#[test]
fn green_exactly_where_every_name_keeps_its_promise() {
    let ((whole, open), timelines) = (chains(), timelines::files());
    let mut cases = archives::all(&whole);
    cases.extend(open::all(&open));
    cases.extend(timelines::all(&timelines));
    let part = std::env::var("WALSTAT_MATRIX").ok();
    cases.retain(|case| part.as_ref().is_none_or(|part| case.group.contains(part.as_str())));
    let missing = without_tool();
    cases.retain(|case| case.codec.tool().is_none_or(|tool| !missing.contains(&tool)));
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
    assert!(
        faults.is_empty(),
        "{} of {red} damaged and {green} sound:\n{}",
        faults.len(),
        faults.join("\n")
    );
    if part.is_none() && missing.is_empty() {
        assert!(red >= 3000 && green >= 500, "{red} damaged, {green} sound");
    }
}

/// A file that is touched again and again while it is read is not one that is being written: what
/// follows the damage is valid.
#[test]
fn touching_a_damaged_file_does_not_make_it_an_end() {
    let chain = Chain::open("16");
    for taken_for in [InputKind::Archive, InputKind::PgWal, InputKind::Whatever] {
        let folder = tempfile::tempdir().expect("a folder");
        for segment in &chain.segments {
            archive::write(&folder.path().join(&segment.name), &segment.plain);
        }
        let last = &chain.segments[2];
        let mut plain = last.plain.clone();
        plain[last.record(2).start + 25] ^= 1;
        let path = folder.path().join(&last.name);
        archive::write(&path, &plain);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let file = File::options().append(true).open(&path).expect("the segment");
                    file.set_modified(SystemTime::now()).expect("a time");
                }
            });
            let answers: Vec<Answer> = (0..10)
                .map(|number| ask(Input::Path(folder.path().to_owned()), taken_for, number))
                .collect();
            done.store(true, Ordering::Relaxed);
            let green = answers.iter().filter(|answer| answer.verdict == Verdict::Green).count();
            let said = answers.first().map(|answer| answer.text.as_str());
            assert_eq!(green, 0, "{taken_for:?}: {green} of 10 green, {said:?}");
        });
    }
}
