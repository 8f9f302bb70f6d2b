//! What is written each time: to standard output, to files, to who asks over HTTP, and the state.

use super::listen::Listener;
#[cfg(unix)]
use super::live::Live;
use super::{Followed, stored};
use crate::args::follow::{FollowArgs, FollowFormat};
use crate::args::outputs::Output;
use crate::args::values::When;
use crate::failure::Failure;
use crate::output::Stream;
use crate::output::ending::Ending;
use crate::output::tell;
#[cfg(unix)]
use crate::output::{terminal, wanted};
use crate::render;
use crate::render::visible::visible;
use std::collections::BTreeSet;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use walstat_report::model::follow::{HappeningRow, Moment, Now};

/// Where what is counted goes: files, standard output, Prometheus, the screen.
pub struct Outlets {
    outputs: Vec<Output<FollowFormat>>,
    state: Option<PathBuf>,
    listener: Option<Listener>,
    /// Standard output, and whether nobody reads it any more.
    lines: Lines,
    /// All was written once: what fails after that is tried again.
    is_begun: bool,
    /// What could not be written last time.
    failing: BTreeSet<String>,
    #[cfg(unix)]
    screen: Option<Live>,
    /// What the screen has shown already of what happened, and the next line has still to tell.
    happenings: Vec<HappeningRow>,
    /// What the screen has shown already of what came, and the next line has still to tell.
    shown: Now,
}

/// Standard output, to which lines are written one after the other.
struct Lines {
    is_closed: bool,
}

impl Outlets {
    /// Begins to listen, if that is asked for.
    pub fn begin(args: &FollowArgs) -> Result<Outlets, Failure> {
        let outputs = args.outputs.shown(&args.show).cloned().collect();
        let listener = args.listen.map(Listener::begin).transpose()?;
        let lines = Lines { is_closed: false };
        Ok(Outlets {
            outputs,
            state: args.state.clone(),
            listener,
            lines,
            is_begun: false,
            failing: BTreeSet::new(),
            #[cfg(unix)]
            screen: None,
            happenings: Vec::new(),
            shown: Now::default(),
        })
    }

    /// Whether standard output was closed: follow then ends, as a program in a pipe does, whatever else it
    /// serves.
    pub fn is_over(&self) -> bool {
        self.lines.is_closed
    }

    /// Begins the live screen, if this is for somebody at a terminal.
    pub fn begin_screen(&mut self, args: &FollowArgs, path: &Path) -> Result<(), Failure> {
        #[cfg(unix)]
        {
            let is_shown = |output: &Output<FollowFormat>| {
                output.file.is_none() && output.format == FollowFormat::Table
            };
            if terminal::is_there() && self.outputs.iter().any(is_shown) {
                self.outputs.retain(|output| !is_shown(output));
                let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                let has_styles = wanted(args.show.color, false) && !is_plain;
                self.screen = Some(Live::begin(path.display().to_string(), has_styles)?);
            }
        }
        let _ = (args, path);
        Ok(())
    }

    /// Shows how far reading has come, before anything is told.
    pub fn note_reading(&mut self, following: &Followed) -> Result<(), Failure> {
        #[cfg(unix)]
        if let Some(screen) = &mut self.screen {
            let shown = screen.note_reading(following.follower.position().to_string());
            self.heed_closed(shown);
        }
        let _ = following;
        Ok(())
    }

    /// Shows what there is now, if it is time to.
    pub fn refresh_screen(&mut self, following: &mut Followed) -> Result<(), Failure> {
        #[cfg(unix)]
        if let Some(screen) = self.screen.as_mut().filter(|screen| screen.is_due()) {
            let (moment, now) = following.moment(false);
            self.happenings.extend(moment.happenings.iter().cloned());
            self.shown = Now::sum([&self.shown, &now]);
            let shown = screen.take(&moment, now);
            self.heed_closed(shown);
        }
        let _ = following;
        Ok(())
    }

    /// Waits so long; whether somebody has ended it meanwhile.
    pub fn pause(&mut self, pause: Duration, ending: &Ending) -> Result<bool, Failure> {
        #[cfg(unix)]
        if let Some(screen) = &mut self.screen {
            let is_over = match screen.heed_keys(pause) {
                Ok(is_over) => is_over,
                Err(_) => {
                    (self.screen, self.lines.is_closed) = (None, true);
                    true
                }
            };
            return Ok(is_over || ending.is_asked());
        }
        Ok(ending.wait(pause))
    }

