//! WAL in memory for the benches: a real sample and tiny records made on purpose; no server.
//!
//! Each set knows how many records it holds and how many bytes they have, found once by the
//! reader with all its checks on; a bench that finds anything else fails.
#![allow(dead_code, reason = "each bench is a program of its own and uses a part of this")]

#[path = "../../tests/common/builder.rs"]
pub mod builder;
#[path = "../../tests/common/disk.rs"]
pub mod disk;
#[path = "../../tests/common/record.rs"]
pub mod record;

use builder::{Form, Wal};
use criterion::Criterion;
use disk::Disk;
use record::{Block, HEAP, Rec};
use std::fs;
use std::path::Path;
use std::time::Duration;
use walstat_format::crc::Crc32c;
use walstat_format::lsn::Lsn;
use walstat_format::page::Geometry;
use walstat_format::record::Record;
use walstat_format::segment::SegmentName;
use walstat_read::scan::observe::Observe;
use walstat_read::scan::observer::Observer;
use walstat_read::scan::reader::Reader;
use walstat_read::scan::scope::Scope;
use walstat_read::scan::streamed::Wanted;

/// Segments in memory.
pub struct Set {
    /// What a bench calls it.
    pub name: &'static str,
    /// The segments, ascending.
    pub disk: Disk,
    /// Records and the sum of their lengths.
    pub expected: Counted,
}

/// The least that can be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// Records.
    pub records: u64,
    /// The sum of their lengths.
    pub bytes: u64,
}

impl Observe for Counted {
    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        self.records += 1;
        self.bytes += u64::from(record.header.total_bytes);
    }

    fn merge(&mut self, later: Counted) {
        self.records += later.records;
        self.bytes += later.bytes;
    }
}

/// Real WAL of PostgreSQL 15: 1 MB segments with nearly every kind of record, images too.
pub fn mixed() -> Set {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/pg15-mixed");
    let mut form = Form::of("15");
    let mut files = std::collections::BTreeMap::new();
    for entry in fs::read_dir(&folder).expect("the sample's folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(number) = SegmentName::parse(name).and_then(|n| n.number(form.segment as u32))
        else {
            continue;
        };
        let file = fs::File::open(&path).expect("a segment");
        files.insert(number, zstd::decode_all(file).expect("a zstd file"));
    }
    // The long header of the first page names the cluster.
    let first = files.values().next().expect("a segment");
    form.system = u64::from_le_bytes(first[24..32].try_into().expect("8 bytes"));
    Set::new("mixed", Disk { form, files })
}

/// 16 MB of inserts of 59 bytes, as one `INSERT ... SELECT` into a narrow table writes them.
pub fn tiny() -> Set {
    let form = Form { segment: 16 << 20, ..Form::of("15") };
    let mut wal = Wal::new(form, 1);
    let insert = Rec::new(HEAP, 0x00, 3).block(Block::new(0).data(10));
    while wal.at() + 100 < 2 * form.segment {
        wal.add(&insert);
    }
    Set::new("tiny", wal.finish())
}

impl Set {
    fn new(name: &'static str, disk: Disk) -> Set {
        let mut set = Set { name, disk, expected: Counted::default() };
        set.expected = set.scan::<Counted>(Some(Crc32c::portable()));
        assert!(set.expected.records > 10_000, "{name}: {:?}", set.expected);
        set
    }

    /// Bytes of all segments.
    pub fn bytes(&self) -> u64 {
        self.disk.total()
    }

    /// What a reader has to know of them.
    pub fn scope(&self, crc: Option<Crc32c>) -> Scope {
        let form = self.disk.form;
        let geometry = Geometry {
            version: form.version,
            system_identifier: form.system,
            segment_bytes: form.segment as u32,
            page_bytes: form.page as u32,
        };
        Wanted { crc, ..Wanted::default() }.scope(geometry)
    }

    /// Reads all pages as one run, and returns what was counted; fails on damage.
    pub fn scan<O: Observe + Default>(&self, crc: Option<Crc32c>) -> O {
        let scope = self.scope(crc);
        let (start, end) = (self.disk.start(), self.disk.end());
        let mut reader = Reader::new(&scope, start, end, Observer::at_once(O::default()));
        for (number, segment) in &self.disk.files {
            reader.begin_segment(u32::MAX);
            reader.push(Lsn(number * self.disk.form.segment), segment);
        }
        let run = reader.finish();
        assert!(run.problems.is_empty(), "{:?}", run.problems);
        run.observer.into_inner().expect("what was counted")
    }

    /// Calls `visit` for every record that lies in one page.
    pub fn for_each_whole_record(&self, mut visit: impl FnMut(&[u8])) {
        let scope = self.scope(None);
        let (start, end) = (self.disk.start(), self.disk.end());
        let mut reader = Reader::new(&scope, start, end, Observer::new(Places::default()));
        for (number, segment) in &self.disk.files {
            reader.begin_segment(u32::MAX);
            reader.push(Lsn(number * self.disk.form.segment), segment);
        }
        let form = self.disk.form;
        let places: Places = reader.finish().observer.into_inner().expect("what was seen");
        for (lsn, bytes) in places.0 {
            let segment = &self.disk.files[&(lsn.0 / form.segment)];
            let at = (lsn.0 % form.segment) as usize;
            if at % form.page as usize + bytes <= form.page as usize {
                visit(&segment[at..at + bytes]);
            }
        }
    }
}

/// Where the records are, and how long.
#[derive(Debug, Clone, Default)]
struct Places(Vec<(Lsn, usize)>);

impl Observe for Places {
    fn observe(&mut self, record: &Record<'_>) {
        self.0.push((record.lsn, record.header.total_bytes as usize));
    }

    fn merge(&mut self, later: Places) {
        self.0.extend(later.0);
    }
}

/// Short measurements: the ratios matter, and they show in a few seconds.
pub fn criterion() -> Criterion {
    Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args()
}
