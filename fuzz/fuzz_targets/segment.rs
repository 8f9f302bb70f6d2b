//! Pages of one to three segments: the books close, and any division into runs gives what one
//! run gives. Segments have a few pages only, so that a short input crosses many borders. Not for
//! files, names and archives: those are the targets `program` and `archive`.
#![no_main]

mod shape;

use libfuzzer_sys::fuzz_target;
use shape::{SEGMENTS, Shape};
use std::path::PathBuf;
use walstat::analyse::clock::Clock;
use walstat::analyse::totals::RecordTable;
use walstat::input::plan::{Plan, Segment};
use walstat::input::source::{Bytes, Source};
use walstat::scan::outcome::{Outcome, conclude};
use walstat::scan::pages::{Pages, Progress};
use walstat::scan::reader::{Flow, Reader};
use walstat::scan::record::{Record, Select};
use walstat::scan::run::Run;
use walstat::scan::scope::Scope;
use walstat::wal::crc::Crc32c;
use walstat::wal::lsn::Lsn;

type Statistics = (RecordTable, Clock);

/// Lets resource managers with an even id pass, or all.
#[derive(Clone)]
struct Even(bool);

impl Select for Even {
    fn accepts(&self, record: &Record<'_>) -> bool {
        !self.0 || record.header.rmgr.is_multiple_of(2)
    }
}

fuzz_target!(|data: &[u8]| {
    let shape = Shape::of(data, None);
    let (start, end) = shape.range;
    let scope = Scope {
        geometry: shape.geometry,
        crc: shape.checked.then(Crc32c::detect),
        start,
        end,
        limit: shape.limit,
        select: Even(shape.filter),
    };
    let mut plan = Plan::new(shape.geometry);
    plan.timeline = shape.timeline;
    plan.segments = segments(&shape);
    if plan.clip(start, end).is_err() {
        return;
    }
    let whole = read(&plan, &shape, &scope, 0);
    check(&shape, &whole);
    if scope.limit.is_none() {
        // A bit for each border between two segments: there a run ends.
        for cuts in 1..1 << (SEGMENTS - 1) {
            compare(&whole, &read(&plan, &shape, &scope, cuts));
        }
    }
});

fn segments(shape: &Shape) -> Vec<Segment> {
    let present = shape.segments.iter().enumerate().filter(|(_, bytes)| bytes.is_some());
    let segment = |(index, _)| Segment {
        number: shape.first + index as u64,
        timeline: shape.timeline,
        raw_bytes: None,
        modified: None,
        sha1: None,
        partial: false,
        source: Source::Streamed(PathBuf::from(format!("segment {index}"))),
    };
    present.map(segment).collect()
}

/// Reads all segments. Runs end where one is missing and where `cuts` has a bit.
fn read(plan: &Plan, shape: &Shape, scope: &Scope<Even>, cuts: u8) -> Option<Outcome<Statistics>> {
    let mut stretches: Vec<Vec<Run<Statistics>>> = Vec::new();
    let mut tasks: Vec<Vec<&Segment>> = Vec::new();
    for segment in &plan.segments {
        let index = segment.number - shape.first;
        let follows = |task: &Vec<&Segment>| task.last().is_some_and(|s| s.number + 1 == segment.number);
        let cut = index > 0 && cuts >> (index - 1) & 1 == 1;
        match tasks.last_mut().filter(|task| follows(task)) {
            Some(task) if !cut => task.push(segment),
            Some(_) => tasks.push(vec![segment]),
            None => {
                stretches.push(Vec::new());
                tasks.push(vec![segment]);
            }
        }
        let missing_before = stretches.last().is_some_and(Vec::is_empty);
        if missing_before {
            // Everything before belongs to an earlier stretch.
            let _ = missing_before;
        }
    }
    drop(stretches);
    let mut joined: Vec<Run<Statistics>> = Vec::new();
    for task in tasks {
        let run = read_run(&task, shape, scope);
        match joined.pop_if(|before| before.end == run.start) {
            Some(before) => joined.push(before.join(run, scope)),
            None => joined.push(run),
        }
    }
    conclude(plan, joined)
}
