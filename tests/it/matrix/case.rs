//! A case of the matrix, and how it is run; its groups are what a failure names.

use std::path::Path;

use super::archive::{Archive, Packing, Store};
use super::chain::Chain;
use super::form::{Codec, Form};
use super::verdict::{Answer, Input, InputKind, Verdict, ask};

/// What is put before the program, and what it must say.
pub struct Put {
    /// The input.
    pub input: Input,
    /// By the oracle.
    pub expected: Verdict,
    /// Whether an open end must be said, and how to have it checked.
    pub says_open: Option<bool>,
    /// What it must be taken for, by `input.taken_for`.
    pub taken_for: Option<&'static str>,
}

type Lay<'c> = Box<dyn Fn(&Store, &Path) -> Option<Put> + Send + Sync + 'c>;

/// One case.
pub struct Case<'c> {
    /// What is done: cases of a kind fail together.
    pub group: String,
    /// To what.
    pub subject: String,
    /// What the input is taken for.
    pub taken_for: InputKind,
    /// The codec whose tool it needs.
    pub codec: Codec,
    /// Writes it; nothing where the kind does not fit the subject.
    pub lay: Lay<'c>,
}

/// Where an archive's files go, and in which form.
#[derive(Debug, Clone, Copy)]
pub struct Container {
    /// Of each file.
    pub form: Form,
    /// Of all.
    pub packing: Packing,
}

impl Container {
    /// Files in a folder.
    pub fn folder(form: Form) -> Container {
        Container { form, packing: Packing::Folder }
    }

    /// For messages.
    pub fn name(self) -> String {
        match self.packing {
            Packing::Folder => self.form.name(),
            packing => format!("{} of {}", packing.name(), self.form.name()),
        }
    }
}

impl<'c> Case<'c> {
    /// A case of an archive that `change` changes; nothing from it: the kind does not fit.
    pub fn of(
        group: impl Into<String>,
        chain: &'c Chain,
        container: Container,
        change: impl Fn(&mut Archive<'c>) -> Option<()> + Send + Sync + 'c,
    ) -> Case<'c> {
        let Container { form, packing } = container;
        let lay = move |store: &Store, folder: &Path| {
            let mut archive = Archive::of(store, chain, form);
            change(&mut archive)?;
            let (input, expected) = (archive.write(packing, folder), archive.expected());
            Some(Put { input, expected, says_open: None, taken_for: Some("archive") })
        };
        let (group, subject) = (group.into(), format!("{}, {}", chain.name, container.name()));
        let is_known = matches!(packing, Packing::Folder) && form != Form::RAW;
        // What shows by itself to be an archive need not be said to be one.
        let says_nothing = is_known && (group.len() + subject.len()).is_multiple_of(2);
        let taken_for = if says_nothing { InputKind::Whatever } else { InputKind::Archive };
        Case { group, subject, taken_for, codec: form.codec(), lay: Box::new(lay) }
    }
}

/// What came of a case.
pub struct Judged {
    /// The oracle's verdict.
    pub expected: Verdict,
    /// What is wrong with the program's, with an example of what it said.
    pub fault: Option<(&'static str, String)>,
}

/// Runs one case. `None`: it does not fit.
pub fn judge(case: &Case<'_>, store: &Store, number: usize) -> Option<Judged> {
    let folder = store.scratch(number);
    let put = (case.lay)(store, &folder);
    let judged = put.map(|put| {
        let expected = put.expected;
        let answer = ask(put.input, case.taken_for, number);
        let fault = fault(expected, put.says_open, put.taken_for, &answer);
        Judged { expected, fault: fault.map(|fault| (fault, answer.text)) }
    });
    std::fs::remove_dir_all(folder).expect("a folder that can be removed");
    judged
}

/// The fault of a report whose `input.taken_for` is another.
pub const TAKEN_FOR: &str = "TAKEN FOR SOMETHING ELSE";

fn fault(
    expected: Verdict,
    says_open: Option<bool>,
    taken_for: Option<&str>,
    answer: &Answer,
) -> Option<&'static str> {
    let says = answer.report.contains("--as archive");
    match (expected, answer.verdict) {
        (Verdict::Red, Verdict::Green) => Some("FALSE GREEN"),
        (Verdict::Green, Verdict::Red) => Some("FALSE RED"),
        _ if says_open.is_some_and(|open| open && !says) => Some("OPEN END NOT SAID"),
        _ if says_open.is_some_and(|open| !open && says) => Some("OPEN END SAID WITHOUT ONE"),
        _ if taken_for.is_some_and(|wanted| answer.taken_for != Some(wanted.into())) => {
            answer.taken_for.is_some().then_some(TAKEN_FOR)
        }
        _ => None,
    }
}
