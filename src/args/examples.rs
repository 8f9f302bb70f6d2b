//! One example for each option, for `--help` and the man page.

use clap::{Arg, Command};

/// The option's long name, and how it is typed.
type Example = (&'static str, &'static str);

/// All options but those of every program (help, version).
const EXAMPLES: &[Example] = &[
    ("accept-gap", "--accept-gap 0/5000000..0/7000000 --because 'lost with the old disk'"),
    ("archive-timeout", "--archive-timeout 60s"),
    ("as", "--as archive"),
    ("backup-label", "--backup-label base/backup_label"),
    ("baseline", "--baseline wal-main.json --max-growth 10%"),
    ("because", "--accept-gap 0/5000000..0/7000000 --because 'lost with the old disk'"),
    ("block", "-R public.orders -B 42"),
    ("blocks", "--blocks -f csv -o blocks.csv"),
    ("bucket", "--stats=timeline --bucket 10s"),
    ("by", "--stats=table --by parent"),
    ("by-hour", "--stats=timeline --by-hour --tz Europe/Paris"),
    ("bytes", "--bytes human"),
    ("checkpoint-completion-target", "--max-wal-size 4GB --checkpoint-completion-target 0.5"),
    ("checkpoint-every", "--checkpoint-every 2x,30min,none"),
    ("checkpoint-timeout", "--checkpoint-timeout 5min,15min,30min"),
    ("color", "--color never"),
    ("config", "--config limits.toml"),
    ("connections", "--connections 32"),
    ("data-checksums", "--data-checksums off"),
    ("data-directory", "--data-directory /var/lib/postgresql/15/main"),
    ("database", "--database 16384"),
    ("dsn", "--dsn 'host=/run/postgresql user=postgres'"),
    ("endpoint", "--endpoint http://127.0.0.1:9000"),
    ("end", "-e 16/B374D848"),
    ("every", "--every 1min"),
    ("event", "--event drop_table,truncate"),
    ("fail-on", "--fail-on critical"),
    ("fail-on-growth", "--fail-on-growth=commit"),
    ("fork", "-F fsm"),
    ("format", "-f json -o wal.json -f html -o wal.html"),
    ("from", "--from 0/2000028"),
    ("full-page-writes", "--full-page-writes off"),
    ("fullpage", "-w --stats=record"),
    ("json-compat", "--stats -f json --json-compat walinspect"),
    ("limit", "-n 1000"),
    ("link-rate", "--stats=replication --link-rate 10MB/s"),
    ("listen", "--listen :9187"),
    ("max-bytes-per-commit", "--max-bytes-per-commit 64kB"),
    ("max-fpi-ratio", "--max-fpi-ratio 70%"),
    ("max-growth", "--baseline wal-main.json --max-growth 10%"),
    ("max-lag", "--stats=replication --max-lag 30s"),
    ("max-wal-bytes", "--max-wal-bytes 10GB"),
    ("max-wal-size", "--max-wal-size 1GB,4GB,16GB"),
    ("memory", "--memory 2GB"),
    ("min-hot-ratio", "--min-hot-ratio 0.5"),
    ("min-rows", "--min-rows 1"),
    ("min-updates", "--min-hot-ratio 0.5 --min-updates 10000"),
    ("min-volume", "--max-fpi-ratio 70% --min-volume 64MB"),
    ("names", "--names names.csv"),
    ("no-mmap", "--no-mmap"),
    ("no-verify-checksums", "--no-verify-checksums"),
    ("output", "-f json -o wal.json"),
    ("partial", "--partial -o part1"),
    ("path", "-p /archive 000000010000000000000007"),
    ("progress", "--progress never"),
    ("quiet", "-q"),
    ("recheck", "--state /var/lib/walstat/state --recheck 5%"),
    ("record", "--record HOT_UPDATE"),
    ("redo-at", "--redo-at 0/3000028,0/5000060"),
    ("relation", "-R public.orders"),
    ("replay-rate", "--stats=recovery --replay-rate 100MB/s"),
    ("ruleset", "--ruleset strict"),
    ("sample", "--wal-compression pglz,lz4,zstd --sample 5%"),
    ("rmgr", "-r Heap -r Heap2"),
    ("show-main-data", "--stats=record --show-main-data"),
    ("since", "--since '2026-11-21 09:00' --until '2026-11-21 10:00'"),
    ("sort", "--stats=table --sort fpi"),
    ("sql", "--sql"),
    ("start", "-s 16/B374D848"),
    ("state", "--state /var/lib/walstat/state"),
    ("stats", "--stats=table,record"),
    ("sync-time", "--stats=commit --sync-time 2ms"),
    ("table", "-R public.orders --table"),
    ("target", "--target '2026-11-21 09:12:00'"),
    ("target-exclusive", "--target 0/5000028 --target-exclusive"),
    ("threads", "-j 4"),
    ("timeline", "-t 2"),
    ("top", "--stats=table --top 0"),
    ("tz", "--tz Europe/Paris"),
    ("until", "--until=-1h"),
    ("verbose", "-v"),
    ("wal-compression", "--wal-compression lz4,zstd"),
    ("wal-level", "--wal-level replica"),
    ("wal-log-hints", "--wal-log-hints off"),
    ("wal-segment-size", "--wal-segment-size 64MB"),
    ("xid", "-x 741"),
];

