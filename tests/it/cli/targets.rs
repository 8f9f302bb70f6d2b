//! What `--output` never does: overwrite what is read, follow a link that others have put there, keep rights
//! that a file was given by somebody else, write into what is no file, leave half a result.

use super::bad_input::one_line;
use crate::support::fixtures::sample;
use crate::support::missing::skip;
use crate::support::wal::file;
use crate::support::{Ran, WALSTAT, command, finish, signals, walstat};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SEGMENT: &str = "000000010000000000000015";
/// The user whom nothing belongs to.
const NOBODY: u32 = 65534;

fn wal() -> PathBuf {
    sample("pg15-mixed").segment(SEGMENT)
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its owner's right");
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("the file").mode() & 0o7777
}

fn entries(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("the directory");
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
    let mut names: Vec<String> =
        entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn stats_into(output: &Path) -> Ran {
    let wal = wal();
    let words = [Path::new("--stats"), Path::new("-o"), output, &wal].map(Path::as_os_str);
    walstat(&words)
}

/// Only root can give files away.
fn is_root() -> bool {
    let directory = directory();
    let is_root = chown(directory.path(), Some(NOBODY), None).is_ok();
    if !is_root {
        skip("files of other users", "only root can make them");
    }
    is_root
}

#[test]
fn a_file_keeps_the_rights_that_its_owner_gave_it() {
    let here = directory();
    let target = file(here.path(), "result.txt", b"an older result");
    for (before, after) in [(0o640, 0o640), (0o664, 0o664), (0o6755, 0o755), (0o600, 0o600)] {
        set_mode(&target, before);
        stats_into(&target).exits(0);
        assert_eq!(mode(&target), after, "{before:o}");
    }
}

/// As `sort -o` and `sed -i` leave it.
#[test]
fn a_file_of_somebody_else_stays_theirs() {
    if !is_root() {
        return;
    }
    let here = directory();
    let target = here.path().join("result.txt");
    for before in [0o600, 0o640, 0o4755] {
        fs::write(&target, "an older result").expect("a file");
        chown(&target, Some(NOBODY), Some(NOBODY)).expect("root can");
        set_mode(&target, before);
        stats_into(&target).exits(0);
        let found = fs::metadata(&target).expect("the result");
        assert_eq!((found.uid(), found.gid()), (NOBODY, NOBODY));
        assert_eq!(mode(&target), before & 0o777, "{before:o}");
    }
}

#[test]
fn a_file_that_others_may_have_prepared_gives_no_rights() {
    if !is_root() {
        return;
    }
    let here = directory();
    set_mode(here.path(), 0o1777);
    let target = here.path().join("result.txt");
    for (before, most) in [(0o4777, 0o755), (0o2775, 0o755), (0o600, 0o600)] {
        fs::write(&target, "prepared").expect("a file");
        chown(&target, Some(NOBODY), Some(NOBODY)).expect("root can");
        set_mode(&target, before);
        stats_into(&target).exits(0);
        let found = fs::metadata(&target).expect("the result");
        assert_eq!((found.uid(), mode(&target) & !most), (0, 0), "{before:o}: {:o}", mode(&target));
        fs::remove_file(&target).expect("the result");
    }
}

/// A file that is to be left alone, and the link to it, in a directory that looks as `prepare` says.
fn planted(prepare: impl Fn(&Path, &Path)) -> (TempDir, PathBuf, PathBuf) {
    let here = directory();
    let victim = file(here.path(), "victim", b"to be left alone");
    let open = here.path().join("open");
    fs::create_dir(&open).expect("a directory");
    let link = open.join("result.txt");
    symlink(&victim, &link).expect("a link");
    symlink(here.path(), open.join("folder")).expect("a link");
    prepare(&open, &link);
    (here, victim, link)
}

#[track_caller]
fn is_left_alone(prepare: impl Fn(&Path, &Path)) {
    let (_here, victim, link) = planted(prepare);
    let through = link.with_file_name("folder").join("victim");
    for target in [&link, &through] {
        let name = target.to_str().expect("UTF-8");
        one_line(&stats_into(target).exits(2), &[name, "symbolic link", "--output"]);
        let stream = ["records".as_ref(), "-o".as_ref(), target.as_os_str(), wal().as_os_str()]
            .map(std::ffi::OsStr::to_owned);
        one_line(&walstat(&stream).exits(2), &[name, "symbolic link"]);
        assert_eq!(fs::read(&victim).expect("the file"), b"to be left alone");
        assert!(fs::symlink_metadata(&link).expect("the link").is_symlink());
    }
}

#[test]
fn a_link_where_all_may_write_is_not_followed() {
    is_left_alone(|open, _| set_mode(open, 0o1777));
    is_left_alone(|open, _| set_mode(open, 0o777));
}

#[test]
fn a_link_of_somebody_else_is_not_followed() {
    if !is_root() {
        return;
    }
    let give = |path: &Path| lchown(path, Some(NOBODY), Some(NOBODY)).expect("root can");
    is_left_alone(|open, link| {
        give(link);
        give(open);
    });
    is_left_alone(|open, _| give(open));
    is_left_alone(|open, link| {
        give(link);
        give(&link.with_file_name("folder"));
        set_mode(open, 0o775);
    });
}

#[test]
fn a_link_of_ones_own_is_followed() {
    let (_here, victim, link) = planted(|_, _| {});
    stats_into(&link).exits(0);
    assert!(fs::symlink_metadata(&link).expect("the link").is_symlink());
    assert!(fs::read_to_string(&victim).expect("the result").contains("Heap"));
    let nowhere = link.with_file_name("dangling");
    symlink("new.txt", &nowhere).expect("a link");
    stats_into(&nowhere).exits(0);
    assert!(link.with_file_name("new.txt").is_file());
}

#[test]
fn what_is_no_file_is_no_target() {
    let here = directory();
    let fifo = here.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo starts").success());
    let socket = here.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    for (target, kind) in [(&fifo, "a named pipe"), (&socket, "a socket")] {
        let name = target.to_str().expect("UTF-8");
        one_line(&stats_into(target).exits(2), &[name, kind]);
    }
    assert!(fs::symlink_metadata(&fifo).expect("the fifo").file_type().is_fifo());
    assert_eq!(entries(here.path()), ["fifo", "socket"]);
    if is_root() {
        let made = ["m", "666", "c", "1", "8"];
        let device = here.path().join("random");
        let node =
            Command::new("mknod").arg("-m").arg(made[1]).arg(&device).args(&made[2..]).status();
        if node.expect("mknod starts").success() {
            one_line(&stats_into(&device).exits(2), &["a device"]);
        }
    }
}

/// A slash at the end says that a directory is meant.
#[test]
fn a_file_is_not_made_where_a_directory_is_named() {
    let here = directory();
    for target in ["new/", "new/.", "file/"] {
        fs::write(here.path().join("file"), "kept").expect("a file");
        let ran = stats_into(&here.path().join(target));
        one_line(&ran.exits(2), &[target, "names a directory"]);
        assert_eq!(entries(here.path()), ["file"]);
    }
}

/// Also where there is no file yet.
#[test]
fn two_outputs_do_not_go_to_one_file_through_a_link() {
    let here = directory();
    symlink("result", here.path().join("link")).expect("a link");
    symlink("link", here.path().join("longer")).expect("a link to it");
    let wal = wal();
    for (one, other) in [("result", "link"), ("longer", "result"), ("link", "longer")] {
        let words = ["--stats", "-f", "json", "-o", one, "-f", "csv", "-o", other];
        let ran = finish(command(&words).arg(&wal).current_dir(here.path())).exits(2);
        assert!(ran.stderr.contains("two outputs for"), "{}", ran.stderr);
    }
    assert_eq!(entries(here.path()), ["link", "longer"]);
}

/// `-o >(gzip >FILE)` of a shell, and the devices that stand for standard output.
#[test]
fn what_the_shell_has_opened_is_written_to() {
    let here = directory();
    let told = walstat(&[Path::new("--stats"), Path::new("-fcsv"), &wal()]).exits(0).stdout;
    for script in [
        "\"$0\" --stats -fcsv -o /dev/stdout \"$1\" > result",
        "\"$0\" --stats -fcsv -o /dev/fd/5 \"$1\" 5> result",
        "\"$0\" --stats -fcsv -o /proc/self/fd/1 \"$1\" > result",
        "\"$0\" --stats -fcsv -o /proc/self/fd/5 \"$1\" 5> result",
        "\"$0\" --stats -fcsv -o /dev/stdout \"$1\" | cat > result",
        "\"$0\" --stats -fcsv -o /dev/fd/5 \"$1\" 5>&1 | cat > result",
        "\"$0\" --stats -fcsv -o /dev/stderr \"$1\" 2> result",
    ] {
        let mut shell = Command::new("bash");
        let shell = shell.args(["-c", script, WALSTAT]).arg(wal());
        finish(shell.current_dir(here.path())).exits(0);
        assert_eq!(fs::read_to_string(here.path().join("result")).expect("it"), told, "{script}");
    }
}

/// A directory with everything that a call can read.
fn inputs() -> TempDir {
    let here = directory();
    let put = |name: &str, bytes: &[u8]| file(here.path(), name, bytes);
    put(SEGMENT, &fs::read(wal()).expect("a segment"));
    put("names.csv", b"database,oid,name\n5,16384,orders\n");
    put("walstat.toml", b"[rules]\nhot-ratio = 0.35\n");
    put("broken.toml", b"no settings");
    put("before.json", b"{}");
    put("backup_label", b"START WAL LOCATION: no");
    fs::create_dir_all(here.path().join("data/global")).expect("a directory");
    put("data/PG_VERSION", b"15\n");
    put("data/global/pg_control", b"no control file");
    put("data/postgresql.conf", b"max_wal_size = 1GB\n");
    let part = ["--partial", "-o", "part", SEGMENT];
    finish(command(&part).current_dir(here.path())).exits(0);
    for name in ["names.csv", "broken.toml", "part", SEGMENT] {
        fs::hard_link(here.path().join(name), here.path().join(format!("hard-{name}")))
            .expect("a link");
        symlink(name, here.path().join(format!("soft-{name}"))).expect("a link");
    }
    here
}

#[test]
fn nothing_that_is_read_is_overwritten() {
    let here = inputs();
    let of = |name: &str| fs::read(here.path().join(name)).expect("a file");
    for (words, target) in [
        ("--names names.csv -f json", "names.csv"),
        ("--names names.csv", "hard-names.csv"),
        ("--names names.csv", "soft-names.csv"),
        ("--names soft-names.csv", "names.csv"),
        ("--partial --names names.csv", "names.csv"),
        ("records --names names.csv", "names.csv"),
        ("names --names names.csv", "names.csv"),
        ("check --names names.csv -f nagios", "names.csv"),
        ("-f json", "walstat.toml"),
        ("check -f json", "walstat.toml"),
        ("--config broken.toml -f json", "broken.toml"),
        ("check --config broken.toml -f json", "hard-broken.toml"),
        ("check --config broken.toml -f nagios", "broken.toml"),
        ("check --baseline before.json -f nagios", "before.json"),
        ("check --backup-label backup_label -f nagios", "backup_label"),
        ("--data-directory data --stats", "data/PG_VERSION"),
        ("--data-directory data --stats", "data/global/pg_control"),
        ("records --data-directory data", "data/postgresql.conf"),
        ("check -f nagios", SEGMENT),
        ("records", "hard-000000010000000000000015"),
        ("whatif -f json", "soft-000000010000000000000015"),
        ("--config broken.toml -f json", SEGMENT),
    ] {
        let before = of(target);
        let is_plugin = words.contains("nagios");
        let words: Vec<&str> = words.split(' ').chain(["-o", target, SEGMENT]).collect();
        let ran = finish(command(&words).current_dir(here.path()));
        assert_eq!(of(target), before, "{}", ran.call);
        if is_plugin {
            assert!(ran.exits(3).stdout.contains("--output"))
        } else {
            one_line(&ran.exits(2), &[target, "--output"])
        }
    }
    for target in ["part", "hard-part", "soft-part"] {
        let before = of("part");
        let ran = finish(command(&["merge", "part", "-o", target]).current_dir(here.path()));
        one_line(&ran.exits(2), &[target, "is an input"]);
        assert_eq!(of("part"), before);
    }
}

/// Waits until the program has an output open in this directory.
#[cfg(target_os = "linux")]
fn wait_for_output(child: &Child, directory: &Path) {
    let begun = Instant::now();
    let open = format!("/proc/{}/fd", child.id());
    let is_inside = |entry: std::io::Result<fs::DirEntry>| {
        let target = entry.ok().and_then(|entry| fs::read_link(entry.path()).ok());
        target.is_some_and(|target| target.parent() == Some(directory))
    };
    while !fs::read_dir(&open).is_ok_and(|mut entries| entries.any(is_inside)) {
        assert!(begun.elapsed() < crate::support::patience::PATIENCE, "nothing was opened");
        sleep(Duration::from_millis(5));
    }
}

#[cfg(target_os = "linux")]
fn ends_by(child: &mut Child) -> Option<i32> {
    use std::os::unix::process::ExitStatusExt;
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            return status.signal();
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "it outlives the signal");
        sleep(Duration::from_millis(5));
    }
}

