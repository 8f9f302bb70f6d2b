//! The same segment more than once: raw and compressed, whole and partial, from two servers.
//! It counts once; whether the copies agree is looked at byte by byte.

use super::discover::{Candidate, file_name};
use super::problem::{Problem, ProblemKind};
use super::source::Bytes;
use crate::wal::lsn::Lsn;
use crate::wal::page::{Geometry, PageHeader};

/// What came of comparing the copies of one segment.
#[derive(Debug)]
pub struct Verdict {
    /// Index of the copy to read.
    pub best: usize,
    /// Bytes of all others, uncompressed.
    pub duplicate_bytes: u64,
    /// Copies that contradict each other, or are longer than a segment.
    pub problems: Vec<Problem>,
}

/// How two copies relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// The same bytes, or one is the beginning of the other, or one has zeros or older content
    /// where the other has WAL. `better`: whether the second one holds more.
    Agree { better: bool },
    /// Both have WAL of this place, and not the same.
    Differ { offset: u64 },
}

/// Compares each copy with the best one before it. `start`: where the segment begins.
pub fn compare(copies: &[Candidate], start: Lsn, geometry: &Geometry) -> Verdict {
    let mut verdict = Verdict { best: 0, duplicate_bytes: 0, problems: Vec::new() };
    let mut lengths = vec![0; copies.len()];
    for (index, copy) in copies.iter().enumerate().skip(1) {
        let Some(best) = copies.get(verdict.best) else { continue };
        let (relation, [ours, theirs]) = relate(best, copy, start, geometry);
        lengths[verdict.best] = ours.length;
        lengths[index] = theirs.length;
        if theirs.goes_on {
            let bytes = u64::from(geometry.segment_bytes);
            verdict.problems.push(Problem::trailing_bytes(&file_name(&copy.path), bytes));
        }
        match relation {
            Relation::Agree { better: true } => verdict.best = index,
            Relation::Agree { better: false } => {}
            Relation::Differ { offset } => {
                let (expected, found) = (file_name(&best.path), file_name(&copy.path));
                verdict.problems.push(Problem {
                    lsn: Some(Lsn(start.0 + offset)),
                    ..Problem::of_file(
                        ProblemKind::DuplicateDiffers,
                        &found,
                        format!("the bytes of {expected}"),
                        format!("other bytes from offset {offset} on"),
                    )
                });
            }
        }
    }
    let all: u64 = lengths.iter().sum();
    verdict.duplicate_bytes = all - lengths.get(verdict.best).copied().unwrap_or(0);
    verdict
}

/// What was read of a copy.
#[derive(Debug, Clone, Copy)]
struct Extent {
    /// Uncompressed bytes, not more than a segment has.
    length: u64,
    /// More bytes follow.
    goes_on: bool,
}

/// Reads two copies side by side. Gives how they relate, and what there is of each.
fn relate(
    a: &Candidate,
    b: &Candidate,
    start: Lsn,
    geometry: &Geometry,
) -> (Relation, [Extent; 2]) {
    let page_bytes = geometry.page_bytes as usize;
    let mut copies = [a, b].map(|copy| Duplicate::open(copy, page_bytes));
    let mut relation = None;
    let mut offset = 0;
    while offset < u64::from(geometry.segment_bytes) {
        let [a, b] = &mut copies;
        let (more_a, more_b) = (a.next_page(), b.next_page());
        if !more_a && !more_b {
            break;
        }
        if relation.is_none() && a.page() != b.page() {
            relation = Some(judge(a.page(), b.page(), Lsn(start.0 + offset), geometry));
        }
        offset += page_bytes as u64;
    }
    let extents = copies.map(|mut copy| Extent { length: copy.length, goes_on: copy.next_page() });
    (relation.unwrap_or(Relation::Agree { better: false }), extents)
}

/// Two pages of the same place that are not the same.
fn judge(a: &[u8], b: &[u8], lsn: Lsn, geometry: &Geometry) -> Relation {
    let is_ours = |page: &[u8]| {
        PageHeader::parse(page)
            .is_some_and(|h| h.address == lsn && h.magic == geometry.version.magic)
    };
    match (is_ours(a), is_ours(b)) {
        (true, false) => Relation::Agree { better: false },
        (false, true) => Relation::Agree { better: true },
        (false, false) => Relation::Agree { better: b.len() > a.len() },
        (true, true) => {
            let same = a.iter().zip(b).position(|(x, y)| x != y).unwrap_or(a.len().min(b.len()));
            let rest = |page: &[u8]| page.get(same..).unwrap_or_default().iter().all(|&b| b == 0);
            match (rest(a), rest(b)) {
                (_, true) => Relation::Agree { better: false },
                (true, false) => Relation::Agree { better: true },
                (false, false) => Relation::Differ {
                    offset: lsn.0 % u64::from(geometry.segment_bytes) + same as u64,
                },
            }
        }
    }
}

/// A copy being read page by page; what cannot be read is its end.
struct Duplicate {
    bytes: Option<Bytes<'static>>,
    buffer: Vec<u8>,
    filled: usize,
    length: u64,
}

impl Duplicate {
    fn open(candidate: &Candidate, page_bytes: usize) -> Duplicate {
        let bytes = candidate.probe.source.open(0).ok();
        Duplicate { bytes, buffer: vec![0; page_bytes], filled: 0, length: 0 }
    }

    fn next_page(&mut self) -> bool {
        let filled = self.bytes.as_mut().and_then(|bytes| bytes.fill(&mut self.buffer).ok());
        self.filled = filled.unwrap_or(0);
        self.length += self.filled as u64;
        self.filled > 0
    }

    fn page(&self) -> &[u8] {
        self.buffer.get(..self.filled).unwrap_or_default()
    }
}
