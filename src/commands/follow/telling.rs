//! What is written each time: to standard output, to files, to who asks over HTTP, and the state.

use super::listen::Listener;
use super::{Followed, stored};
use crate::args::follow::{FollowArgs, FollowFormat};
use crate::args::outputs::Output;
use crate::args::values::When;
use crate::failure::Failure;
use crate::output::Stream;
use crate::render;
use std::io::{self, Write};
use std::path::PathBuf;
use walstat_report::model::follow::{Moment, Now};

/// Where it is told.
pub struct Telling {
    outputs: Vec<Output<FollowFormat>>,
    state: Option<PathBuf>,
    listener: Option<Listener>,
    /// Standard output, and whether nobody reads it any more.
    lines: Lines,
}

/// Standard output, to which lines are written one after the other.
struct Lines {
    is_closed: bool,
}

impl Telling {
    /// Begins to listen, if that is asked for.
    pub fn begin(args: &FollowArgs) -> Result<Telling, Failure> {
        let outputs = args.outputs.shown(&args.show).cloned().collect();
        let listener = args.listen.map(Listener::begin).transpose()?;
        let lines = Lines { is_closed: false };
        Ok(Telling { outputs, state: args.state.clone(), listener, lines })
    }

    /// Whether nobody is there any more to be told anything.
    pub fn is_over(&self) -> bool {
        self.lines.is_closed
    }

    /// Tells what there is now.
    pub fn tell(&mut self, following: &mut Followed) -> Result<(), Failure> {
        let happenings = std::mem::take(&mut following.happenings);
        let (moment, now) = following.teller.tell(&mut following.follower, &happenings);
        if let Some(path) = &self.state {
            stored::write(path, &following.teller.state(&mut following.follower))?;
        }
        if let Some(listener) = &self.listener {
            let mut text = Vec::new();
            // Into memory: it cannot fail.
            let _ = render::follow_metrics::render(&moment, &mut text);
            listener.serve(text);
        }
        for output in &self.outputs {
            let mut text = Vec::new();
            let _ = write(output.format, &moment, &now, &mut text);
            match &output.file {
                Some(_) if output.format == FollowFormat::Openmetrics => {
                    output.write(false, When::Never, |out| out.write_all(&text))?;
                }
                Some(path) => append(path, &text)?,
                None => self.lines.write(&text)?,
            }
        }
        Ok(())
    }
}

fn write(
    format: FollowFormat,
    moment: &Moment,
    now: &Now,
    out: &mut dyn Write,
) -> io::Result<()> {
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
        self.is_closed = failed.as_ref().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
        out.end(failed)
    }
}

/// Adds lines to a file.
fn append(path: &std::path::Path, text: &[u8]) -> Result<(), Failure> {
    let failed = |source| Failure::Output { path: path.display().to_string(), source };
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    file.and_then(|mut file| file.write_all(text)).map_err(failed)
}
