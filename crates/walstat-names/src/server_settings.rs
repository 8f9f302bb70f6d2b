//! The settings of a server that its WAL depends on, as its data directory has them: `postgresql.conf`
//! with what it includes, `postgresql.auto.conf`, the arguments of the last start (`postmaster.opts`)
//! and `pg_control`.
//!
//! They are those of now: whoever uses them has to allow for another value when the WAL was written.

mod conf;
mod unit;

use crate::data_directory::{read_at_most, release, warning};
use conf::Conf;
use serde::{Deserialize, Serialize};
use std::path::Path;
use walstat_format::version::{Pacing, Version};
use walstat_input::control;
use walstat_input::control::Control;

/// Longest line of arguments that is read.
const OPTS_BYTES: u64 = 1 << 16;

/// The settings; `None` where a value is not known.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerSettings {
    /// The data directory.
    pub directory: String,
    /// Its release.
    pub version: &'static Version,
    /// The cluster.
    pub system_identifier: u64,
    /// `max_wal_size`, in bytes.
    pub max_wal_size: Option<u64>,
    /// `checkpoint_timeout`, in seconds.
    pub checkpoint_timeout: Option<u64>,
    /// `checkpoint_completion_target`.
    pub checkpoint_completion_target: Option<f64>,
    /// `wal_compression`: `off` or the codec.
    pub wal_compression: Option<String>,
    /// `full_page_writes`.
    pub full_page_writes: Option<bool>,
    /// `archive_timeout`, in seconds; 0 is off.
    pub archive_timeout: Option<u64>,
    /// Whether a commit waits for the disk: `synchronous_commit` is not off. A session may set its own.
    pub synchronous_commit: Option<bool>,
    /// Whether vacuum comes by itself: `autovacuum` and `track_counts` are on.
    pub autovacuum: Option<bool>,
    /// `wal_segment_size`, in bytes.
    pub wal_segment_size: u64,
    /// `wal_level`.
    pub wal_level: String,
    /// `wal_log_hints`.
    pub wal_log_hints: bool,
    /// Whether all data pages have checksums.
    pub data_checksums: bool,
}

/// Reads the settings of a data directory. `None` where it is none, or of a release that is not read;
/// `warnings` says what could not be read.
pub fn read(directory: &Path, warnings: &mut Vec<String>) -> Option<ServerSettings> {
    let control = match control::read(directory) {
        Ok(control) => control,
        Err(error) => {
            warnings.push(warning(&control::path(directory), error));
            return None;
        }
    };
    let version = match release(directory) {
        Ok(version) => version,
        Err(text) => {
            warnings.push(text);
            return None;
        }
    };
    let conf = read_conf(directory);
    let settings = of(directory, &conf, &control, version);
    warnings.extend(conf.warnings);
    Some(settings)
}

/// Settings that keep WAL in `pg_wal`; `None` where a value is not known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Keeping {
    /// `wal_keep_size`, or `wal_keep_segments` (up to 12), in bytes.
    pub wal_keep_bytes: Option<u64>,
    /// The same as it stands there.
    pub wal_keep_text: String,
    /// Whether `archive_mode` is on.
    pub archives: Option<bool>,
    /// Whether it is `always`, so that a standby archives too.
    pub archives_always: bool,
    /// Whether it is known that no `archive_command` and no `archive_library` is set.
    pub has_no_archiver: bool,
    /// `archive_library`, where it is set: it then archives, and no command does.
    pub archive_library: Option<String>,
    /// `max_slot_wal_keep_size` as it stands there, where it limits anything.
    pub slot_limit_text: Option<String>,
    /// The same in bytes.
    pub slot_limit_bytes: Option<u64>,
    /// Whether the release has that setting.
    pub limits_slots: bool,
    /// Whether `summarize_wal` is on (17 and later).
    pub summarizes: bool,
    /// `max_wal_size`, in bytes.
    pub max_wal_size: Option<u64>,
}

