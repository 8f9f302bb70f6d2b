//! Arguments of `walstat follow`.

use super::name_sources::NameArgs;
use super::outputs::Outputs;
use super::show::ShowArgs;
use super::values::TOP_DEFAULT;
use clap::{Args, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;
use walstat_format::lsn::Lsn;
use walstat_read::follow::StartAt;
use walstat_read::input::input_kind::InputKind;
use walstat_report::amount::Span;

/// Arguments of `walstat follow`.
#[derive(Debug, Args)]
#[command(
    after_help = "walstat follow /var/lib/postgresql/15/main --listen :9187 --state /var/lib/walstat/state"
)]
pub struct FollowArgs {
    /// A data directory, its pg_wal, or a folder that pg_receivewal or archiving fills; default: the
    /// current directory
    #[arg(value_name = "PATH")]
    pub path: Option<PathBuf>,
    /// How often it tells what came; it looks for WAL more often than that
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = parse_every)]
    pub every: Span,
    /// Start counting at this LSN, or at `now`. Ignored if --state already has a position [default: all that
    /// is there]
    #[arg(short, long, value_name = "LSN|now", value_parser = parse_start)]
    pub start: Option<StartAt>,
    /// Timeline to follow, and no other [default: the newest, and each new one]
    #[arg(short, long, value_name = "N", value_parser = super::source::parse_timeline)]
    pub timeline: Option<u32>,
    /// Take the folder for an archive, or for a server's pg_wal [default: by the folder]
    #[arg(long = "as", value_name = "archive|pg_wal", value_parser = super::source::parse_taken_for)]
    pub taken_for: Option<InputKind>,
    /// Do not verify the records' checksums
    #[arg(long)]
    pub no_verify_checksums: bool,
    /// Keep the position and the counters in this file, and go on from there at the next start
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Serve the counters to Prometheus at http://ADDR:PORT/metrics, as they were told last (--every);
    /// :9187 is 127.0.0.1:9187
    #[arg(long, value_name = "ADDR:PORT", value_parser = parse_address)]
    pub listen: Option<SocketAddr>,
    /// Keep separate counters for the N largest tables and kinds (0: all)
    #[arg(long, value_name = "N", default_value_t = TOP_DEFAULT)]
    pub top: usize,
    /// Names of relations
    #[command(flatten)]
    pub names: NameArgs,
    /// Formats, and where they are written to
    #[command(flatten)]
    pub outputs: Outputs<FollowFormat>,
    /// How to show it
    #[command(flatten)]
    pub show: ShowArgs,
}

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum FollowFormat {
    /// For people: a live screen on a terminal, else a line each time
    #[default]
    Table,
    /// One object a line each time, with all sums since the start
    Ndjson,
    /// Counters for Prometheus; a file is replaced as a whole each time
    Openmetrics,
}

fn parse_every(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    let is_usable = span.microseconds() >= 100_000;
    is_usable.then_some(span).ok_or_else(|| "expected a time from 100ms on, like 15s".to_owned())
}

fn parse_start(text: &str) -> Result<StartAt, String> {
    match text {
        "now" => Ok(StartAt::Now),
        _ => text.parse::<Lsn>().map(StartAt::Lsn).map_err(|error| format!("{error}, or now")),
    }
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let whole = if text.starts_with(':') { format!("127.0.0.1{text}") } else { text.to_owned() };
    let whole = whole.replacen("localhost:", "127.0.0.1:", 1);
    whole.parse().map_err(|_| "expected ADDR:PORT, like 127.0.0.1:9187 or :9187".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_host_is_that_of_this_machine() {
        for text in [":9187", "localhost:9187", "127.0.0.1:9187"] {
            assert_eq!(parse_address(text).map(|of| of.to_string()), Ok("127.0.0.1:9187".into()));
        }
        assert_eq!(parse_address("0.0.0.0:1").map(|of| of.to_string()), Ok("0.0.0.0:1".into()));
        assert!(parse_address("9187").is_err());
    }

    #[test]
    fn a_start_is_a_place_or_now() {
        assert_eq!(parse_start("now"), Ok(StartAt::Now));
        assert_eq!(parse_start("0/100"), Ok(StartAt::Lsn(Lsn(256))));
        assert!(parse_start("then").is_err_and(|text| text.ends_with("or now")));
    }
}
