//! The same segment more than once: raw and compressed, whole and partial, from two servers.
//! It counts once; whether the copies agree is looked at byte by byte.

use super::discover::{Candidate, file_name};
use super::problem::Problem;
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
    /// Two copies contradict each other.
    pub problem: Option<Problem>,
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
    let mut verdict = Verdict { best: 0, duplicate_bytes: 0, problem: None };
    let mut lengths = vec![0; copies.len()];
    for (index, copy) in copies.iter().enumerate().skip(1) {
        let Some(best) = copies.get(verdict.best) else { continue };
        let (relation, ours, theirs) = relate(best, copy, start, geometry);
        lengths[verdict.best] = ours;
        lengths[index] = theirs;
        match relation {
            Relation::Agree { better: true } => verdict.best = index,
            Relation::Agree { better: false } => {}
            Relation::Differ { offset } => {
                let (expected, found) = (file_name(&best.path), file_name(&copy.path));
                verdict.problem = Some(Problem {
                    lsn: Some(Lsn(start.0 + offset)),
                    ..Problem::of_file(
                        "duplicate_differs",
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

/// Reads two copies side by side. Gives how they relate and how long each is.
fn relate(a: &Candidate, b: &Candidate, start: Lsn, geometry: &Geometry) -> (Relation, u64, u64) {
    let page_bytes = geometry.page_bytes as usize;
    let mut copies = [a, b].map(|copy| Copy::open(copy, page_bytes));
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
        offset += geometry.page_bytes as u64;
    }
    let [a, b] = copies;
    (relation.unwrap_or(Relation::Agree { better: false }), a.length, b.length)
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
struct Copy {
    bytes: Option<Bytes<'static>>,
    buffer: Vec<u8>,
    filled: usize,
    length: u64,
}

impl Copy {
    fn open(candidate: &Candidate, page_bytes: usize) -> Copy {
        let bytes = candidate.probe.source.open(0).ok();
        Copy { bytes, buffer: vec![0; page_bytes], filled: 0, length: 0 }
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
