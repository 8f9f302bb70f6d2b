//! What is written each time: to standard output, to files, to who asks over HTTP, and the state.

use super::listen::Listener;
#[cfg(unix)]
use super::live::Live;
use super::outlet::{Outlet, Writing};
use super::stored::{self, Stored};
use super::{Followed, Told};
use crate::args::follow::FollowArgs;
use crate::failure::Failure;
use crate::output::ending::Ending;
use crate::output::tell;
#[cfg(unix)]
use crate::output::{terminal, wanted};
use crate::render::visible::visible;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use walstat_report::model::follow::HappeningRow;

/// Where what is counted goes: files, standard output, Prometheus, the screen.
pub struct Outlets {
    outlets: Vec<Outlet>,
    state: Option<StateFile>,
    /// What earlier runs could not tell to those that this one does not have, by their names: the state keeps
    /// it for the run that has them again.
    owed_elsewhere: BTreeMap<String, Vec<HappeningRow>>,
    course: Course,
    /// The terminal was closed.
    is_over: bool,
    #[cfg(unix)]
    screen: Option<Live>,
}

/// How far telling has come.
#[derive(PartialEq)]
enum Course {
    /// Nothing was told yet.
    Untold,
    /// The first time something could not be written, which ends the program.
    Failed,
    /// All was written once: what fails after that is tried again.
    Begun,
}

/// Where the position and the counters are kept.
struct StateFile {
    path: PathBuf,
    writing: Writing,
}

impl Outlets {
    /// Begins to listen, if that is asked for. What the run before could not tell is told first.
    pub fn begin(args: &FollowArgs, stored: Option<&mut Stored>) -> Result<Outlets, Failure> {
        let listener = args.listen.map(Listener::begin).transpose()?;
        let mut outlets: Vec<Outlet> = listener.map(Outlet::served).into_iter().collect();
        outlets.extend(args.outputs.shown(&args.show).map(Outlet::of));
        let mut untold = stored.map(Stored::take_untold).unwrap_or_default();
        for outlet in outlets.iter_mut().filter(|outlet| outlet.tells_happenings()) {
            let happenings = untold.remove(outlet.name());
            happenings.into_iter().for_each(|happenings| outlet.owe_untold(happenings));
        }
        let state = args
            .state
            .clone()
            .map(|path| StateFile { writing: Writing::new(path.display().to_string()), path });
        Ok(Outlets {
            outlets,
            state,
            owed_elsewhere: untold,
            course: Course::Untold,
            is_over: false,
            #[cfg(unix)]
            screen: None,
        })
    }

    /// Whether standard output was closed: follow then ends, as a program in a pipe does, whatever else it
    /// serves.
    pub fn is_over(&self) -> bool {
        self.is_over || self.outlets.iter().any(|outlet| outlet.is_closed)
    }

    /// Begins the live screen, if this is for somebody at a terminal.
    pub fn begin_screen(&mut self, args: &FollowArgs, path: &Path) -> Result<(), Failure> {
        #[cfg(unix)]
        if terminal::is_there() && self.outlets.iter().any(Outlet::is_for_people) {
            // The screen shows what comes from now on: what is still to be told stays for a run without it.
            let replaced = self.outlets.extract_if(.., |outlet| outlet.is_for_people());
            let untold =
                replaced.map(|outlet| (outlet.name().to_owned(), outlet.untold().to_vec()));
            self.owed_elsewhere.extend(untold.filter(|(_, happenings)| !happenings.is_empty()));
            let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            let has_styles = wanted(args.show.color, false) && !is_plain;
            self.screen = Some(Live::begin(path.display().to_string(), has_styles)?);
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
            let Told { moment, now } = following.told(false);
            self.outlets.iter_mut().for_each(|outlet| outlet.owe(&moment, &now));
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
                    (self.screen, self.is_over) = (None, true);
                    true
                }
            };
            return Ok(is_over || ending.is_asked());
        }
        Ok(ending.wait(pause))
    }

    /// Tells what there is now; `is_last`: it is for the last time. Where the first time has failed, all that
    /// can be told was told then.
    pub fn tell(&mut self, following: &mut Followed, is_last: bool) -> Result<(), Failure> {
        if self.course == Course::Failed {
            return Ok(());
        }
        let Told { moment, now } = following.told(is_last);
        let (mut failed, mut changes) = (Vec::new(), Vec::new());
        for outlet in &mut self.outlets {
            outlet.owe(&moment, &now);
            let written = outlet.tell(&moment);
            let later = outlet.later();
            changes.extend(outlet.writing.note(&written, later));
            failed.extend(written.err());
        }
        // The state comes last: what lies before its position was told, or is told by the next run.
        let untold = self.outlets.iter().filter(|outlet| !outlet.untold().is_empty());
        let untold = untold.map(|outlet| (outlet.name().to_owned(), outlet.untold().to_vec()));
        if let Some(StateFile { path, writing }) = &mut self.state {
            let mut state = following.reporter.state(&mut following.follower);
            state.untold = self.owed_elsewhere.clone();
            state.untold.extend(untold);
            let written = stored::write(path, &state);
            changes.extend(writing.note(&written, "it is tried again each time"));
            failed.extend(written.err());
        }
        #[cfg(unix)]
        if let Some(screen) = &mut self.screen {
            let outlets = self.outlets.iter().map(|outlet| &outlet.writing);
            let all = outlets.chain(self.state.as_ref().map(|state| &state.writing));
            screen.note_troubles(all.filter_map(|writing| writing.trouble.clone()).collect());
            let shown = screen.take(&moment, now);
            self.heed_closed(shown);
        }
        if !failed.is_empty() && (is_last || self.course == Course::Untold) {
            self.course = Course::Failed;
            return self.end_with(failed);
        }
        self.tell_changes(&changes);
        self.course = Course::Begun;
        Ok(())
    }

    /// What cannot be written is not tried again: the first failure ends the program, and the others are told
    /// here, where the screen does not cover them.
    fn end_with(&mut self, failed: Vec<Failure>) -> Result<(), Failure> {
        #[cfg(unix)]
        drop(self.screen.take());
        let mut failed = failed.into_iter();
        let first = failed.next();
        failed.for_each(|failure| tell(&format!("walstat: {}", visible(&failure.to_string()))));
        first.map_or(Ok(()), Err)
    }

    /// Tells what cannot be written any more, or again; on the screen it stands as long as it is so.
    fn tell_changes(&self, changes: &[String]) {
        #[cfg(unix)]
        if self.screen.is_some() {
            return;
        }
        changes.iter().for_each(|text| tell(&format!("walstat: {}", visible(text))));
    }

    /// A terminal that cannot be written to was closed: it ends as with SIGHUP.
    #[cfg(unix)]
    fn heed_closed(&mut self, shown: Result<(), Failure>) {
        if shown.is_err() {
            (self.screen, self.is_over) = (None, true);
        }
    }
}
