//! Transactions that have ended in a part of the WAL: until what came before is known, none can be left out,
//! for any of them may have begun there. Nearly all have begun here, did nothing worth telling and are passed
//! over later: these are kept in few bytes each.

use super::changes::{Changes, RowChange};
use super::ended::{Before, End, Ended};
use super::file_works::{FileWork, FileWorks};
use walstat_format::block::RelFileLocator;
use walstat_format::lsn::Lsn;
use walstat_format::payload::Time;

/// Transactions in the order in which they ended.
#[derive(Debug, Clone, Default)]
pub(super) struct EndedLog {
    plain: Vec<Plain>,
    /// Of those the files, one after the other.
    files: Vec<PlainFile>,
    /// All others.
    others: Vec<Ended>,
}

/// A transaction without subtransactions that wrote rows and pages of few files, and nothing else.
#[derive(Debug, Clone, Copy)]
struct Plain {
    lsn: Lsn,
    time: Time,
    xid: u32,
    /// Zero: none.
    newest_xid: u32,
    /// Where its files end.
    files_end: u32,
    commits: bool,
    is_of_interest: bool,
}

/// What it did to a file.
#[derive(Debug, Clone, Copy)]
struct PlainFile {
    first: Lsn,
    file: RelFileLocator,
    rows: u32,
    bytes: u32,
    /// `None`: pages were written.
    change: Option<RowChange>,
}

/// A transaction of the log.
pub(super) enum Logged<'l> {
    /// In a few words.
    Plain(PlainEnded<'l>),
    /// Any other.
    Other(&'l Ended),
}

/// A plain transaction, and what was known when it ended.
pub(super) struct PlainEnded<'l> {
    plain: &'l Plain,
    files: &'l [PlainFile],
    before: Before,
}

/// A transaction that ends, and nothing that belongs to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndedAlone<'w> {
    /// Where the record begins that ends it.
    pub lsn: Lsn,
    pub xid: u32,
    pub end: End,
    pub newest_xid: Option<u32>,
    pub files: &'w FileWorks,
    /// Whether it may be worth telling if it has not begun before.
    pub is_of_interest: bool,
}

impl EndedLog {
    /// Adds the next one.
    pub(super) fn push(&mut self, ended: Ended) {
        self.others.push(ended);
    }

    /// Adds the next one, of which nothing is to be said but what it did to files, if that can be said in a
    /// few words; whether it is added.
    pub(super) fn push_plain(&mut self, ended: EndedAlone<'_>) -> bool {
        let EndedAlone { lsn, xid, end, newest_xid, files, is_of_interest } = ended;
        let End::Recorded { commits, time, was_prepared: false } = end else { return false };
        let len = self.files.len();
        let mut is_told = true;
        for (file, work) in files.iter() {
            is_told = is_told && self.push_file(*file, work);
        }
        let Some(files_end) = u32::try_from(self.files.len()).ok().filter(|_| is_told) else {
            self.files.truncate(len);
            return false;
        };
        let newest_xid = newest_xid.unwrap_or_default();
        self.plain.push(Plain { lsn, time, xid, newest_xid, files_end, commits, is_of_interest });
        true
    }

    /// Adds what was done to a file; `false`: that cannot be said in a few words.
    fn push_file(&mut self, file: RelFileLocator, work: &FileWork) -> bool {
        let mut of_pages = work.bytes;
        for change in RowChange::ALL {
            let Changes { rows, bytes, first } = *work.of(change);
            if rows > 0 {
                let (Ok(rows), Ok(short)) = (u32::try_from(rows), u32::try_from(bytes)) else {
                    return false;
                };
                of_pages -= bytes;
                let change = Some(change);
                let of_file = PlainFile { first, file, rows, bytes: short, change };
                self.files.push(of_file);
            }
        }
        let Ok(bytes) = u32::try_from(of_pages) else { return false };
        if bytes > 0 {
            let of_file = PlainFile { first: Lsn(0), file, rows: 0, bytes, change: None };
            self.files.push(of_file);
        }
        work.emptied.is_none()
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = Logged<'_>> {
        let mut others = self.others.iter().peekable();
        let mut plain = self.plain.iter().peekable();
        let (mut begin, mut before) = (0, Before::default());
        std::iter::from_fn(move || {
            let is_plain_next =
                |plain: &&Plain| others.peek().is_none_or(|other| plain.lsn < other.lsn);
            let Some(plain) = plain.next_if(is_plain_next) else {
                let other = others.next()?;
                if let End::Recorded { time, .. } = other.end {
                    before.tick(time);
                }
                return Some(Logged::Other(other));
            };
            let end = plain.files_end as usize;
            let files = self.files.get(begin..end).unwrap_or_default();
            begin = end;
            let newest_xid = Some(plain.newest_xid).filter(|xid| *xid != 0);
            let ended = PlainEnded { plain, files, before: Before { newest_xid, ..before } };
            before.tick(plain.time);
            Some(Logged::Plain(ended))
        })
    }

