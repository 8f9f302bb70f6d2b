//! Backup labels: `backup_label` in a base backup, and the `.backup` history file that an
//! archive keeps beside the segments. Written by `build_backup_content` of
//! `src/backend/access/transam/xlogbackup.c` (up to 14 in `xlog.c`): one `KEY: value` a line.

mod contradiction;
mod data_files;
mod in_tar;
mod within;

use super::control::{self, Control, ControlError};
use super::history_text::Scanned;
use super::names::file_name;
use super::recognise::{Content, read_head, recognise};
use super::storage;
use contradiction::contradiction;
use in_tar::Packed;
use nom::bytes::complete::{tag, take_while1};
use nom::character::complete::space0;
use nom::combinator::{map_opt, opt};
use nom::sequence::{delimited, preceded};
use nom::{IResult, Parser};
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use walstat_format::lsn::Lsn;
use walstat_format::segment::SegmentName;
pub use within::within;

/// More than any label has: its free text has at most 1 kB.
pub(super) const MAX_BYTES: u64 = 64 << 10;

/// What a label says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    /// Where replay has to begin.
    pub start: Lsn,
    /// The checkpoint record to begin from.
    pub checkpoint: Lsn,
    /// The timeline of both.
    pub timeline: u32,
    /// Whether a standby was backed up: then no record in the WAL says where the backup ends.
    pub from_standby: bool,
    /// Where the backup becomes consistent; only a backup history file says it.
    pub stop: Option<Lsn>,
    /// Whether it has only what changed since another backup (`INCREMENTAL FROM LSN`, since 17).
    pub is_incremental: bool,
}

/// Why a file is no label.
#[derive(Debug, thiserror::Error)]
pub enum LabelError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Encrypted.
    #[error("encrypted ({0}), expected a backup_label or .backup file")]
    Encrypted(&'static str),
    /// A directory without a label.
    #[error("no backup_label in this directory, expected that of a backup, or its base.tar")]
    NoFile,
    /// A tar of something else.
    #[error("no backup_label in this tar, expected that of a base backup")]
    NoMember,
    /// A `backup_label` that no server takes.
    #[error("line {0} is {1:?}, expected '{2}: …' to the letter: a server refuses the file")]
    Refused(usize, String, &'static str),
    /// A `backup_label` that says of two timelines that it begins on them.
    #[error(
        "a file of timeline {0} and START TIMELINE {1}, expected one timeline: a server refuses the file"
    )]
    Timelines(u32, u32),
    /// The history of a backup that is not as a server wrote it.
    #[error("{0}: a server did not write it so, and none reads it")]
    Contradiction(&'static str),
    /// A file of another kind.
    #[error("no line '{0}: …', expected a backup_label or .backup file")]
    NoLine(&'static str),
}

/// A label, and the cluster that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupLabel {
    /// The label.
    pub label: Label,
    /// What `pg_control` says, if the label lies in a backup, plain or a tar.
    pub control: Option<Control>,
    /// What is wrong with that `pg_control`, or with another file of a plain backup: a server does not start.
    pub is_broken: Option<String>,
}

/// Reads a label, compressed or not; a directory or a tar stands for the `backup_label` in it. A tar is read
/// to its `pg_control`, which `pg_basebackup` writes last.
pub fn read(path: &Path) -> Result<BackupLabel, LabelError> {
    Ok(read_told(path)?.found)
}

/// A label with what it tells people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldLabel {
    /// The label.
    pub found: BackupLabel,
    /// What the backup was called.
    pub name: Option<String>,
    /// When it began, in the server's words: a time zone may be a mere abbreviation.
    pub start_time: Option<String>,
    /// The same of its end; only a backup history file says it.
    pub stop_time: Option<String>,
}

impl ToldLabel {
    /// Adds what another file says of the same backup: its history says where it ended, and its directory has
    /// its `pg_control`.
    pub fn complete(&mut self, other: &ToldLabel) {
        let (own, others) = (&mut self.found, &other.found);
        own.label.stop = own.label.stop.or(others.label.stop);
        own.label.is_incremental |= others.label.is_incremental;
        own.control = own.control.or(others.control);
        own.is_broken = own.is_broken.take().or_else(|| others.is_broken.clone());
        let fill = |own: &mut Option<String>, others: &Option<String>| {
            *own = own.take().or_else(|| others.clone());
        };
        fill(&mut self.name, &other.name);
        fill(&mut self.start_time, &other.start_time);
        fill(&mut self.stop_time, &other.stop_time);
    }
}

