//! Files of a package that need each other in a circle: who reads one has to read all. A module and those
//! inside it may know each other, others not.

use super::none;
use super::source::{Package, packages};
use std::collections::{BTreeMap, BTreeSet};

/// A module's place in its package: `["input", "plan"]`; the root is empty.
type Module = Vec<String>;

/// Which modules each one names.
type Needs = BTreeMap<Module, BTreeSet<Module>>;

#[test]
fn no_files_need_each_other_in_a_circle() {
    let mut complaints = Vec::new();
    for package in packages() {
        for circle in circles(&needs(&texts(&package))) {
            let files: Vec<String> = circle.iter().map(|module| module.join("/")).collect();
            complaints.push(format!(
                "{}: {} need each other: move down what both need",
                package.place,
                files.join(", ")
            ));
        }
    }
    none(complaints);
}

/// The modules of a package and what they say outside of tests and comments.
fn texts(package: &Package) -> BTreeMap<Module, String> {
    let head = if package.place == "." { "src/".into() } else { format!("{}/src/", package.place) };
    let sources = package.sources();
    let text = |source: &super::source::Source| {
        let lines: Vec<&str> = source.code().map(|(_, line)| line).collect();
        (module(source.name.strip_prefix(&head).unwrap_or(&source.name)), lines.join("\n"))
    };
    sources.iter().map(text).collect()
}

/// `["input", "plan"]` for `input/plan.rs`, `["input"]` for `input.rs`, nothing for `lib.rs`.
fn module(file: &str) -> Module {
    let parts = file.trim_end_matches(".rs").split('/');
    parts.filter(|part| !["lib", "main"].contains(part)).map(str::to_owned).collect()
}

fn needs(texts: &BTreeMap<Module, String>) -> Needs {
    let of = |module: &Module, text: &String| -> BTreeSet<Module> {
        let paths = paths(text).into_iter();
        let modules = paths.filter_map(|path| home(&resolved(module, &path)?, texts));
        modules.filter(|other| !other.starts_with(module) && !module.starts_with(other)).collect()
    };
    texts.iter().map(|(module, text)| (module.clone(), of(module, text))).collect()
}

/// The place that a path leads to, from the root of the package; nothing for one into another package.
fn resolved(module: &Module, path: &[String]) -> Option<Module> {
    let (first, rest) = path.split_first()?;
    let mut place = match first.as_str() {
        "crate" => Vec::new(),
        "self" => module.clone(),
        "super" => module[..module.len().saturating_sub(1)].to_vec(),
        _ => return None,
    };
    for part in rest {
        if part == "super" {
            place.pop();
        } else {
            place.push(part.clone());
        }
    }
    Some(place)
}

/// The file in which this place lies.
fn home(place: &[String], texts: &BTreeMap<Module, String>) -> Option<Module> {
    let ends = (1..=place.len()).rev();
    ends.map(|end| place[..end].to_vec()).find(|module| texts.contains_key(module))
}

/// All paths that begin at `crate`, `self` or `super`, lists in braces taken apart.
fn paths(text: &str) -> Vec<Vec<String>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for head in ["crate::", "super::", "self::"] {
        for (at, _) in text.match_indices(head) {
            let before = &text[..at];
            if !before.ends_with(is_word) && !before.ends_with("::") {
                branches(&mut text[at..].chars().peekable(), &[], &mut found);
            }
        }
    }
    found
}

type Letters<'t> = std::iter::Peekable<std::str::Chars<'t>>;

/// Reads a path behind `head`, with a list in braces at its end, up to what is none of it.
fn branches(letters: &mut Letters<'_>, head: &[String], found: &mut Vec<Vec<String>>) {
    let mut path = head.to_vec();
    loop {
        while letters.next_if(|c| c.is_whitespace()).is_some() {}
        if letters.next_if_eq(&'{').is_some() {
            while !matches!(letters.peek(), Some('}') | None) {
                branches(letters, &path, found);
                // An alias, and the comma.
                while letters.next_if(|c| !"},".contains(*c)).is_some() {}
                letters.next_if_eq(&',');
                while letters.next_if(|c| c.is_whitespace()).is_some() {}
            }
            letters.next();
            return;
        }
        let mut word = String::new();
        while let Some(c) = letters.next_if(|c| c.is_alphanumeric() || *c == '_') {
            word.push(c);
        }
        if word.is_empty() {
            break;
        }
        path.push(word);
        if letters.next_if_eq(&':').is_none() || letters.next_if_eq(&':').is_none() {
            break;
        }
    }
    found.push(path);
}

/// The sets of modules each of which leads to all others.
fn circles(needs: &Needs) -> Vec<BTreeSet<Module>> {
    let reached: BTreeMap<&Module, BTreeSet<Module>> =
        needs.keys().map(|module| (module, reach(needs, module))).collect();
    let mut circles = BTreeSet::new();
    for (module, others) in &reached {
        if others.contains(*module) {
            let back = |other: &&Module| reached[*other].contains(*module);
            circles.insert(others.iter().filter(back).cloned().collect::<BTreeSet<_>>());
        }
    }
    circles.into_iter().collect()
}

/// All modules that one leads to.
fn reach(needs: &Needs, from: &Module) -> BTreeSet<Module> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![from];
    while let Some(module) = waiting.pop() {
        waiting.extend(needs[module].iter().filter(|other| reached.insert((*other).clone())));
    }
    reached
}

#[test]
fn a_circle_is_found_and_a_parent_is_none() {
    let circles_of = |files: &[(&str, &str)]| {
        let texts = files.iter().map(|(file, text)| (module(file), (*text).to_owned()));
        circles(&needs(&texts.collect())).len()
    };
    assert_eq!(
        circles_of(&[("a.rs", "use crate::b::X;"), ("b.rs", "fn f() { super::a::g() }")]),
        1
    );
    let through_a_list = "use crate::{\n    c::Y,\n    b::{self as other, X},\n};";
    assert_eq!(circles_of(&[("a.rs", through_a_list), ("b.rs", "use super::a;"), ("c.rs", "")]), 1);
    let third = [("a.rs", "use super::b;"), ("b.rs", "use super::c;"), ("c.rs", "crate::a::f()")];
    assert_eq!(circles_of(&third), 1);
    assert_eq!(circles_of(&[("a.rs", "use self::b::X;"), ("a/b.rs", "use super::Y;")]), 0);
    assert_eq!(circles_of(&[("a.rs", "use crate::b;"), ("b.rs", "use other::a;")]), 0);
}