    /// Frees what it does not need.
    pub(super) fn shrink(&mut self) {
        self.plain.shrink_to_fit();
        self.files.shrink_to_fit();
        self.others.shrink_to_fit();
    }
}

impl Logged<'_> {
    /// Where the record begins that ends it.
    pub(super) fn lsn(&self) -> Lsn {
        match self {
            Logged::Plain(ended) => ended.plain.lsn,
            Logged::Other(ended) => ended.lsn,
        }
    }

    /// The only xid of one that is of no interest by itself.
    pub(super) fn idle_xid(&self) -> Option<u32> {
        match self {
            Logged::Plain(ended) if !ended.plain.is_of_interest => Some(ended.plain.xid),
            _ => None,
        }
    }

    /// All that is known of it.
    pub(super) fn into_ended(self) -> Ended {
        match self {
            Logged::Plain(ended) => ended.into_ended(),
            Logged::Other(ended) => ended.clone(),
        }
    }
}

impl PlainEnded<'_> {
    fn into_ended(self) -> Ended {
        let Plain { lsn, time, xid, commits, .. } = *self.plain;
        let mut files = FileWorks::default();
        for PlainFile { first, file, rows, bytes, change } in self.files {
            let (rows, bytes) = (u64::from(*rows), u64::from(*bytes));
            match change {
                Some(change) => {
                    files.of(*file).count(*change, Changes { rows, bytes, first: *first })
                }
                None => files.of(*file).bytes += bytes,
            }
        }
        Ended {
            lsn,
            end: End::Recorded { commits, time, was_prepared: false },
            xid,
            subxids: Box::default(),
            files,
            in_catalogs: false,
            database_drop: None,
            dropped: Box::default(),
            before: self.before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(relfilenode: u32) -> RelFileLocator {
        RelFileLocator { tablespace: 1663, database: 5, relfilenode }
    }

    fn works(xid: u32) -> FileWorks {
        let mut files = FileWorks::default();
        let changes = Changes { rows: u64::from(xid), bytes: 60, first: Lsn(u64::from(xid)) };
        files.of(file(xid)).count(RowChange::Update, changes);
        files.of(file(xid)).bytes += 64;
        files.of(file(7)).bytes += 100;
        files
    }

    fn ended(xid: u32, before: Before) -> Ended {
        let time = Time(1_700_000_000_000_000 + i64::from(xid % 7));
        Ended {
            lsn: Lsn(u64::from(xid) << 20),
            end: End::Recorded { commits: xid.is_multiple_of(2), time, was_prepared: false },
            xid,
            subxids: Box::default(),
            files: works(xid),
            in_catalogs: false,
            database_drop: None,
            dropped: Box::default(),
            before,
        }
    }

    fn alone(ended: &Ended) -> EndedAlone<'_> {
        let Ended { lsn, xid, end, ref files, before, .. } = *ended;
        EndedAlone { lsn, xid, end, newest_xid: before.newest_xid, files, is_of_interest: false }
    }

    /// Every third is logged as any other is.
    #[test]
    fn what_comes_out_is_what_went_in() {
        let (mut log, mut before) = (EndedLog::default(), Before::default());
        let mut expected = Vec::new();
        for xid in 700..900 {
            before.see(xid - xid % 5);
            let ended = ended(xid, before);
            if xid % 3 == 0 {
                log.push(ended.clone());
            } else {
                assert!(
                    log.push_plain(EndedAlone { is_of_interest: xid % 4 == 0, ..alone(&ended) })
                );
            }
            let End::Recorded { time, .. } = ended.end else { continue };
            before.tick(time);
            expected.push(ended);
        }
        let idle: Vec<u32> = log.iter().filter_map(|logged| logged.idle_xid()).collect();
        let all = 700..900;
        assert_eq!(idle, all.filter(|xid| xid % 3 != 0 && xid % 4 != 0).collect::<Vec<u32>>());
        let seen: Vec<String> =
            log.iter().map(|logged| format!("{:?}", logged.into_ended())).collect();
        assert_eq!(seen, expected.iter().map(|ended| format!("{ended:?}")).collect::<Vec<_>>());
    }

    #[test]
    fn what_takes_many_words_is_not_plain_and_leaves_nothing_behind() {
        let mut log = EndedLog::default();
        let ended = ended(700, Before::default());
        assert!(!log.push_plain(EndedAlone { end: End::Lost, ..alone(&ended) }));
        let (mut many, mut emptied) = (works(700), works(700));
        many.of(file(8)).bytes = 1 << 32;
        emptied.of(file(8)).emptied = Some(Lsn(16));
        for files in [&many, &emptied] {
            assert!(!log.push_plain(EndedAlone { files, ..alone(&ended) }));
        }
        assert!(log.files.is_empty() && log.iter().next().is_none());
    }
}
