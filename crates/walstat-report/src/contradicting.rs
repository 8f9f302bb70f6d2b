//! Records whose payload contradicts itself, told as problems.

use walstat_analyse::contradictions::{Contradicting, Contradictions};
use walstat_format::contradiction::{Contradiction, OFFSET_MAX, has_fixed_length};
use walstat_format::rmgr;
use walstat_read::input::plan::Plan;
use walstat_read::input::problem::{Problem, ProblemKind};

/// The problems of the first records of each kind.
pub fn contradicting(plan: &Plan, found: &Contradictions) -> Vec<Problem> {
    found.first.iter().map(|found| problem(plan, found)).collect()
}

fn problem(plan: &Plan, found: &Contradicting) -> Problem {
    let record = found.record;
    let name = format!("{}/{}", rmgr::name(record.rmgr), record.name(plan.version()));
    let (expected, found_there) = match found.what {
        Contradiction::Offset(number) => (
            format!("an offset number of 1 to {OFFSET_MAX} in a record {name}"),
            format!("offset number {number}, which no page has"),
        ),
        Contradiction::TooShort if has_fixed_length(record) => {
            (format!("the data that redo of {name} reads"), "fewer".to_owned())
        }
        Contradiction::TooShort => (
            format!("the data that a record {name} says it has"),
            "less: redo reads on after its end".to_owned(),
        ),
        Contradiction::NoImage(id) => (
            format!("an image of block {id}, which redo of {name} restores"),
            "none that is restored".to_owned(),
        ),
        Contradiction::Image(id, bytes) => {
            let expected =
                format!("an image of block {id} of a record {name} that unpacks to a page");
            let found = match bytes {
                Some(bytes) => format!("one that unpacks to {bytes} bytes, its hole included"),
                None => "one that cannot be unpacked".to_owned(),
            };
            (expected, found)
        }
        Contradiction::Hole(id) => (
            format!("an image of block {id} of a record {name} with its hole within the page"),
            "one whose hole goes on after the end of the page".to_owned(),
        ),
        Contradiction::WillInit(id, true) => (
            format!("block {id} without the flag WILL_INIT: redo of {name} reads it as it is"),
            "WILL_INIT".to_owned(),
        ),
        Contradiction::WillInit(id, false) => (
            format!("block {id} with the flag WILL_INIT: redo of {name} makes it anew"),
            "none".to_owned(),
        ),
    };
    let segment = plan.segment_name(found.lsn);
    let problem = Problem::of_file(ProblemKind::RecordBody, &segment, expected, found_there);
    Problem { lsn: Some(found.lsn), ..problem }
}