/// Standard input stays open all the time.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_ends_it_while_it_waits_and_nothing_is_left() {
    for (name, number) in [("HUP", 1), ("INT", 2), ("QUIT", 3), ("TERM", 15), ("KILL", 9)] {
        let here = directory();
        let target = file(here.path(), "rows.csv", b"the last good result");
        let mut command =
            signals::none_ignored(&command(&["records", "-f", "csv", "-o", "rows.csv", "-"]));
        let command = command.current_dir(here.path()).stdin(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("walstat starts");
        let whole = fs::canonicalize(here.path()).expect("the directory");
        wait_for_output(&child, &whole);
        signals::send(&child, name);
        assert_eq!(ends_by(&mut child), Some(number), "{name}");
        assert_eq!(entries(here.path()), ["rows.csv"], "{name}");
        assert_eq!(fs::read(&target).expect("the file"), b"the last good result", "{name}");
    }
}

/// What comes through a pipe is kept to be read again, in a file that nobody sees.
#[cfg(target_os = "linux")]
#[test]
fn what_is_kept_of_a_pipe_is_gone_whatever_ends_it() {
    for (name, number) in [("TERM", 15), ("KILL", 9)] {
        let here = directory();
        let mut command = command(&["whatif", "-"]);
        let command = command.env("TMPDIR", here.path()).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::null()).spawn().expect("walstat starts");
        wait_for_output(&child, &fs::canonicalize(here.path()).expect("the directory"));
        signals::send(&child, name);
        assert_eq!(ends_by(&mut child), Some(number), "{name}");
        assert_eq!(entries(here.path()), Vec::<String>::new(), "{name}");
    }
    let script = "printf 'no write-ahead log at all' | \"$0\" whatif -";
    let ran = finish(Command::new("bash").args(["-c", script, WALSTAT])).exits(3);
    one_line(&ran, &["walstat: -: "]);
    let script = "(cat \"$1\"; printf 'no write-ahead log') | \"$0\" whatif -f json -";
    let ran = finish(Command::new("bash").args(["-c", script, WALSTAT]).arg(wal()));
    for place in ["/proc/", "/tmp/"] {
        assert!(!ran.stdout.contains(place) && !ran.stderr.contains(place), "{}", ran.stdout);
    }
}
