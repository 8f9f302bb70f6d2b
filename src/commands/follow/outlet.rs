//! A place that is told what came: standard output, a file, who asks over HTTP. What could not be written is
//! kept for it and told the next time.

use super::listen::Listener;
use crate::args::follow::FollowFormat;
use crate::args::outputs::Output;
use crate::failure::Failure;
use crate::output::{write_bytes, write_to_standard_output};
use crate::render;
use std::cmp::Reverse;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use walstat_format::ordered::OrderBy;
use walstat_report::model::follow::{HappeningRow, Moment, Now};

/// What standard output is called.
const STANDARD_OUTPUT: &str = "standard output";
/// So much is kept of what happened, and of tables that wrote, for a place that cannot be written to.
const OWED_MAX: usize = 10_000;
/// What happened that is kept longest.
const LOSSES: [&str; 3] = ["lost", "damaged", "skipped"];

/// A place that is told what came.
pub struct Outlet {
    format: FollowFormat,
    target: Target,
    owed: Owed,
    /// Whether it could be written.
    pub writing: Writing,
    /// Nobody reads it any more.
    pub is_closed: bool,
}

/// Where to.
enum Target {
    /// Standard output, to which lines are written one after the other.
    Standard {
        /// The last one was written in part.
        is_cut: bool,
    },
    /// A file that lines are added to.
    Lines(PathBuf),
    /// A file that is replaced as a whole.
    Whole(PathBuf),
    /// Who asks over HTTP.
    Listener(Listener),
}

/// What came since it was told last.
#[derive(Default)]
struct Owed {
    happenings: Vec<HappeningRow>,
    now: Now,
}

/// Whether something can be written. Where it cannot, that is told once, and nothing ends: a full disk is
/// when what else is told is needed most, and there may be room again.
pub struct Writing {
    name: String,
    /// Why it could not be written last time, and what becomes of it.
    pub trouble: Option<String>,
}

impl Writing {
    /// Of what has this name.
    pub fn new(name: String) -> Writing {
        Writing { name, trouble: None }
    }

    /// Takes note of whether it was written; what is to be told of it, once.
    pub fn note(&mut self, written: &Result<(), Failure>, later: &str) -> Option<String> {
        let now = written.as_ref().err().map(|failure| format!("{failure}; {later}"));
        let before = std::mem::replace(&mut self.trouble, now.clone());
        match (before, now) {
            (None, trouble) => trouble,
            (Some(_), None) => Some(format!("{}: can be written again", self.name)),
            (Some(_), Some(_)) => None,
        }
    }
}

impl Outlet {
    /// What was asked for with `-f` and `-o`.
    pub fn of(output: &Output<FollowFormat>) -> Outlet {
        let target = match (&output.file, output.format) {
            (None, _) => Target::Standard { is_cut: false },
            (Some(path), FollowFormat::Openmetrics) => Target::Whole(path.clone()),
            (Some(path), _) => Target::Lines(path.clone()),
        };
        let name = output.file.as_deref().unwrap_or(Path::new(STANDARD_OUTPUT));
        Outlet::to(target, output.format, name.display().to_string())
    }

    /// What was asked for with `--listen`.
    pub fn served(listener: Listener) -> Outlet {
        Outlet::to(Target::Listener(listener), FollowFormat::Openmetrics, "--listen".to_owned())
    }

    fn to(target: Target, format: FollowFormat, name: String) -> Outlet {
        let (owed, writing) = (Owed::default(), Writing::new(name));
        Outlet { format, target, owed, writing, is_closed: false }
    }

    /// Whether people look at it on standard output.
    pub fn is_for_people(&self) -> bool {
        matches!((&self.target, self.format), (Target::Standard { .. }, FollowFormat::Table))
    }

    /// The name by which a state knows it.
    pub fn name(&self) -> &str {
        &self.writing.name
    }

    /// Whether it tells what happened: counters do not.
    pub fn tells_happenings(&self) -> bool {
        match self.format {
            FollowFormat::Table | FollowFormat::Ndjson => true,
            FollowFormat::Openmetrics => false,
        }
    }

    /// What happened and is still to be told.
    pub fn untold(&self) -> &[HappeningRow] {
        if self.tells_happenings() { &self.owed.happenings } else { &[] }
    }

