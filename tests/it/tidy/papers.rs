//! What is written beside the code: papers, releases named in them, advice rules, fixtures.

use super::none;
use super::source::{files, lines_of, packages, place_of, read, root};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use walstat_format::version::VERSIONS;
use walstat_report::advice::RULES;

/// All fixtures together.
const FIXTURE_BYTES: u64 = 20 << 20;

/// The headings that the doc comment of every advice rule has.
const RULE_HEADINGS: [&str; 5] =
    ["What it looks at:", "Why it matters:", "What to do:", "When to ignore it:", "Reference:"];

/// What puts reports together of numbers that partial results and states bring.
const CHECKED: [&str; 3] = ["walstat", "walstat-names", "walstat-report"];

/// A sum that does not fit has such a file refused: in what is shipped, too, not in the tests' build alone.
#[test]
fn what_is_shipped_checks_the_sums_of_a_report() {
    let manifest: toml::Table = read(&root().join("Cargo.toml")).parse().expect("a manifest");
    let profiles = &manifest["profile"];
    let checks = |profile: &str, package: &str| {
        let packages = profiles.get(profile).and_then(|profile| profile.get("package"));
        let own = packages.and_then(|packages| packages.get(package));
        own.and_then(|own| own.get("overflow-checks")).and_then(toml::Value::as_bool)
    };
    assert_eq!(profiles["dist"]["inherits"].as_str(), Some("release"));
    let unchecked = CHECKED.iter().filter(|package| {
        checks("release", package) != Some(true) || checks("dist", package) == Some(false)
    });
    let complaint =
        |package: &&str| format!("Cargo.toml: {package} is shipped without overflow-checks");
    none(unchecked.map(complaint).collect());
}

#[test]
fn the_papers_of_the_house_are_there() {
    let papers =
        ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/architecture.md", "Cargo.lock"];
    let missing = papers.iter().filter(|paper| !root().join(paper).is_file());
    let mut complaints: Vec<String> =
        missing.map(|paper| format!("{paper}: missing: write it")).collect();
    let changes = fs::read_to_string(root().join("CHANGELOG.md")).unwrap_or_default();
    if !changes.contains(env!("CARGO_PKG_VERSION")) {
        complaints
            .push(format!("CHANGELOG.md: does not tell of {}: add it", env!("CARGO_PKG_VERSION")));
    }
    none(complaints);
}

/// What is written of releases is what `version.rs` reads.
#[test]
fn papers_name_the_releases_that_are_read() {
    let (first, last) = (VERSIONS[0].name, VERSIONS[VERSIONS.len() - 1].name);
    let mut complaints = Vec::new();
    for paper in ["README.md", "Cargo.toml", "src/lib.rs"] {
        let text = fs::read_to_string(root().join(paper)).unwrap_or_default();
        if !text.contains(&format!("{first} to {last}")) {
            complaints.push(format!(
                "{paper}: does not say \"{first} to {last}\", what version.rs reads"
            ));
        }
    }
    let mut papers =
        vec![root().join("README.md"), root().join("CHANGELOG.md"), root().join("CONTRIBUTING.md")];
    papers.extend(files(&root().join("docs"), ".md"));
    papers.retain(|path| path.is_file());
    for (place, line) in papers.iter().flat_map(|path| lines_of(path)) {
        for release in releases_in(&line) {
            if !VERSIONS.iter().any(|version| version.name == release) {
                complaints.push(format!("{place}: PostgreSQL {release} is not in version.rs"));
            }
        }
    }
    none(complaints);
}

/// The major releases of "PostgreSQL 15.20" and "PostgreSQL 9.6.3".
pub fn releases_in(line: &str) -> impl Iterator<Item = String> {
    line.split("PostgreSQL ").skip(1).filter_map(|rest| {
        let number: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        let mut parts = number.trim_end_matches('.').split('.');
        match (parts.next()?, parts.next()) {
            ("", _) => None,
            ("9", Some(minor)) => Some(format!("9.{minor}")),
            (major, _) => Some(major.to_owned()),
        }
    })
}