/// Reads those of a data directory with segments of so many bytes.
pub(crate) fn keeping(directory: &Path, segment_bytes: u64) -> Keeping {
    let release = release(directory).ok();
    let unit = release.map_or(1 << 20, |version| size_unit(version, segment_bytes));
    let conf = read_conf(directory);
    let given = |name: &str| conf.values.get(name).map(String::as_str);
    let size = |name: &str, unit| given(name).and_then(|text| unit::bytes(text, unit));
    let segments = given("wal_keep_segments").and_then(|text| text.trim().parse::<u64>().ok());
    let of_segments = segments.map(|count| count.saturating_mul(segment_bytes));
    let text = |name: &str| given(name).map(|value| format!("{name} = {value}"));
    let archives = given("archive_mode").map(|mode| unit::switch(mode) != Some(false));
    let is_empty = |name: &str| given(name).is_none_or(|command| command.trim().is_empty());
    let slot_limit = size("max_slot_wal_keep_size", 1 << 20);
    Keeping {
        has_no_archiver: conf.warnings.is_empty()
            && is_empty("archive_command")
            && is_empty("archive_library"),
        archive_library: given("archive_library")
            .map(|library| library.trim().to_owned())
            .filter(|library| !library.is_empty()),
        slot_limit_text: slot_limit.and_then(|_| text("max_slot_wal_keep_size")),
        slot_limit_bytes: slot_limit,
        summarizes: given("summarize_wal").and_then(unit::switch) == Some(true),
        limits_slots: release.is_none_or(|version| version.pacing.limits_slots),
        wal_keep_bytes: size("wal_keep_size", 1 << 20).or(of_segments),
        wal_keep_text: text("wal_keep_size").or(text("wal_keep_segments")).unwrap_or_default(),
        archives_always: given("archive_mode")
            .is_some_and(|mode| mode.trim().eq_ignore_ascii_case("always")),
        archives: archives.or(Some(false).filter(|_| conf.warnings.is_empty())),
        max_wal_size: size("max_wal_size", unit),
    }
}

/// The settings of a data directory that end a recovery before the end of its WAL (`recovery_target`, and
/// those that begin so), as lines of postgresql.conf. Empty ones set nothing, nor does the timeline that
/// a server follows without being told, which `is_followed` knows.
pub fn recovery_targets(directory: &Path, is_followed: impl Fn(&str) -> bool) -> Vec<String> {
    let conf = read_conf(directory);
    let ends = |(name, value): &(&String, &String)| match name.strip_prefix("recovery_target") {
        None | Some("_action" | "_inclusive") => false,
        Some("_timeline") => !matches!(value.as_str(), "" | "latest") && !is_followed(value),
        Some(_) => !value.is_empty(),
    };
    conf.values.iter().filter(ends).map(line).collect()
}

/// A setting as a line of postgresql.conf.
fn line((name, value): (&String, &String)) -> String {
    format!("{name} = '{}'", value.replace('\'', "''"))
}

/// The settings of a data directory with commands that a server runs in recovery, beside the one that fetches
/// WAL, as lines of postgresql.conf.
pub fn recovery_commands(directory: &Path) -> Vec<String> {
    let conf = read_conf(directory);
    let is_command = |(name, value): &(&String, &String)| {
        matches!(name.as_str(), "archive_cleanup_command" | "recovery_end_command")
            && !value.is_empty()
    };
    conf.values.iter().filter(is_command).map(line).collect()
}

/// What a data directory has for `recovery_min_apply_delay`, if that is anything.
pub fn recovery_delay(directory: &Path) -> Option<String> {
    let delay = read_conf(directory).values.remove("recovery_min_apply_delay")?;
    let digits = delay.trim().split(|digit: char| !digit.is_ascii_digit()).next();
    let is_none = digits.and_then(|digits| digits.parse().ok()) == Some(0_u64);
    (!is_none && !delay.is_empty()).then_some(delay)
}

/// What a bare number of `max_wal_size` counts: segments up to 9.6, megabytes since.
fn size_unit(version: &Version, segment_bytes: u64) -> u64 {
    if version.pacing.sizes_in_segments { segment_bytes } else { 1 << 20 }
}

/// All that sets something, what counts most last.
fn read_conf(directory: &Path) -> Conf {
    let mut conf = Conf::default();
    let arguments = arguments(directory);
    // Debian keeps the file elsewhere, and says so to the server.
    let elsewhere = arguments.iter().rev().find(|(setting, _)| setting == "config_file");
    let elsewhere = elsewhere.map(|(_, path)| directory.join(path));
    let own = directory.join("postgresql.conf");
    conf.read(&elsewhere.filter(|path| path.is_file() || !own.exists()).unwrap_or(own));
    let auto = directory.join("postgresql.auto.conf");
    if auto.exists() {
        conf.read(&auto);
    }
    arguments.into_iter().for_each(|(name, value)| conf.put(name, value));
    conf
}

