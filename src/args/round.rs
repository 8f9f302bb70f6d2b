//! Arguments of a check that is made night after night: what is remembered, and what may be missing.

use crate::config::Config;
use crate::failure::Failure;
use clap::Args;
use std::path::PathBuf;
use walstat_format::lsn::Lsn;
use walstat_read::scan::round::Recheck;
use walstat_report::amount::Ratio;
use walstat_report::gap::Gap;

/// A check night after night.
#[derive(Debug, Args)]
#[command(next_help_heading = "Night after night")]
pub struct RoundArgs {
    /// Remember here what was verified, and read only what is new or was changed since; the verdict is that
    /// of a check that reads everything
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Also reread this share of the known segments, like 5%: those not read for the longest time
    #[arg(long, value_name = "SHARE", requires = "state", value_parser = parse_share)]
    pub recheck: Option<Recheck>,
    /// Accept that the segments between two LSNs are missing, like 0/5000000..0/7000000 (repeatable, each
    /// with its own --because)
    #[arg(long, value_name = "LSN..LSN", value_parser = parse_range)]
    pub accept_gap: Vec<(Lsn, Lsn)>,
    /// Why the segments of this --accept-gap may be missing
    #[arg(long, value_name = "TEXT")]
    pub because: Vec<String>,
}

impl RoundArgs {
    /// The gaps of the file and those of the command line.
    pub fn gaps(&self, file: &Config) -> Result<Vec<Gap>, Failure> {
        let (gaps, reasons) = (self.accept_gap.len(), self.because.len());
        if gaps != reasons {
            let text = format!(
                "each --accept-gap needs a --because of its own: found {gaps} --accept-gap and {reasons} \
                 --because"
            );
            return Err(Failure::Usage(text));
        }
        let given = self.accept_gap.iter().zip(&self.because);
        let given = given.map(|(range, because)| {
            Gap::new(*range, because).map_err(|error| Failure::Usage(format!("--because: {error}")))
        });
        file.gaps.iter().cloned().map(Ok).chain(given).collect()
    }
}

fn parse_share(text: &str) -> Result<Recheck, walstat_report::amount::AmountError> {
    text.parse().map(|Ratio(share)| Recheck(share))
}

fn parse_range(text: &str) -> Result<(Lsn, Lsn), &'static str> {
    walstat_report::gap::range(text)
}
