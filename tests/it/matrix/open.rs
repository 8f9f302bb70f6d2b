//! Cases of a server's own `pg_wal`, and of copies of it: the end may be open there, and nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::archive::{Store, write};
use super::case::{Case, Put};
use super::chain::{Chain, PAGE, SEGMENT};
use super::form::Codec;
use super::verdict::{Input, InputKind, Verdict};

/// A server's segments while a case changes them.
pub struct Live<'c> {
    chain: &'c Chain,
    files: BTreeMap<String, Vec<u8>>,
}

impl Live<'_> {
    fn last(&mut self) -> &mut Vec<u8> {
        self.files.get_mut(&self.chain.segments[2].name).expect("the last segment")
    }

    /// Behind the last record.
    fn end(&self) -> usize {
        self.chain.segments[2].last_record().end
    }

    /// Old content of a segment that was recycled, from `start` on.
    fn old_from(&mut self, start: usize) {
        let old = &self.chain.segments[0].plain;
        self.last()[start..].copy_from_slice(&old[start..]);
    }

    fn add(&mut self, steps: u64, bytes: Vec<u8>) {
        self.files.insert(self.chain.name_after(steps), bytes);
    }

    /// Turns a bit of a record over that others follow: `from_end` of them.
    fn turn(&mut self, from_end: usize, offset: usize) {
        let records = &self.chain.segments[2].records;
        let record = &records[records.len() - 1 - from_end];
        let start = record.start;
        self.last()[start + offset] ^= 4;
    }
}

type Change = fn(&mut Live<'_>);

/// Ends that a server leaves.
const ENDS: [(&str, Change); 14] = [
    ("zeros follow", |_| {}),
    ("old content from the next page on", |l| {
        let page = l.end().next_multiple_of(PAGE);
        l.old_from(page);
    }),
    ("old content from the next sector on", |l| {
        let sector = l.end().next_multiple_of(512);
        l.old_from(sector);
    }),
    ("a segment never written follows", |l| l.add(1, vec![0; SEGMENT])),
    ("recycled segments follow", |l| {
        for steps in 1..=2 {
            l.add(steps, l.chain.segments[steps as usize - 1].plain.clone());
        }
    }),
    ("last record torn at a sector, zeros behind", |l| {
        let sector = (l.end() - 1) / 512 * 512;
        l.last()[sector..].fill(0);
    }),
    ("last record torn at a sector, old content behind", |l| {
        let sector = (l.end() - 1) / 512 * 512;
        l.old_from(sector);
    }),
    ("last record's header torn at a sector, zeros behind", |l| {
        let sector = l.chain.segments[2].last_record().start.next_multiple_of(512);
        l.last()[sector..].fill(0);
    }),
    ("last record's header torn at a sector, old content behind", |l| {
        let sector = l.chain.segments[2].last_record().start.next_multiple_of(512);
        l.old_from(sector);
    }),
    ("newest segment never written", |l| l.last().fill(0)),
    ("newest segment recycled, not yet written", |l| l.old_from(0)),
    ("newest segment has a page header only", |l| l.last()[40..].fill(0)),
    ("newest segment never written, others too", |l| {
        l.last().fill(0);
        l.add(1, vec![0; SEGMENT]);
        l.add(2, l.chain.segments[0].plain.clone());
    }),
    ("last record not there, old content from its sector on", |l| {
        let start = l.chain.segments[2].last_record().start;
        l.last()[start..].fill(0);
        l.old_from(start.next_multiple_of(512));
    }),
];

/// What no server leaves.
const DAMAGES: [(&str, Change); 30] = [
    ("length of the last record but one", |l| l.turn(1, 0)),
    ("high length of the last record but one", |l| l.turn(1, 2)),
    ("xid of the last record but one", |l| l.turn(1, 5)),
    ("link of the last record but one", |l| l.turn(1, 9)),
    ("info of the last record but one", |l| l.turn(1, 16)),
    ("resource manager of the last record but one", |l| l.turn(1, 17)),
    ("checksum of the last record but one", |l| l.turn(1, 21)),
    ("data of the last record but one", |l| l.turn(1, 25)),
    ("data of the last record but two", |l| l.turn(2, 25)),
    ("checksum of the last record but five", |l| l.turn(5, 21)),
    ("length of the last record but five", |l| l.turn(5, 0)),
    ("data of a record with pages behind it", |l| l.turn(60, 26)),
    ("length of a record with pages behind it", |l| l.turn(60, 1)),
    ("magic of a page with pages behind it", |l| l.last()[20 * PAGE] ^= 2),
    ("timeline of a page with pages behind it", |l| l.last()[20 * PAGE + 4] ^= 2),
    ("address of the newest page", |l| {
        let page = l.end() / PAGE * PAGE;
        l.last()[page + 9] ^= 0x40;
    }),
    ("a page of zeros with pages behind it", |l| l.last()[30 * PAGE..31 * PAGE].fill(0)),
    ("a sector of zeros with pages behind it", |l| {
        l.last()[30 * PAGE + 1024..30 * PAGE + 1536].fill(0);
    }),
    ("old content on a page with pages behind it", |l| {
        let old = l.chain.segments[0].plain[30 * PAGE..31 * PAGE].to_vec();
        l.last()[30 * PAGE..31 * PAGE].copy_from_slice(&old);
    }),
    ("cut off behind its last record", |l| {
        let end = l.end();
        l.last().truncate(end.next_multiple_of(PAGE));
    }),
    ("cut off inside of its last record", |l| {
        let end = l.end();
        l.last().truncate(end - 5);
    }),
    ("newest segment has no bytes", |l| l.last().clear()),
    ("an empty file follows", |l| l.add(1, Vec::new())),
    ("a short file of zeros follows", |l| l.add(1, vec![0; SEGMENT / 2])),
    ("middle segment missing", |l| {
        let name = l.chain.segments[1].name.clone();
        l.files.remove(&name);
    }),
    ("middle segment only as .partial", |l| {
        let name = l.chain.segments[1].name.clone();
        let bytes = l.files.remove(&name).expect("the middle segment");
        l.files.insert(format!("{name}.partial"), bytes);
    }),
    ("middle segment all zeros", |l| middle(l, |bytes| bytes.fill(0))),
    ("middle segment cut off", |l| middle(l, |bytes| bytes.truncate(SEGMENT / 2))),
    ("middle segment ends in zeros", |l| middle(l, |bytes| bytes[SEGMENT - 3 * PAGE..].fill(0))),
    ("newest segment of another cluster", |l| l.last()[25] ^= 1),
];

fn middle(live: &mut Live<'_>, change: impl FnOnce(&mut Vec<u8>)) {
    let name = &live.chain.segments[1].name;
    change(live.files.get_mut(name).expect("the middle segment"));
}

/// How the program meets them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A folder, `--as pg_wal`.
    Said,
    /// A folder with `archive_status` in it.
    WithStatus,
    /// A data directory.
    DataDirectory,
    /// A folder of segments, of which nothing is known.
    Copy,
    /// A tar of that.
    CopyInTar,
    /// The same folder, `--as archive`.
    SaidArchive,
}