    /// Tells what there is now; `is_last`: it is for the last time.
    pub fn tell(&mut self, following: &mut Followed, is_last: bool) -> Result<(), Failure> {
        let (mut moment, now) = following.moment(is_last);
        #[cfg(unix)]
        if let Some(screen) = &mut self.screen {
            let shown = screen.take(&moment, now.clone());
            self.heed_closed(shown);
        }
        let now = Now::sum([&std::mem::take(&mut self.shown), &now]);
        moment.bytes_per_second = now.bytes_per_second();
        self.happenings.append(&mut moment.happenings);
        moment.happenings = std::mem::take(&mut self.happenings);
        let mut failed = None;
        if let Some(path) = self.state.clone() {
            let state = following.reporter.state(&mut following.follower);
            failed = self.note_written(&path, stored::write(&path, &state));
        }
        if let Some(listener) = &self.listener {
            let mut text = Vec::new();
            // Into memory: it cannot fail.
            let _ = render::follow_metrics::render(&moment, &mut text);
            listener.serve(text);
        }
        for output in self.outputs.clone() {
            let mut text = Vec::new();
            let _ = write(output.format, &moment, &now, &mut text);
            let written = match &output.file {
                Some(_) if output.format == FollowFormat::Openmetrics => {
                    output.write(false, When::Never, |out| out.write_all(&text))
                }
                Some(path) => append(path, &text),
                None => self.lines.write(&text),
            };
            let path = output.file.as_deref().unwrap_or(Path::new("standard output"));
            failed = failed.or(self.note_written(path, written));
        }
        match failed {
            Some(failure) if is_last || !self.is_begun => Err(failure),
            _ => {
                self.is_begun = true;
                Ok(())
            }
        }
    }

    /// Takes note of what could not be written, and tells it once: a full disk is when what else is told is
    /// needed most, and there may be room again.
    fn note_written(&mut self, path: &Path, written: Result<(), Failure>) -> Option<Failure> {
        let shown = path.display().to_string();
        let failure = written.err();
        let text = match &failure {
            Some(failure) => {
                let is_new = self.is_begun && self.failing.insert(shown);
                is_new.then(|| format!("walstat: {failure}; it is tried again each time"))
            }
            None => {
                let was_failing = self.failing.remove(&shown);
                was_failing.then(|| format!("walstat: {shown}: can be written again"))
            }
        };
        #[cfg(unix)]
        let text = text.filter(|_| self.screen.is_none());
        text.into_iter().for_each(|text| tell(&visible(&text)));
        failure
    }

    /// A terminal that cannot be written to was closed: it ends as with SIGHUP.
    #[cfg(unix)]
    fn heed_closed(&mut self, shown: Result<(), Failure>) {
        if shown.is_err() {
            (self.screen, self.lines.is_closed) = (None, true);
        }
    }
}

fn write(format: FollowFormat, moment: &Moment, now: &Now, out: &mut dyn Write) -> io::Result<()> {
    match format {
        FollowFormat::Table => render::follow::render(moment, now, out),
        FollowFormat::Ndjson => render::ndjson::line(moment, out),
        FollowFormat::Openmetrics => render::follow_metrics::render(moment, out),
    }
}

impl Lines {
    fn write(&mut self, text: &[u8]) -> Result<(), Failure> {
        if self.is_closed {
            return Ok(());
        }
        let mut out = Stream::begin(None)?;
        let failed = out.write_all(text).and_then(|()| out.flush()).err();
        self.is_closed =
            failed.as_ref().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
        out.end(failed)
    }
}

/// Adds lines to a file. Where its last line has no end, as after the disk was full, they begin a new one.
fn append(path: &Path, text: &[u8]) -> Result<(), Failure> {
    let failed = |source| Failure::Output { path: path.display().to_string(), source };
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    let is_cut = ends_within_a_line(path);
    let begin: &[u8] = if is_cut { b"\n" } else { b"" };
    let text = [begin, text].concat();
    file.and_then(|mut file| file.write_all(&text)).map_err(failed)
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
