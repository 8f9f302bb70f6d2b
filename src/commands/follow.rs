//! `walstat follow`: looks for new WAL some times a second, and tells what came of it each time it is due,
//! until a signal ends it.

mod listen;
#[cfg(unix)]
mod live;
mod outlet;
mod outlets;
mod stored;

use super::state_lock::{Lock, lock_of};
use crate::args::follow::FollowArgs;
use crate::failure::{Exit, Failure};
use crate::output::ending::Ending;
use crate::output::tell;
use crate::render::visible::visible;
use outlets::Outlets;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use stored::Stored;
use walstat_analyse::follow::Following;
use walstat_format::crc::Crc32c;
use walstat_read::follow::{Follower, Happening, StartAt};
use walstat_read::input::control;
use walstat_read::input::discover::{Found, discover_as};
use walstat_read::input::error::InputError;
use walstat_read::input::input_kind::SERVER_DIRECTORIES;
use walstat_read::input::plan::Plan;
use walstat_read::input::probe::NotWal;
use walstat_read::input::storage;
use walstat_read::scan::streamed::Wanted;
use walstat_report::follow::Reporter;
use walstat_report::model::follow::{Moment, Now};

/// Between two looks: a checkpoint recycles what was written in the last second.
const PAUSE: Duration = Duration::from_millis(100);
/// One look takes no longer, so that a signal is heeded.
const LOOK: Duration = Duration::from_millis(200);
/// Where there is no WAL yet.
const PATIENCE: Duration = Duration::from_millis(250);

/// Runs the command.
pub fn run(args: &FollowArgs) -> Result<Exit, Failure> {
    let path = args.path.clone().unwrap_or_else(|| PathBuf::from("."));
    check_usage(args, &path)?;
    // Before the lock: what is there is removed as a signal ends the program.
    let ending = Ending::heed(aside, again);
    let lock = args.state.as_deref().map(|state| Lock::take(state, "follow"));
    let _lock = lock.transpose()?;
    let mut stored = args.state.as_deref().map(Stored::read).transpose()?;
    let mut outlets = Outlets::begin(args, stored.as_mut())?;
    let Some(begun) = wait_for_wal(args, &path, stored.as_ref(), ending)? else {
        return Ok(Exit::Done);
    };
    let Some(mut following) = begin(args, begun, stored, ending)? else {
        return Ok(Exit::Done);
    };
    outlets.begin_screen(args, &path)?;
    let followed = follow(args, &mut following, &mut outlets, ending);
    // What came before an error is told as well.
    let told = outlets.tell(&mut following, true);
    if let (Err(_), Err(failure)) = (&followed, &told) {
        tell(&format!("walstat: {}", visible(&failure.to_string())));
    }
    followed.and(told).map(|()| Exit::Done)
}

/// Looks and tells until it is ended.
fn follow(
    args: &FollowArgs,
    following: &mut Followed,
    outlets: &mut Outlets,
    ending: &Ending,
) -> Result<(), Failure> {
    catch_up(following, outlets, ending)?;
    outlets.tell(following, false)?;
    let every = Duration::from_micros(args.every.microseconds());
    let mut due = Instant::now() + every;
    while !outlets.is_over() && !ending.is_asked() {
        following.look()?;
        if Instant::now() >= due {
            outlets.tell(following, false)?;
            due = (due + every).max(Instant::now());
        }
        outlets.refresh_screen(following)?;
        let left = due.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let pause = if following.is_at_end { PAUSE.min(left) } else { Duration::ZERO };
        if outlets.pause(pause, ending)? {
            break;
        }
    }
    Ok(())
}

/// What is done in any case when a signal ends the program, or stops it for a while.
fn aside() {
    #[cfg(unix)]
    crate::output::terminal::leave();
}

/// What is done when it goes on.
fn again() {
    #[cfg(unix)]
    crate::output::terminal::enter_again();
}

/// What is followed, and what tells of it.
struct Followed {
    follower: Follower,
    reporter: Reporter,
    happenings: Vec<Happening>,
    is_at_end: bool,
}

impl Followed {
    /// Reads what is new, as far as a moment allows.
    fn look(&mut self) -> Result<(), Failure> {
        let look = self.follower.look(Instant::now() + LOOK);
        self.is_at_end = look.is_at_end;
        self.happenings.extend(look.happenings);
        look.error.map_or(Ok(()), |error| Err(error.into()))
    }

    /// What there is now; `is_last`: nothing is looked up on disk for it any more.
    fn told(&mut self, is_last: bool) -> Told {
        let happenings = std::mem::take(&mut self.happenings);
        let (moment, now) = self.reporter.tell(&mut self.follower, &happenings, is_last);
        Told { moment, now }
    }
}

/// What there is at a moment, and what came since the one before.
struct Told {
    moment: Moment,
    now: Now,
}

/// A follower that stands where counting begins, or where what it needs to know before that begins.
struct Begun {
    follower: Follower,
    plan: Plan,
    /// Where counting begins.
    from: StartAt,
}

