//! `docs/whatif-runs.tsv` has what servers wrote and what was predicted; the summary in `docs/whatif.md` says
//! no more than that.

use std::path::Path;

/// A row of the table, as far as the summary needs it.
struct Run {
    load: String,
    setting: String,
    real: i64,
    predicted: i64,
    is_in_range: bool,
}

impl Run {
    fn parse(line: &str) -> Run {
        let columns: Vec<&str> = line.split('\t').collect();
        let [load, setting, real, predicted, _, in_range, _, _] = columns[..] else {
            panic!("eight columns: {line}")
        };
        Run {
            load: load.to_owned(),
            setting: setting.to_owned(),
            real: real.parse().expect("bytes"),
            predicted: predicted.parse().expect("bytes"),
            is_in_range: in_range == "yes",
        }
    }

    fn is_exact(&self) -> bool {
        self.real == self.predicted
    }

    fn miss(&self) -> f64 {
        (self.predicted - self.real) as f64 / self.real as f64
    }
}

fn docs(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A row for each `key` in the order of the runs; `other` names the run that missed most.
fn table(name: &str, runs: &[Run], key: fn(&Run) -> &str, other: fn(&Run) -> &str) -> String {
    let mut keys: Vec<&str> = Vec::new();
    for run in runs {
        if !keys.contains(&key(run)) {
            keys.push(key(run));
        }
    }
    let row = |own: &&str| {
        let runs: Vec<&Run> = runs.iter().filter(|run| key(run) == *own).collect();
        let exact = runs.iter().filter(|run| run.is_exact()).count();
        let in_range = runs.iter().filter(|run| run.is_in_range).count();
        let worst = runs.iter().max_by(|a, b| a.miss().abs().total_cmp(&b.miss().abs()));
        let worst = worst.expect("a key has runs");
        let miss = if worst.is_exact() {
            "none".to_owned()
        } else {
            format!("{:+.4} % ({})", 100.0 * worst.miss(), other(worst))
        };
        format!("| {own} | {} | {exact} | {in_range} | {miss} |\n", runs.len())
    };
    let head = format!("| {name} | runs | to the byte | in range | largest miss |\n");
    head + "| --- | ---: | ---: | ---: | --- |\n" + &keys.iter().map(row).collect::<String>()
}

#[test]
fn the_summary_says_what_the_runs_say() {
    let runs: Vec<Run> = docs("whatif-runs.tsv").lines().skip(1).map(Run::parse).collect();
    let exact = runs.iter().filter(|run| run.is_exact()).count();
    let in_range = runs.iter().filter(|run| run.is_in_range).count();
    let total =
        format!("{} runs: {exact} to the byte, {in_range} within their range.\n", runs.len());
    let by_setting = table("setting", &runs, |run| &run.setting, |run| &run.load);
    let by_load = table("load", &runs, |run| &run.load, |run| &run.setting);
    let summary = format!("{total}\n{by_setting}\n{by_load}");
    assert!(docs("whatif.md").contains(&summary), "docs/whatif.md has to have this:\n\n{summary}");
}