/// Settings among the arguments of the last start: `-c name=value` and `--name=value`.
fn arguments(directory: &Path) -> Vec<(String, String)> {
    let bytes = read_at_most(&directory.join("postmaster.opts"), OPTS_BYTES).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    // Each stands in quotes, behind the program's name without any.
    let given: Vec<&str> = text.trim_end().split(" \"").skip(1).collect();
    let given = given.iter().map(|argument| argument.strip_suffix('"').unwrap_or(argument));
    let mut settings = Vec::new();
    let mut is_value = false;
    for argument in given {
        let pair = match (is_value, argument.strip_prefix("--"), argument.strip_prefix("-c")) {
            (true, ..) => Some(argument),
            (_, Some(long), _) => Some(long),
            (_, _, Some(value)) if !value.is_empty() => Some(value),
            _ => None,
        };
        is_value = !is_value && argument == "-c";
        let pair = pair.and_then(|pair| pair.split_once('='));
        settings.extend(pair.map(|(name, value)| {
            // A dash stands for what the shell allows no underscore for.
            (name.trim().replace('-', "_").to_ascii_lowercase(), value.to_owned())
        }));
    }
    settings
}

/// A value that is given, or else the default of the server, if all that sets something was read.
fn known<T>(given: Option<Option<T>>, is_whole: bool, default: Option<T>) -> Option<T> {
    given.unwrap_or(default.filter(|_| is_whole))
}

/// Whether `AutoVacuumingActive()`: it needs the counts of `track_counts` too.
fn autovacuum(conf: &Conf) -> Option<bool> {
    let is_on = |name: &str| {
        let given = conf.values.get(name).map(|text| unit::switch(text));
        known(given, conf.warnings.is_empty(), Some(true))
    };
    match [is_on("autovacuum"), is_on("track_counts")] {
        [Some(true), Some(true)] => Some(true),
        [Some(false), _] | [_, Some(false)] => Some(false),
        _ => None,
    }
}

fn of(
    directory: &Path,
    conf: &Conf,
    control: &Control,
    version: &'static Version,
) -> ServerSettings {
    let given = |name: &str| conf.values.get(name).map(String::as_str);
    // What stands nowhere has the server's default, if everything was read.
    let is_whole = conf.warnings.is_empty();
    let segment = u64::from(control.wal_segment_bytes);
    let size_unit = size_unit(version, segment);
    let max_wal_size = given("max_wal_size").map(|text| unit::bytes(text, size_unit));
    let seconds = |name| given(name).map(unit::seconds);
    let target = given("checkpoint_completion_target").map(|text| text.trim().parse().ok());
    let switch = |name| given(name).map(unit::switch);
    ServerSettings {
        directory: directory.display().to_string(),
        version,
        system_identifier: control.system_identifier,
        max_wal_size: known(max_wal_size, is_whole, Some(DEFAULT_MAX_WAL_SIZE)),
        checkpoint_timeout: known(
            seconds("checkpoint_timeout"),
            is_whole,
            Some(DEFAULT_CHECKPOINT_TIMEOUT),
        ),
        checkpoint_completion_target: known(
            target,
            is_whole,
            Some(version.pacing.completion_target),
        ),
        wal_compression: known(
            given("wal_compression").map(unit::codec),
            is_whole,
            Some("off".to_owned()),
        ),
        full_page_writes: known(switch("full_page_writes"), is_whole, Some(true)),
        archive_timeout: known(seconds("archive_timeout"), is_whole, Some(0)),
        synchronous_commit: known(
            given("synchronous_commit").map(|text| Some(unit::switch(text) != Some(false))),
            is_whole,
            Some(true),
        ),
        autovacuum: autovacuum(conf),
        wal_segment_size: segment,
        wal_level: control.wal_level.to_owned(),
        wal_log_hints: control.wal_log_hints,
        data_checksums: control.data_checksums,
    }
}

/// `max_wal_size` where nobody has set it. An initdb that makes segments of another size sets it explicitly.
pub const DEFAULT_MAX_WAL_SIZE: u64 = 1 << 30;
/// `checkpoint_timeout` where nobody has set it.
pub const DEFAULT_CHECKPOINT_TIMEOUT: u64 = Pacing::DEFAULT_TIMEOUT_SECONDS as u64;