/// What clap cannot check.
fn check_usage(args: &FollowArgs, path: &Path) -> Result<(), Failure> {
    let usage = |text: String| Err(Failure::Usage(text));
    if storage::is_url(path) {
        let path = path.display();
        return usage(format!("{path}: is a URL, expected a folder that WAL is written to"));
    }
    if path.is_file() {
        return usage(format!(
            "{}: is a file, expected a folder that WAL is written to",
            path.display()
        ));
    }
    if path.exists() && !path.is_dir() {
        return usage(format!(
            "{}: is no folder, expected one that WAL is written to",
            path.display()
        ));
    }
    let lock = args.state.as_deref().map(lock_of);
    let inputs = args.names.inputs().chain(args.state.as_deref()).chain(lock.as_deref());
    args.outputs.refuse_to_overwrite(inputs)?;
    let mut files = args.outputs.all.iter().filter_map(|output| output.file.as_deref());
    if let Some(file) = files.find(|file| lies_in_wal(file, path)) {
        return Err(Failure::Target {
            path: file.display().to_string(),
            reason: "lies in the folder of WAL that is followed".to_owned(),
        });
    }
    // Each writing would have the folder listed anew.
    let mut kept = args.state.as_deref().into_iter().chain(lock.as_deref());
    match kept.find(|file| lies_in_wal(file, path)) {
        None => Ok(()),
        Some(file) => usage(format!(
            "{}: lies in the folder of WAL that is followed, expected another file for --state",
            file.display()
        )),
    }
}

/// Whether a file lies, or would lie, where the WAL below `path` does.
fn lies_in_wal(file: &Path, path: &Path) -> bool {
    let inside = SERVER_DIRECTORIES.map(|name| path.join(name));
    let wal = inside.iter().find(|inside| inside.is_dir()).map_or(path, PathBuf::as_path);
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let place = parent.unwrap_or(Path::new(".")).canonicalize();
    place.is_ok_and(|place| wal.canonicalize().is_ok_and(|wal| place.starts_with(wal)))
}

/// Waits until there is WAL; `None`: it was ended before there was.
fn wait_for_wal(
    args: &FollowArgs,
    path: &Path,
    stored: Option<&Stored>,
    ending: &Ending,
) -> Result<Option<Begun>, Failure> {
    let mut is_told = false;
    // --start is for the first time, so that a service may have both.
    let from = stored.and_then(Stored::start).or(args.start).unwrap_or_default();
    loop {
        let found = discover_as(&[path.to_owned()], args.taken_for);
        let error = match found.and_then(|found| begin_reading(args, &found, from)) {
            Ok(begun) => return Ok(Some(begun)),
            Err(error) => error,
        };
        if !is_empty(&error) {
            return Err(error.into());
        }
        if !std::mem::replace(&mut is_told, true) && !args.show.quiet {
            let path = visible(&path.display().to_string()).into_owned();
            tell(&format!("walstat: {path}: no WAL yet, waiting for it"));
        }
        if ending.wait(PATIENCE) {
            return Ok(None);
        }
    }
}

/// Whether there is no WAL yet.
fn is_empty(error: &InputError) -> bool {
    match error {
        InputError::NoSegments { .. } | InputError::NoRecord { .. } => true,
        InputError::NotWal { reason, .. } => {
            // What is no file is passed over.
            use NotWal::{Cut, Empty, NoFile, Short, Zeros};
            matches!(reason, Empty | Short(_) | Zeros | NoFile(_) | Cut(_))
        }
        _ => false,
    }
}

fn wanted(args: &FollowArgs) -> Wanted {
    let crc = (!args.no_verify_checksums).then(Crc32c::detect);
    Wanted { crc, timeline: args.timeline, ..Wanted::default() }
}

/// Begins to read. With what is written from now on it begins at the last redo point, if that is there: the
/// WAL since then tells what names and checkpoints are.
fn begin_reading(args: &FollowArgs, found: &Found, from: StartAt) -> Result<Begun, InputError> {
    let redo = redo_of(found.data_directory.as_deref()).filter(|_| from == StartAt::Now);
    let begun =
        redo.and_then(|redo| Follower::begin(found, StartAt::Lsn(redo), &wanted(args)).ok());
    let begun = begun.map_or_else(|| Follower::begin(found, from, &wanted(args)), Ok);
    begun.map(|(follower, plan)| Begun { follower, plan, from })
}

/// Begins to follow; `None`: it was ended before it had come to where counting begins.
fn begin(
    args: &FollowArgs,
    begun: Begun,
    stored: Option<Stored>,
    ending: &Ending,
) -> Result<Option<Followed>, Failure> {
    let Begun { mut follower, plan, from } = begun;
    let mut reporter = Reporter::new(args.names.sources(), &plan, args.top);
    if let Some(redo) = redo_of(plan.data_directory.as_deref()) {
        reporter.learn_from(redo, &follower, || ending.is_asked());
    }
    follower.count(Following::new(reporter.store()));
    if from == StartAt::Now {
        loop {
            let look = follower.look(Instant::now() + LOOK);
            if let Some(error) = look.error {
                return Err(error.into());
            }
            if look.is_at_end {
                break;
            }
            if ending.is_asked() {
                return Ok(None);
            }
        }
        follower.counted(Following::begin_here);
        follower.begin_here();
    }
    if let Some(stored) = stored {
        stored.check(&plan)?;
        stored.go_on(&mut reporter, &mut follower);
    }
    for warning in reporter.take_warnings() {
        tell(&format!("walstat: {}", visible(&warning)));
    }
    Ok(Some(Followed { follower, reporter, happenings: Vec::new(), is_at_end: false }))
}

/// Reads what is there, before anything is told.
fn catch_up(
    following: &mut Followed,
    outlets: &mut Outlets,
    ending: &Ending,
) -> Result<(), Failure> {
    let mut is_read = false;
    while !is_read && !ending.is_asked() {
        following.look()?;
        outlets.note_reading(following)?;
        let pause = if following.is_at_end { PAUSE } else { Duration::ZERO };
        is_read = following.is_at_end && !following.follower.is_held_up()?;
        if !is_read && outlets.pause(pause, ending)? {
            ending.ask();
        }
    }
    Ok(())
}

/// The last redo point, as a data directory has it.
fn redo_of(data_directory: Option<&Path>) -> Option<walstat_format::lsn::Lsn> {
    control::read(data_directory?).ok().map(|control| control.checkpoint.redo)
}
