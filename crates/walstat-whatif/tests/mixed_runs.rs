//! `docs/whatif-mixed.tsv` has what servers wrote in mixed runs and what was predicted; the summary in
//! `docs/whatif.md` says no more than that.

use std::collections::BTreeMap;
use std::path::Path;

/// A row of the table, as far as the summary needs it.
struct Question {
    load: String,
    run: String,
    /// The options, without their values.
    options: String,
    real: f64,
    predicted: f64,
    is_in_range: bool,
    width_percent: f64,
}

impl Question {
    fn parse(header: &[&str], line: &str) -> Question {
        let columns: BTreeMap<&str, &str> = header.iter().copied().zip(line.split('\t')).collect();
        let text = |name: &str| columns.get(name).unwrap_or_else(|| panic!("no {name}: {line}"));
        let number =
            |name: &str| text(name).parse::<f64>().unwrap_or_else(|_| panic!("{name}: {line}"));
        let options: Vec<&str> =
            text("option").split(' ').filter(|word| word.starts_with("--")).collect();
        Question {
            load: text("load").to_string(),
            run: text("run").to_string(),
            options: options.join(" "),
            real: number("real_bytes"),
            predicted: number("predicted_bytes"),
            is_in_range: *text("in_range") == "yes",
            width_percent: number("range_width_percent"),
        }
    }

    fn miss_percent(&self) -> f64 {
        100.0 * (self.predicted - self.real) / self.real
    }
}

fn docs(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn row(name: &str, asked: &[&Question]) -> String {
    let in_range = asked.iter().filter(|one| one.is_in_range).count();
    let near = asked.iter().filter(|one| one.miss_percent().abs() <= 0.1).count();
    let width = median(asked.iter().map(|one| one.width_percent).collect());
    let worst =
        asked.iter().max_by(|a, b| a.miss_percent().abs().total_cmp(&b.miss_percent().abs()));
    let worst = worst.expect("a row has questions");
    let miss = format!("{:+.2} % ({} {})", worst.miss_percent(), worst.load, worst.run);
    format!("| {name} | {} | {in_range} | {near} | {width:.2} % | {miss} |\n", asked.len())
}

#[test]
fn the_summary_says_what_the_mixed_runs_say() {
    let table = docs("whatif-mixed.tsv");
    let mut lines = table.lines();
    let header: Vec<&str> = lines.next().expect("a header").split('\t').collect();
    let questions: Vec<Question> = lines.map(|line| Question::parse(&header, line)).collect();
    let mut by_options: BTreeMap<&str, Vec<&Question>> = BTreeMap::new();
    for question in &questions {
        by_options.entry(&question.options).or_default().push(question);
    }
    let all: Vec<&Question> = questions.iter().collect();
    let head = "| options | asked | in range | within 0.1 % | median range | largest miss |\n\
                | --- | ---: | ---: | ---: | ---: | --- |\n";
    let rows: String = by_options.iter().map(|(name, asked)| row(name, asked)).collect();
    let summary = format!("{head}{rows}{}", row("all", &all));
    assert!(docs("whatif.md").contains(&summary), "docs/whatif.md has to have this:\n\n{summary}");
}
