//! Arguments of `walstat window`.

use super::moment::Moment;
use super::outputs::Outputs;
use super::show::ShowArgs;
use super::source::SourceArgs;
use crate::failure::Failure;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::str::FromStr;
use walstat_analyse::recovery_window::{Goal, Target};
use walstat_format::lsn::Lsn;
use walstat_report::notes;

/// Arguments of `walstat window`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 recovery stops at the target, or without one a backup can be restored; 1 it \
                  cannot; 2 usage, 3 not readable as WAL, 4 damage."
)]
pub struct WindowArgs {
    /// What to read
    #[command(flatten)]
    pub source: SourceArgs,
    /// A base backup besides those that the archive lists: its backup_label, its .backup file, or the
    /// directory or tar of the backup
    #[arg(long, value_name = "FILE", help_heading = "Recovery")]
    pub backup_label: Option<PathBuf>,
    /// Where recovery is to stop: a time, an LSN, xid:N or name:RESTOREPOINT
    #[arg(long, value_name = "TARGET", help_heading = "Recovery")]
    pub target: Option<AskedTarget>,
    /// Stop right before the target, as recovery_target_inclusive = off does
    #[arg(long, requires = "target", help_heading = "Recovery")]
    pub target_exclusive: bool,
    /// Formats, and where they are written to
    #[command(flatten)]
    pub outputs: Outputs<WindowFormat>,
    /// How to show it
    #[command(flatten)]
    pub show: ShowArgs,
}

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum WindowFormat {
    /// For people
    #[default]
    Table,
    /// One object
    Json,
}

/// A target, as it was typed.
#[derive(Debug, Clone)]
pub struct AskedTarget {
    /// What was typed.
    pub text: String,
    place: Place,
}

#[derive(Debug, Clone)]
enum Place {
    At(Moment),
    Other(Goal),
}

/// Bytes that a restore point's name has at most (`MAXFNAMELEN`, with the zero at its end).
const NAME_BYTES_MAX: usize = 63;

impl FromStr for AskedTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<AskedTarget, String> {
        let place = if let Some(xid) = text.strip_prefix("xid:") {
            // What txid_current() says has epochs above 32 bits, which a server leaves out here.
            let xid = xid.parse::<u64>().ok().map(|xid| xid as u32).filter(|xid| *xid > 0);
            Place::Other(Goal::Xid(xid.ok_or("expected xid:N, a transaction's number")?))
        } else if let Some(name) = text.strip_prefix("name:") {
            if name.is_empty() || name.len() > NAME_BYTES_MAX {
                return Err(format!("expected name: and up to {NAME_BYTES_MAX} bytes"));
            }
            Place::Other(Goal::Name(name.to_owned()))
        } else if let Ok(lsn) = text.parse::<Lsn>() {
            Place::Other(Goal::Lsn(lsn))
        } else {
            let moment: Moment = text.parse().map_err(|_| EXPECTED)?;
            if moment.is_relative() {
                return Err("expected a time with its date: a server takes no other".to_owned());
            }
            Place::At(moment)
        };
        Ok(AskedTarget { text: text.to_owned(), place })
    }
}

const EXPECTED: &str =
    "expected a time like 2026-11-21 09:12:00, an LSN like 0/3000028, xid:N or name:RESTOREPOINT";

impl WindowArgs {
    /// The target, a time in the time zone that was asked for.
    pub fn target(&self) -> Result<Option<Target>, Failure> {
        let Some(asked) = &self.target else { return Ok(None) };
        let goal = match &asked.place {
            Place::Other(goal) => goal.clone(),
            Place::At(moment) => {
                let zone = self.source.range.tz.as_ref();
                let zone = zone.map_or(jiff::tz::TimeZone::UTC, |zone| zone.zone.clone());
                let text = || format!("--target {}: no such time", asked.text);
                let time = moment.time(&zone, None);
                Goal::Time(time.ok_or_else(|| Failure::Usage(text()))?)
            }
        };
        Ok(Some(Target { goal, is_inclusive: !self.target_exclusive }))
    }

    /// That a target without a time zone is taken for one of UTC.
    pub fn taken_for_utc(&self) -> Option<String> {
        let AskedTarget { text, place } = self.target.as_ref()?;
        let is_local = matches!(place, Place::At(Moment::Local(_)));
        (is_local && self.source.range.tz.is_none()).then(|| notes::taken_for_utc(text))
    }

    /// What clap cannot check: recovery replays all of the WAL.
    pub fn check_usage(&self) -> Result<(), Failure> {
        let range = &self.source.range;
        let is_part = range.start.is_some()
            || range.end.is_some()
            || range.since.is_some()
            || range.until.is_some()
            || range.limit.is_some_and(|limit| limit > 0);
        if is_part {
            let text = "recovery needs all of the WAL: window takes no --start, --end, --since, --until \
                        and --limit";
            return Err(Failure::Usage(text.to_owned()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_says_itself_what_it_is() {
        let read = |text: &str| text.parse::<AskedTarget>().map(|asked| asked.place);
        for text in ["xid:741", "xid:4294968037", "xid:12884902629"] {
            assert!(matches!(read(text), Ok(Place::Other(Goal::Xid(741)))), "{text}");
        }
        assert!(matches!(read("0/3000028"), Ok(Place::Other(Goal::Lsn(Lsn(0x300_0028))))));
        assert!(matches!(read("name:before 0/1"), Ok(Place::Other(Goal::Name(_)))));
        assert!(matches!(read("2026-11-21 09:12:00.5"), Ok(Place::At(_))));
        for text in [
            "",
            "xid:",
            "xid:0",
            "xid:4294967296",
            "xid:-1",
            "name:",
            "-2h",
            "09:12",
            "today",
            "soon",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