    /// Has it told what an earlier run could not tell.
    pub fn owe_untold(&mut self, happenings: Vec<HappeningRow>) {
        self.owed.happenings = happenings;
    }

    /// Has it told this the next time.
    pub fn owe(&mut self, moment: &Moment, now: &Now) {
        let Owed { happenings, now: sums } = &mut self.owed;
        happenings.extend(moment.happenings.iter().cloned());
        while happenings.len() > OWED_MAX {
            let is_minor = |row: &HappeningRow| !LOSSES.contains(&row.event.as_str());
            happenings.remove(happenings.iter().position(is_minor).unwrap_or(0));
        }
        *sums = Now::sum([&*sums, now]);
        if sums.tables.len() > OWED_MAX {
            sums.tables.order_by_key(|table| Reverse(table.numbers.total_bytes));
            sums.tables.truncate(OWED_MAX / 2);
        }
        if sums.kinds.len() > OWED_MAX {
            sums.kinds.order_by_key(|kind| Reverse(kind.numbers.total_bytes));
            sums.kinds.truncate(OWED_MAX / 2);
        }
    }

    /// What becomes of what could not be written.
    pub fn later(&self) -> &'static str {
        match self.target {
            Target::Standard { .. } | Target::Lines(_) => {
                "it is tried again each time, and events are kept for it"
            }
            Target::Whole(_) | Target::Listener(_) => "it is tried again each time",
        }
    }

    /// Tells what there is at a moment, and all that is owed.
    pub fn tell(&mut self, moment: &Moment) -> Result<(), Failure> {
        let Owed { happenings, now } = &self.owed;
        let (happenings, bytes_per_second) = (happenings.clone(), now.bytes_per_second());
        let moment = Moment { happenings, bytes_per_second, ..moment.clone() };
        let mut text = Vec::new();
        // Into memory: it cannot fail.
        let _ = match self.format {
            FollowFormat::Table => render::follow::render(&moment, now, &mut text),
            FollowFormat::Ndjson => render::ndjson::line(&moment, &mut text),
            FollowFormat::Openmetrics => render::follow_metrics::render(&moment, &mut text),
        };
        match &mut self.target {
            Target::Standard { .. } if self.is_closed => {}
            Target::Standard { is_cut } => self.is_closed = write_lines(&text, is_cut)?,
            Target::Lines(path) => append(path, &text)?,
            Target::Whole(path) => write_bytes(Some(path), &text)?,
            Target::Listener(listener) => listener.serve(text),
        }
        self.owed = Owed::default();
        Ok(())
    }
}

/// Writes lines to standard output; whether nobody reads it any more. `is_cut`: whether its last line has no
/// end, as after the disk was full.
fn write_lines(text: &[u8], is_cut: &mut bool) -> Result<bool, Failure> {
    let text = begun_anew(text, *is_cut);
    let (written, failed) = write_to_standard_output(&text);
    if let Some(last) = text.get(..written).and_then(<[u8]>::last) {
        *is_cut = *last != b'\n';
    }
    match failed {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(true),
        Err(source) => Err(Failure::Output { path: STANDARD_OUTPUT.to_owned(), source }),
        Ok(()) => Ok(false),
    }
}

/// Adds lines to a file.
fn append(path: &Path, text: &[u8]) -> Result<(), Failure> {
    let failed = |source| Failure::Output { path: path.display().to_string(), source };
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    let text = begun_anew(text, ends_within_a_line(path));
    file.and_then(|mut file| file.write_all(&text)).map_err(failed)
}

/// Lines that begin a new one where the line before them has no end.
fn begun_anew(text: &[u8], is_cut: bool) -> Vec<u8> {
    let begin: &[u8] = if is_cut { b"\n" } else { b"" };
    [begin, text].concat()
}

/// Whether a file ends within a line; one that cannot be read is not known to.
fn ends_within_a_line(path: &Path) -> bool {
    let last = || -> io::Result<u8> {
        // Who reads a pipe takes away what another is to get.
        if !std::fs::metadata(path)?.is_file() {
            return Ok(b'\n');
        }
        let mut file = std::fs::File::open(path)?;
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        let [last] = last;
        Ok(last)
    };
    last().is_ok_and(|last| last != b'\n')
}