impl ServerSettings {
    /// After so many segments a checkpoint begins by volume.
    pub fn checkpoint_segments(&self) -> Option<u64> {
        let (size, target) = self.max_wal_size.zip(self.checkpoint_completion_target)?;
        Some(self.version.pacing.checkpoint_segments(size, self.wal_segment_size, target))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn arguments_of_the_last_start_set_something_too() {
        let root = tempfile::tempdir().expect("a directory");
        let text = "/usr/bin/postgres \"-D\" \"/data\" \"-c\" \"config_file=/etc/a b.conf\" \
                    \"--max-wal-size=2GB\" \"-cwal_compression=on\" \"-p\" \"5433\"\n";
        fs::write(root.path().join("postmaster.opts"), text).expect("a file");
        let pairs =
            [("config_file", "/etc/a b.conf"), ("max_wal_size", "2GB"), ("wal_compression", "on")];
        assert_eq!(arguments(root.path()), pairs.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }

    #[test]
    fn autovacuum_needs_its_counts_and_all_that_sets_it() {
        let told = |text: &str| {
            let root = tempfile::tempdir().expect("a directory");
            fs::write(root.path().join("postgresql.conf"), text).expect("a file");
            autovacuum(&read_conf(root.path()))
        };
        assert_eq!(told(""), Some(true));
        assert_eq!(told("autovacuum = off\nautovacuum = on"), Some(true));
        assert_eq!(told("autovacuum = off"), Some(false));
        assert_eq!(told("track_counts = no"), Some(false));
        assert_eq!(told("include 'missing.conf'"), None);
        assert_eq!(told("autovacuum = off\ninclude 'missing.conf'"), Some(false));
    }

    #[test]
    fn a_recovery_ends_early_where_a_target_is_set() {
        let told = |text: &str| {
            let root = tempfile::tempdir().expect("a directory");
            fs::write(root.path().join("postgresql.conf"), "recovery_target_xid = '7'\n")
                .expect("a file");
            fs::write(root.path().join("postgresql.auto.conf"), text).expect("a file");
            recovery_targets(root.path(), |timeline| timeline == "4").join(", ")
        };
        assert_eq!(told(""), "recovery_target_xid = '7'");
        let ends =
            "recovery_target_xid = ''\nRecovery_Target_Name = 'a''b'\nrecovery_target = immediate";
        assert_eq!(told(ends), "recovery_target = 'immediate', recovery_target_name = 'a''b'");
        let no_end = "recovery_target_xid = ''\nrecovery_target_action = promote\n\
                      recovery_target_timeline = 'latest'\nrecovery_target_inclusive = off";
        assert_eq!(told(no_end), "");
        assert_eq!(
            told(&format!("{no_end}\nrecovery_target_timeline = 3")),
            "recovery_target_timeline = '3'"
        );
        assert_eq!(told(&format!("{no_end}\nrecovery_target_timeline = 4")), "");
    }

    #[test]
    fn what_is_set_last_counts() {
        let root = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| {
            fs::write(root.path().join(name), text).expect("a file");
        };
        write("postgresql.conf", "max_wal_size = 1GB\narchive_timeout = 60\ninclude 'more.conf'\n");
        write("more.conf", "max_wal_size = 2GB\ncheckpoint_timeout = 10min\n");
        write("postgresql.auto.conf", "checkpoint_timeout = '30 s'\n");
        write("postmaster.opts", "postgres \"-c\" \"archive_timeout=2min\"\n");
        let conf = read_conf(root.path());
        let value = |name: &str| conf.values.get(name).cloned().unwrap_or_default();
        let names = ["max_wal_size", "checkpoint_timeout", "archive_timeout"];
        assert_eq!(names.map(value), ["2GB", "30 s", "2min"]);
        assert!(conf.warnings.is_empty(), "{:?}", conf.warnings);
        write("elsewhere.conf", "max_wal_size = 3GB\n");
        write("postmaster.opts", "postgres \"-c\" \"config_file=elsewhere.conf\"\n");
        let conf = read_conf(root.path());
        assert_eq!(conf.values.get("max_wal_size").map(String::as_str), Some("3GB"));
    }
}