/// Examples that differ for one command: the command, the option, and how it is typed there. An empty text:
/// the option makes no sense for that command.
const OTHERS: &[(&str, Example)] = &[
    ("check", ("fullpage", "-w")),
    ("diff", ("format", "-f json -o diff.json")),
    ("diff", ("fullpage", "-w")),
    ("diff", ("output", "-f json -o diff.json")),
    ("diff", ("top", "--top 0")),
    ("events", ("format", "-f json -o events.json")),
    ("events", ("output", "-f json -o events.json")),
    ("follow", ("format", "-f openmetrics -o /var/lib/node_exporter/walstat.prom")),
    ("follow", ("output", "-f ndjson -o wal.ndjson")),
    ("follow", ("start", "--start now")),
    ("follow", ("top", "--top 50")),
    ("merge", ("partial", "--partial part1 part2 -o parts")),
    ("names", ("format", "-f json -o names.json")),
    ("names", ("output", "-f json -o names.json")),
    ("records", ("format", "-f csv -o records.csv")),
    ("records", ("fullpage", "-w")),
    ("records", ("output", "-f csv -o records.csv")),
    ("whatif", ("limit", "")),
    ("window", ("end", "")),
    ("window", ("format", "-f json -o window.json")),
    ("window", ("limit", "")),
    ("window", ("output", "-f json -o window.json")),
    ("window", ("since", "")),
    ("window", ("start", "")),
    ("window", ("until", "")),
];

/// The same definitions, with an example for each option where there is room for it.
pub fn with_examples(command: Command) -> Command {
    let of = command.get_name().to_owned();
    command.mut_args(|argument| with_example(&of, argument)).mut_subcommands(with_examples)
}

/// How an option of a command is typed; nothing where that makes no sense.
fn example(command: &str, option: &str) -> Option<&'static str> {
    let own = OTHERS.iter().find(|(of, (name, _))| *of == command && *name == option);
    let found = own.map(|(_, example)| example);
    let found = found.or_else(|| EXAMPLES.iter().find(|(name, _)| *name == option));
    found.map(|(_, example)| *example).filter(|example| !example.is_empty())
}

fn with_example(command: &str, argument: Arg) -> Arg {
    let Some(example) = argument.get_long().and_then(|long| example(command, long)) else {
        return argument;
    };
    let help = argument.get_long_help().or_else(|| argument.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    argument.long_help(format!("{help}\n\nExample: {example}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::CommandFactory;
    use std::collections::BTreeSet;

    fn options(command: &Command) -> BTreeSet<String> {
        let own = command.get_arguments().filter_map(|arg| arg.get_long().map(str::to_owned));
        let own: Vec<String> = own.collect();
        own.into_iter().chain(command.get_subcommands().flat_map(options)).collect()
    }

    /// Words as a shell parts them, as far as the examples need it.
    fn words(example: &str) -> Vec<String> {
        let pieces = example.split('\'').enumerate();
        let parted = pieces.flat_map(|(index, piece)| match index % 2 {
            0 => piece.split_whitespace().map(str::to_owned).collect::<Vec<_>>(),
            _ => vec![piece.to_owned()],
        });
        parted.collect()
    }

    #[test]
    fn each_option_has_an_example_and_each_example_an_option() {
        let named: BTreeSet<String> = EXAMPLES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(named.len(), EXAMPLES.len());
        let mut known = options(&Cli::command());
        known.retain(|name| !["help", "version"].contains(&name.as_str()));
        let lacking: Vec<_> = known.symmetric_difference(&named).collect();
        let is_optional = |name: &&String| cfg!(not(feature = "server")) && *name == "dsn";
        assert!(lacking.iter().all(is_optional), "{lacking:?}");
    }

    #[test]
    fn each_example_can_be_typed() {
        let root = Cli::command();
        for command in root.get_subcommands().chain([&root]) {
            let name = command.get_name();
            let begin: &[&str] = if name == root.get_name() { &[name] } else { &["walstat", name] };
            // What has to be there besides.
            let end: &[&str] = if name == "diff" { &["before", "after"] } else { &[] };
            for option in command.get_arguments().filter_map(Arg::get_long) {
                let Some(example) = example(name, option) else { continue };
                let typed = begin.iter().chain(end).map(|word| (*word).to_owned());
                let typed: Vec<String> = typed.chain(words(example)).collect();
                let read = Cli::command().try_get_matches_from(&typed);
                assert!(
                    read.is_ok(),
                    "{typed:?}: {}",
                    read.err().map(|e| e.to_string()).unwrap_or_default()
                );
            }
        }
    }
}
