//! What is wrong with the WAL is not an error but a problem: it is reported, and reading goes on. Here
//! are all kinds of problems, with their names and descriptions.

use super::history_text::{HistoryFault, WrongHistory};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use walstat_format::lsn::Lsn;

named! {
    /// Kinds of problems: what was found. `docs/problems.md` has the same table. New ones stand at the
    /// end: partial results have their numbers.
    pub enum ProblemKind {
        Checksum "checksum" "A record's checksum fails; it is not counted";
        RecordLength "record_length" "A record has a length that none can have";
        Rmgr "rmgr" "A record is of a resource manager that the release does not have";
        PrevLink "prev_link" "A record does not link to the one before it";
        RecordBody "record_body"
            "A record's checksum holds and its parts do not add up, or it says what cannot be";
        Continuation "continuation"
            "A page does not continue the record begun before, or continues one that was not begun";
        ZeroPage "zero_page" "Zeros where a page should be, with records after them";
        ZeroHole "zero_hole" "Zeros where a record should be, with records after them";
        PageMagic "page_magic" "A page is of another release";
        PageFlags "page_flags" "A page header has flags that the release does not know";
        PageAddress "page_address" "A page belongs to another place";
        PageTimeline "page_timeline"
            "A page is of an older timeline than the one before, or of a newer one than its file";
        ForeignSegment "foreign_segment"
            "A page is of another cluster, or of another segment or page size";
        Truncated "truncated" "A file ends before its segment is full";
        Unreadable "unreadable" "Bytes cannot be read: an I/O error, a stream that cannot be decoded";
        MissingSegment "missing_segment"
            "Segments are missing between two others, or only their .partial is there; consecutive ones are \
             one problem";
        DuplicateDiffers "duplicate_differs" "Two copies of a segment contradict each other";
        OtherCluster "other_cluster" "A segment is of another cluster";
        OtherRelease "other_release" "A segment is of another release";
        SegmentSize "segment_size" "A segment is of another size";
        SegmentName "segment_name" "A file has a name that is not possible with this segment size";
        NotWal "not_wal" "A file with a segment's name holds something else, or is no file";
        TrailingBytes "trailing_bytes" "A file has more bytes than a segment";
        CodecChecksum "codec_checksum"
            "A compressed file does not end as it should, after a whole segment";
        ArchiveChecksum "archive_checksum"
            "A segment's SHA-1 is not the one in the file's pgBackRest name";
        OpenSegment "open_segment"
            "A segment under its full name in an archive is not filled to its end";
        History "history" "A timeline's history cannot be read, or does not fit the records";
        MissingHistory "missing_history"
            "The history of a timeline is missing, and there are segments of it and of an older one";
        RangeNotCovered "range_not_covered" "The range asked for is longer than the WAL";
        WalLevel "wal_level"
            "wal_level becomes minimal in an archive: no base backup is restored across it";
        ArchiveInfo "archive_info"
            "pgBackRest's archive.info and its copy are missing or damaged: it finds no segment without them";
    }
}

impl ProblemKind {
    /// Whether records are damaged from some place on, and those before it are not.
    pub fn is_of_records(self) -> bool {
        use ProblemKind::*;
        matches!(
            self,
            Checksum
                | RecordLength
                | Rmgr
                | PrevLink
                | RecordBody
                | Continuation
                | ZeroPage
                | ZeroHole
                | PageMagic
                | PageFlags
                | PageAddress
                | PageTimeline
                | ForeignSegment
                | OpenSegment
        )
    }

    /// Whether it is the file that is broken, whatever records it holds.
    pub fn is_of_file(self) -> bool {
        use ProblemKind::*;
        matches!(
            self,
            Truncated | Unreadable | TrailingBytes | CodecChecksum | ArchiveChecksum | OpenSegment
        )
    }
}

/// Where else to look at what a problem is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Elsewhere {
    /// What is wrong was seen there, after the problem's own place.
    SeenAt(Lsn),
    /// It is a record that begins there, in a segment before.
    Begins {
        /// Where.
        at: Lsn,
        /// Whether that segment may be the wrong one, too.
        may_be_wrong: bool,
    },
    /// It is a record that goes on in so many segments, and nothing tells which of them is wrong.
    GoesOn {
        /// Segments after the problem's own.
        segments: u32,
        /// Where the record ends.
        to: Lsn,
    },
    /// The records of two neighbouring segments do not link, and it is not judged yet which of both is wrong.
    Apart {
        /// The last record of the earlier one.
        last: Lsn,
        /// Whether it goes on in the later one.
        goes_on: bool,
        /// Whether it is a switch with a record behind it that links to it: no server writes that.
        is_followed: bool,
    },
}