const PLACES: [(Place, &str); 6] = [
    (Place::Said, "pg_wal"),
    (Place::WithStatus, "pg_wal"),
    (Place::DataDirectory, "pg_wal"),
    (Place::Copy, "copy"),
    (Place::CopyInTar, "copy"),
    (Place::SaidArchive, "archive"),
];

impl Place {
    fn taken_for(self) -> InputKind {
        match self {
            Place::Said => InputKind::PgWal,
            Place::SaidArchive => InputKind::Archive,
            _ => InputKind::Whatever,
        }
    }

    fn write(self, live: &Live<'_>, folder: &Path) -> Input {
        let root = folder.join("in");
        let wal: PathBuf = match self {
            Place::DataDirectory => root.join("pg_wal"),
            _ => root.clone(),
        };
        if self == Place::CopyInTar {
            let path = folder.join("in.tar");
            write(&path, &tar(live));
            return Input::Path(path);
        }
        live.files.iter().for_each(|(name, bytes)| write(&wal.join(name), bytes));
        match self {
            Place::WithStatus => fs::create_dir(wal.join("archive_status")).expect("a folder"),
            Place::DataDirectory => write(&root.join("PG_VERSION"), b"15\n"),
            _ => {}
        }
        Input::Path(root)
    }
}

fn tar(live: &Live<'_>) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, bytes) in &live.files {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        tar.append_data(&mut header, name, bytes.as_slice()).expect("a vector takes all");
    }
    tar.into_inner().expect("a vector takes all")
}

/// All cases: every end and every damage, in each place, over a part of the releases.
pub fn all(chains: &[Chain]) -> Vec<Case<'_>> {
    let ends = ENDS.into_iter().map(|(name, change)| (name, change, Verdict::Green));
    let damages = DAMAGES.into_iter().map(|(name, change)| (name, change, Verdict::Red));
    let mut cases = Vec::new();
    for (kind, (name, change, verdict)) in ends.chain(damages).enumerate() {
        for (which, (place, taken_for)) in PLACES.into_iter().enumerate() {
            for (nth, chain) in chains.iter().enumerate() {
                if (kind + which + nth).is_multiple_of(3) {
                    cases.push(case(chain, (name, change, verdict), place, taken_for));
                }
            }
        }
    }
    cases
}

fn case<'c>(
    chain: &'c Chain,
    (name, change, verdict): (&'static str, Change, Verdict),
    place: Place,
    taken_for: &'static str,
) -> Case<'c> {
    let lay = move |_: &Store, folder: &Path| {
        let files = chain.segments.iter().map(|s| (s.name.clone(), s.plain.clone()));
        let mut live = Live { chain, files: files.collect() };
        change(&mut live);
        let input = place.write(&live, folder);
        let is_open = verdict == Verdict::Green;
        // Nothing may be open in an archive.
        let expected = if place == Place::SaidArchive { Verdict::Red } else { verdict };
        let says_open = (is_open && expected == Verdict::Green).then_some(taken_for == "copy");
        Some(Put { input, expected, says_open, taken_for: Some(taken_for) })
    };
    let kind = match place {
        Place::SaidArchive => "open end, checked as an archive",
        Place::Copy | Place::CopyInTar => "copy of pg_wal",
        _ => "pg_wal",
    };
    Case {
        group: format!("{kind}: {name}"),
        subject: format!("{}, {place:?}", chain.name),
        taken_for: place.taken_for(),
        codec: Codec::None,
        lay: Box::new(lay),
    }
}