#[test]
fn every_advice_rule_is_named_listed_and_explained() {
    let mut complaints = Vec::new();
    let files = files(&root().join("crates/walstat-report/src/advice/rules"), ".rs");
    for path in &files {
        let name = place_of(path);
        let id = path.file_stem().unwrap_or_default().to_string_lossy().replace('_', "-");
        let Some(rule) = RULES.iter().find(|rule| rule.id == id) else {
            complaints.push(format!(
                "{name}:1: no rule \"{id}\" in RULES: list it, and give it its file's name"
            ));
            continue;
        };
        let text = read(path);
        if rule.text != text {
            complaints.push(format!(
                "{name}:1: rule {id} explains itself by another file: include this one"
            ));
        }
        let doc: String = text.lines().map_while(|line| line.strip_prefix("//!")).collect();
        for heading in RULE_HEADINGS.iter().filter(|heading| !doc.contains(**heading)) {
            complaints.push(format!("{name}:1: the doc comment lacks \"{heading}\": write it"));
        }
    }
    if files.len() != RULES.len() {
        complaints.push(format!(
            "crates/walstat-report/src/advice/rules: {} rules are listed, one file each",
            RULES.len()
        ));
    }
    none(complaints);
}

#[test]
fn the_fixtures_stay_small() {
    let bytes: u64 = files(&root().join("tests/fixtures"), "")
        .iter()
        .filter_map(|path| path.metadata().ok())
        .map(|m| m.len())
        .sum();
    assert!(bytes > 1 << 20, "there are fixtures");
    assert!(
        bytes < FIXTURE_BYTES,
        "tests/fixtures has {bytes} bytes, {FIXTURE_BYTES} at most: use smaller samples"
    );
}

#[test]
fn every_dependency_is_used() {
    none(packages().iter().flat_map(|package| unused_dependencies(&package.place)).collect());
}

/// The dependencies of a package that its sources do not name.
fn unused_dependencies(place: &str) -> Vec<String> {
    let manifest = root().join(place).join("Cargo.toml");
    let below = |folders: &[&str]| -> Vec<String> {
        let folders = folders.iter().map(|folder| root().join(place).join(folder));
        folders.flat_map(|folder| files(&folder, ".rs")).map(|path| read(&path)).collect()
    };
    let of_package = below(&["src"]);
    let of_tests = below(&["src", "tests", "benches", "examples"]);
    let mut unused = Vec::new();
    let mut section = String::new();
    for line in read(&manifest).lines() {
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']).to_owned();
        }
        let users = match section.rsplit('.').next() {
            Some("dependencies") if !section.starts_with("workspace") => &of_package,
            Some("dev-dependencies") => &of_tests,
            _ => continue,
        };
        let is_entry = line.contains(" = ") && !line.starts_with(['#', '[']);
        let name = line.split([' ', '.']).next().filter(|_| is_entry);
        let Some(name) = name else { continue };
        let krate = name.replace('-', "_");
        // A path into it, or all of it under another name.
        let paths = [format!("{krate}::"), format!("use {krate} as ")];
        // The macro that makes lists of names implements it for them.
        let in_macro = name == "schemars" && users.iter().any(|text| text.contains("named! {"));
        if !in_macro && !users.iter().any(|text| paths.iter().any(|path| text.contains(path))) {
            unused.push(format!("{}: {name} is not used: drop it", place_of(&manifest)));
        }
    }
    unused
}

/// `docs/architecture.md` sends people there.
#[test]
fn each_crate_tells_of_its_modules() {
    let crates = packages().into_iter().filter(|package| package.place.starts_with("crates/"));
    let libs: Vec<PathBuf> =
        crates.map(|package| root().join(package.place).join("src/lib.rs")).collect();
    assert!(libs.len() > 5, "{libs:?}");
    none(libs.iter().flat_map(|lib| untold_modules(lib)).collect());
}

/// The modules of a crate that its text does not name, those for tests left out.
fn untold_modules(lib: &Path) -> Vec<String> {
    let text = read(lib);
    let doc: String = text.lines().filter(|line| line.starts_with("//!")).collect();
    let code = doc.split('`').skip(1).step_by(2);
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let told: HashSet<&str> = code.flat_map(|code| code.split(move |c| !is_word(c))).collect();
    let (mut untold, mut is_for_tests) = (Vec::new(), false);
    for line in text.lines() {
        let module = line.split_once("mod ").and_then(|(_, rest)| rest.strip_suffix(';'));
        if let Some(name) = module.filter(|name| !is_for_tests && !told.contains(name)) {
            untold.push(format!("{}: does not tell of {name}: say what is in it", place_of(lib)));
        }
        is_for_tests = line == "#[cfg(test)]";
    }
    untold
}
