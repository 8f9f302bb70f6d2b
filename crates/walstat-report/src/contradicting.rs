//! Records whose payload contradicts itself, told as problems.

use walstat_analyse::contradictions::{Contradicting, Contradictions};
use walstat_format::contradiction::{BlockFault, Contradiction, OFFSET_MAX, has_fixed_length};
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
        Contradiction::Offset(number @ 2..=OFFSET_MAX) => (
            format!("offset number 1, on a page that redo of {name} makes anew"),
            format!("offset number {number}"),
        ),
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
        Contradiction::NotRising => (
            format!("offset numbers of entries to delete, each once, in a record {name}"),
            "numbers in another order, or twice".to_owned(),
        ),
        Contradiction::NoRange => (
            format!("pages_per_range of at least 1 in a record {name}"),
            "0, which redo divides by".to_owned(),
        ),
        Contradiction::Fork(number) => (
            format!("a fork number of 0 to 3 in a record {name}"),
            format!("fork number {number}, which no relation has"),
        ),
        Contradiction::UnassignedXid { xid, next } => (
            format!("a transaction id before {next}, which a later record says is the next one"),
            format!("transaction id {xid} in a record {name}"),
        ),
        Contradiction::Block(id, fault) => of_block(id, fault, &name),
    };
    let segment = plan.segment_name(found.lsn);
    let problem = Problem::of_file(ProblemKind::RecordBody, &segment, expected, found_there);
    Problem { lsn: Some(found.lsn), ..problem }
}

/// What redo of a type expects of a block, and what there is.
fn of_block(id: u8, fault: BlockFault, name: &str) -> (String, String) {
    match fault {
        BlockFault::NoImage => (
            format!("an image of block {id}, which redo of {name} restores"),
            "none that is restored".to_owned(),
        ),
        BlockFault::Image(bytes) => {
            let expected =
                format!("an image of block {id} of a record {name} that unpacks to a page");
            let found = match bytes {
                Some(bytes) => format!("one that unpacks to {bytes} bytes, its hole included"),
                None => "one that cannot be unpacked".to_owned(),
            };
            (expected, found)
        }
        BlockFault::Hole => (
            format!("an image of block {id} of a record {name} with its hole within the page"),
            "one whose hole goes on after the end of the page".to_owned(),
        ),
        BlockFault::WillInit(true) => (
            format!("block {id} without the flag WILL_INIT: redo of {name} reads it as it is"),
            "WILL_INIT".to_owned(),
        ),
        BlockFault::WillInit(false) => (
            format!("block {id} with the flag WILL_INIT: redo of {name} makes it anew"),
            "none".to_owned(),
        ),
        BlockFault::Data => {
            (format!("the data of block {id} that redo of {name} reads"), "fewer".to_owned())
        }
        BlockFault::TooLong => (
            format!("data of block {id} of a record {name} that end where its rows do"),
            "more".to_owned(),
        ),
        BlockFault::Twice(other) => (
            format!(
                "another page in block {id} than in block {other}: redo of {name} holds both at once"
            ),
            "the same page".to_owned(),
        ),
        BlockFault::None => (
            format!("a reference to block {id}, which redo of this {name} reads"),
            "none of that id".to_owned(),
        ),
    }
}