/// As it is said after what was found.
impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Elsewhere::SeenAt(lsn) => write!(f, " at {lsn}"),
            Elsewhere::Begins { at, may_be_wrong: false }
            | Elsewhere::Apart { last: at, goes_on: true, .. } => {
                write!(f, "; the record at {at} goes on there")
            }
            Elsewhere::Apart { .. } => Ok(()),
            Elsewhere::Begins { at, may_be_wrong: true } => {
                write!(f, "; the record at {at}, which may be wrong too, goes on there")
            }
            Elsewhere::GoesOn { segments: 1, .. } => {
                f.write_str("; the record goes on in the next segment, which may be the wrong one")
            }
            Elsewhere::GoesOn { segments, to } => write!(
                f,
                "; the record goes on in the next {segments} segments, up to {to}, and any of these {} may \
                 be the wrong one",
                u64::from(*segments) + 1
            ),
        }
    }
}

/// How a file comes to the server that a restore fetches it for, where its kind of problem does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fetched {
    /// Without an error, and in another size than a segment's, at which the server ends.
    InAnotherSize,
    /// Not at all: it cannot be read.
    NotAtAll,
    /// Not at all: it is a copy below the directory of another one, or behind it, which is fetched.
    Another,
}

/// Something wrong in the WAL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The kind.
    pub kind: ProblemKind,
    /// Segment file; empty until the segment is looked up by the LSN.
    pub segment: String,
    /// Where.
    pub lsn: Option<Lsn>,
    /// What should be there.
    pub expected: String,
    /// What is there; [`Problem::whole_found`] says where else to look, too.
    pub found: String,
    /// Where else to look.
    pub elsewhere: Option<Elsewhere>,
    /// How the file comes to a server.
    pub fetched: Option<Fetched>,
    /// What is wrong with a history, if that is not told from other files.
    pub history: Option<HistoryFault>,
    /// Bytes that are not counted because of it.
    pub skipped_bytes: u64,
}

/// What is found where consecutive segments are missing, of which this is the last one.
pub fn none_of(segments: u64, last: &str) -> String {
    match segments {
        1 => "no such file".to_owned(),
        _ => format!("none of {segments} segments, up to {last}"),
    }
}

impl Problem {
    /// A stanza of pgBackRest without a sound archive.info; `fault`: what is wrong with the first one there.
    pub(crate) fn no_archive_info(fault: Option<String>) -> Problem {
        let expected = "archive.info, or its copy, with the checksum that it says".into();
        let found = fault.unwrap_or_else(|| "neither of them".into());
        Problem::of_file(ProblemKind::ArchiveInfo, "archive.info", expected, found)
    }

    /// A problem of a whole file; empty: of the segment in which its place will lie.
    pub fn of_file(kind: ProblemKind, file: &str, expected: String, found: String) -> Problem {
        let segment = file.to_owned();
        Problem {
            kind,
            segment,
            lsn: None,
            expected,
            found,
            elsewhere: None,
            fetched: None,
            history: None,
            skipped_bytes: 0,
        }
    }

    /// A problem of a history.
    pub(crate) fn of_history(file: &str, expected: String, wrong: WrongHistory) -> Problem {
        let problem = Problem::of_file(ProblemKind::History, file, expected, wrong.found);
        Problem { history: Some(wrong.fault), ..problem }
    }

    /// From where to where bytes are not counted because of it. A record that begins in an earlier segment is
    /// not counted from its beginning on, which lies before the problem's own place.
    pub fn skipped(&self) -> Option<Range<Lsn>> {
        let begin = match self.elsewhere {
            Some(Elsewhere::Begins { at, .. }) => at,
            _ => self.lsn?,
        };
        Some(begin..Lsn(begin.0.saturating_add(self.skipped_bytes)))
    }

    /// Whether bytes are not counted because of it up to `lsn`, or from there on.
    pub fn touches(&self, lsn: Lsn) -> bool {
        self.skipped().is_some_and(|skipped| skipped.start <= lsn && lsn <= skipped.end)
    }

    /// What is there, and where else to look.
    pub fn whole_found(&self) -> String {
        let elsewhere = self.elsewhere.map_or_else(String::new, |place| place.to_string());
        format!("{}{elsewhere}", self.found)
    }

    /// More bytes in a file than the segment's own header says.
    pub fn trailing_bytes(file: &str, segment_bytes: u64) -> Problem {
        let found = "more bytes than the segment's own header says".to_owned();
        let expected = format!("{segment_bytes} bytes");
        Problem::of_file(ProblemKind::TrailingBytes, file, expected, found)
    }
}