/// The same as [`read`], with what the label tells people.
pub fn read_told(path: &Path) -> Result<ToldLabel, LabelError> {
    read_as(path, false)
}

/// The same of a history that lies in an archive, where it may be damaged as all files may: one that
/// contradicts itself, or its name, is refused.
pub fn read_history(path: &Path) -> Result<ToldLabel, LabelError> {
    read_as(path, true)
}

fn read_as(path: &Path, is_archives: bool) -> Result<ToldLabel, LabelError> {
    let is_directory = storage::is_dir(path);
    let file = if is_directory { path.join(BACKUP_LABEL) } else { path.to_owned() };
    if is_directory && let Err(error) = storage::metadata(&file) {
        return Err(match error.kind() {
            io::ErrorKind::NotFound => LabelError::NoFile,
            _ => error.into(),
        });
    }
    // A pipe that nobody writes to is not waited for; one that is given itself may be a shell's.
    if is_directory && !storage::is_file(&file) {
        return Err(io::Error::other("backup_label in this directory is no file").into());
    }
    let name = file_name(&file);
    let packed = unpacked(storage::open(&file)?, &name, DEPTH_MAX)?;
    let is_servers = packed.is_member || name == BACKUP_LABEL;
    let mut told = told_of(&packed.text, is_servers, is_archives.then_some(&name))?;
    let control = match packed.control {
        Ok(None) => control_beside(path),
        in_tar => in_tar,
    };
    match control {
        Ok(control) => told.found.control = control,
        // That somebody may not read it says nothing of the backup.
        Err(ControlError::Io(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(error.into());
        }
        Err(error) => told.found.is_broken = Some(format!("pg_control: {error}")),
    }
    if let (true, None, Some(directory)) =
        (name == BACKUP_LABEL, &told.found.is_broken, file.parent())
    {
        told.found.is_broken = data_files::unusable(directory, told.found.control.as_ref());
    }
    Ok(told)
}

/// What the text of a history in an archive tells; `file`: its name.
pub fn told(text: &str, file: &str) -> Result<ToldLabel, LabelError> {
    told_of(text, false, Some(file))
}

/// What the text of a label tells, or of a backup history file. `is_servers`: it is a `backup_label`, which
/// a server reads. Nobody but people reads a history, which says the same and where the backup ended;
/// `history`: its name in an archive.
fn told_of(text: &str, is_servers: bool, history: Option<&str>) -> Result<ToldLabel, LabelError> {
    let (label, places) = parse(text)?;
    if is_servers || label.stop.is_none() {
        check_beginning(text)?;
        check_timeline(&label, &places)?;
    } else if let Some(what) = history.and_then(|it| contradiction(text, &label, &places, it)) {
        return Err(LabelError::Contradiction(what));
    }
    let said = |key| text.lines().find_map(|line| value(line, key)).map(str::to_owned);
    Ok(ToldLabel {
        found: BackupLabel { label, control: None, is_broken: None },
        name: said("LABEL"),
        start_time: said("START TIME"),
        stop_time: said("STOP TIME"),
    })
}

/// The label in a directory or in a tar.
pub const BACKUP_LABEL: &str = "backup_label";

/// What each data directory has.
pub(crate) const PG_VERSION: &str = "PG_VERSION";

/// How deep the label may be packed: in a compressed tar.
const DEPTH_MAX: usize = 2;

/// A label, decoded, out of its tar.
fn unpacked(mut reader: impl Read, name: &str, depth: usize) -> Result<Packed, LabelError> {
    let head = read_head(&mut reader)?;
    let content = recognise(&head, name);
    let reader = Cursor::new(head).chain(reader);
    match content {
        Content::Compressed(codec) if depth > 0 => {
            unpacked(&mut *codec.decoder(reader)? as &mut dyn Read, "", depth - 1)
        }
        Content::Tar if depth > 0 => in_tar::read(reader),
        Content::Encrypted(encryption) => Err(LabelError::Encrypted(encryption.name())),
        _ => Ok(Packed::label(plain(reader)?)),
    }
}

fn plain(reader: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    reader.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The files that a label names.
#[derive(Debug, Clone, Copy)]
struct Places {
    /// That of its start.
    start: Option<SegmentName>,
    /// That of the backup's end.
    stop: Option<SegmentName>,
}

/// Reads the text of a label.
fn parse(text: &str) -> Result<(Label, Places), LabelError> {
    let line = |key: &'static str| text.lines().find_map(|line| value(line, key));
    let place = |key| line(key).and_then(location);
    let (_, (start, file)) =
        place("START WAL LOCATION").ok_or(LabelError::NoLine("START WAL LOCATION"))?;
    let (_, (checkpoint, _)) =
        place("CHECKPOINT LOCATION").ok_or(LabelError::NoLine("CHECKPOINT LOCATION"))?;
    // Since 11; before, the name of the first segment tells the timeline.
    let timeline = line("START TIMELINE").and_then(|value| value.trim().parse().ok());
    let timeline = timeline.or(file.map(|name| name.timeline));
    let (stop, stop_file) = place("STOP WAL LOCATION").map(|(_, place)| place).unzip();
    let label = Label {
        start,
        checkpoint,
        timeline: timeline.ok_or(LabelError::NoLine("START TIMELINE"))?,
        from_standby: line("BACKUP FROM").is_some_and(|from| from.trim() == "standby"),
        stop,
        is_incremental: line("INCREMENTAL FROM LSN").is_some(),
    };
    Ok((label, Places { start: file, stop: stop_file.flatten() }))
}

/// The first two lines of a `backup_label`, as a server reads them: nothing before or after what they have
/// to say (`read_backup_label` in `src/backend/access/transam/xlogrecovery.c`).
fn check_beginning(text: &str) -> Result<(), LabelError> {
    let keys = ["START WAL LOCATION", "CHECKPOINT LOCATION"];
    for (index, (line, key)) in text.split('\n').zip(keys).enumerate() {
        let rest = value(line, key).and_then(location).map(|(rest, _)| rest);
        if rest != Some("") {
            let found = line.chars().take(LINE_SHOWN).collect();
            return Err(LabelError::Refused(index + 1, found, key));
        }
    }
    Ok(())
}

/// The timeline that the name of the first segment has, and the one that is said since 11, are one
/// (`read_backup_label` again).
fn check_timeline(label: &Label, places: &Places) -> Result<(), LabelError> {
    match places.start.filter(|file| file.timeline != label.timeline) {
        Some(file) => Err(LabelError::Timelines(file.timeline, label.timeline)),
        None => Ok(()),
    }
}

/// Characters of a line that a message shows.
const LINE_SHOWN: usize = 80;

fn value<'t>(line: &'t str, key: &'static str) -> Option<&'t str> {
    let parser = |input| -> IResult<&'t str, &'t str> {
        preceded((tag(key), tag(":"), space0), nom::combinator::rest).parse(input)
    };
    parser(line).ok().map(|(_, value)| value)
}

/// `0/2000028 (file 000000010000000000000002)`, the file only where there is one; and what follows it.
fn location(value: &str) -> Option<(&str, (Lsn, Option<SegmentName>))> {
    let mut scanned = Scanned { left: value.as_bytes() };
    let lsn = scanned.lsn()?;
    let rest = value.get(value.len().checked_sub(scanned.left.len())?..)?;
    // A server reads digits of either case.
    let named = |digits: &str| SegmentName::parse(&digits.to_ascii_uppercase());
    let name = map_opt(take_while1(|c: char| c.is_ascii_hexdigit()), named);
    let mut file = opt(delimited((space0, tag("(file ")), name, tag(")")));
    let read: IResult<&str, Option<SegmentName>> = file.parse(rest);
    read.ok().map(|(rest, file)| (rest, (lsn, file)))
}

/// The `pg_control` beside a label that lies in a plain backup; `None` where it does not, or where it is of a
/// release that is not read.
fn control_beside(label: &Path) -> Result<Option<Control>, ControlError> {
    let directory: PathBuf = match label.parent() {
        Some(parent) if !storage::is_dir(label) => parent.to_owned(),
        _ => label.to_owned(),
    };
    // A label may be kept alone. Of a whole backup, `pg_basebackup` writes `pg_control` last.
    let is_backup = || storage::exists(&directory.join(PG_VERSION));
    if !storage::exists(&control::path(&directory)) && !is_backup() {
        return Ok(None);
    }
    as_known(control::read(&directory))
}

/// A `pg_control`; `None` where it is of a release that is not read.
fn as_known(read: Result<Control, ControlError>) -> Result<Option<Control>, ControlError> {
    match read {
        // Zeros, as after a crash of the file system.
        Err(error @ ControlError::Version(0)) => Err(error),
        Err(ControlError::Version(_) | ControlError::ByteSwapped) => Ok(None),
        result => result.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABEL: &str = "START WAL LOCATION: 0/2000028 (file 000000030000000000000002)\n\
        CHECKPOINT LOCATION: 0/2000080\nBACKUP METHOD: streamed\nBACKUP FROM: primary\n\
        START TIME: 2026-11-21 09:12:01 UTC\nLABEL: START WAL LOCATION: nonsense\n\
        START TIMELINE: 3\n";

    #[test]
    fn a_label_says_where_replay_begins() {
        let label = parse(LABEL).ok().map(|(label, _)| label);
        let want = Label {
            start: Lsn(0x0200_0028),
            checkpoint: Lsn(0x0200_0080),
            timeline: 3,
            from_standby: false,
            stop: None,
            is_incremental: false,
        };
        assert_eq!(label, Some(want));
    }

    #[test]
    fn a_history_file_says_where_the_backup_is_consistent() {
        let stop = "\nSTOP WAL LOCATION: 0/2000130 (file 000000030000000000000002)\n";
        let history = LABEL.replace("\nCHECKPOINT", &format!("{stop}CHECKPOINT"));
        assert_eq!(parse(&history).ok().and_then(|(l, _)| l.stop), Some(Lsn(0x0200_0130)));
    }

    #[test]
    fn before_11_the_first_segment_tells_the_timeline() {
        let old = LABEL.replace("START TIMELINE: 3\n", "");
        assert_eq!(parse(&old).ok().map(|(l, _)| l.timeline), Some(3));
        let without = old.replace(" (file 000000030000000000000002)", "");
        assert!(matches!(parse(&without), Err(LabelError::NoLine("START TIMELINE"))));
    }

    #[test]
    fn the_first_segment_may_be_in_small_digits() {
        let small = LABEL.replace("000000030000000000000002", "0000000300000000000000ab");
        assert_eq!(told(&small, "").ok().map(|label| label.found.label.timeline), Some(3));
    }

    #[test]
    fn a_label_of_two_timelines_is_refused() {
        assert!(told(LABEL, "").is_ok());
        let text = LABEL.replace("(file 00000003", "(file 00000002");
        assert!(matches!(told(&text, ""), Err(LabelError::Timelines(2, 3))));
    }

    #[test]
    fn a_standby_is_told_apart() {
        let standby = LABEL.replace("primary", "standby");
        assert_eq!(parse(&standby).ok().map(|(l, _)| l.from_standby), Some(true));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "1\t0/3000000\tno recovery target\n", "START WAL LOCATION: here\n"] {
            assert!(matches!(parse(text), Err(LabelError::NoLine("START WAL LOCATION"))), "{text}");
        }
    }

    /// As it was cut, or with one digit changed.
    #[test]
    fn a_history_that_contradicts_itself_is_refused() {
        let history = "START WAL LOCATION: 0/A00028 (file 00000001000000000000000A)\n\
            STOP WAL LOCATION: 0/B00000 (file 00000001000000000000000A)\n\
            CHECKPOINT LOCATION: 0/A00060\nBACKUP METHOD: streamed\nBACKUP FROM: primary\n\
            START TIME: 2026-11-21 09:12:01 UTC\nLABEL: x\nSTART TIMELINE: 1\n\
            STOP TIME: 2026-11-21 09:12:02 UTC\nSTOP TIMELINE: 1\n";
        let name = "00000001000000000000000A.00000028.backup.gz";
        assert!(told(history, name).is_ok() && told(history, "").is_ok());
        let is_refused =
            |text: &str, name: &str| matches!(told(text, name), Err(LabelError::Contradiction(_)));
        let stop_time = history.find("STOP TIMELINE").expect("the line after it");
        for end in history.find("0/B00000").expect("its end")..history.len() - 1 {
            let is_label = told(&history[..end], name).is_ok();
            assert_eq!(is_label, end == stop_time, "{}", &history[..end]);
        }
        for (from, to) in [
            ("0/B00000", "1/B00000"),
            (
                "0/B00000 (file 00000001000000000000000A)",
                "0/B00000 (file 00000001000000000000001A)",
            ),
            ("0/A00060", "0/A00006"),
            ("0/A00028", "0/B00028"),
            ("START TIMELINE: 1", "START TIMELINE: 2"),
        ] {
            assert!(is_refused(&history.replace(from, to), ""), "{to}");
        }
        assert!(is_refused(history, "00000001000000000000000B.00000028.backup"));
        assert!(is_refused(history, "00000002000000000000000A.00000028.backup"));
    }
}
