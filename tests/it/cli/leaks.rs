//! What is read from a file that is no WAL is not printed, whatever name leads to it: who may run walstat may
//! be allowed to read more than who sees what it says.

use crate::support::fixtures::sample;
use crate::support::wal::plain;
use crate::support::{Ran, command, finish};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const SEGMENTS: [&str; 2] = ["000000010000000000000007", "000000010000000000000008"];
const SECRET: &str = "root:$6$salt$hunter2hunter2:19000:0:99999:7:::\nhunter2 = \"hunter2\"\n";

/// Segments, and a secret that is elsewhere.
fn archive() -> TempDir {
    let here = tempfile::tempdir().expect("a directory");
    let wal = here.path().join("wal");
    fs::create_dir(&wal).expect("a directory");
    for name in SEGMENTS {
        fs::write(wal.join(name), plain(&sample("pg15-mixed"), name)).expect("a segment");
    }
    fs::write(here.path().join("secret"), SECRET).expect("a file");
    here
}

#[track_caller]
fn tells_nothing(ran: &Ran) {
    for text in [&ran.stdout, &ran.stderr] {
        assert!(!text.contains("hunter2") && !text.contains("$6$"), "{}: {text}", ran.call);
    }
}

fn run(here: &Path, words: &str) -> Ran {
    let words: Vec<&str> = words.split_whitespace().collect();
    finish(command(&words).current_dir(here))
}

#[cfg(unix)]
#[test]
fn a_link_under_a_name_of_wal_shows_nothing() {
    let here = archive();
    let link = |name: &str| {
        std::os::unix::fs::symlink("../secret", here.path().join("wal").join(name))
            .expect("a link");
    };
    link("00000002.history");
    let forms = ["-f table -v", "-f json", "--stats -f csv", "check", "check -f junit", "names"];
    for form in forms.into_iter().chain(["records", "whatif -f json", "--partial -o part"]) {
        tells_nothing(&run(here.path(), &format!("{form} wal")));
    }
    let told = run(here.path(), "-f json wal").exits(4).json();
    let problem = &told["problems"][0];
    assert_eq!(problem["segment"], "00000002.history");
    assert_eq!(problem["found"], "something else in line 1");
    link("000000010000000000000009");
    link("00000001000000000000000A.gz");
    link("000000010000000000000006.00000028.backup");
    for form in forms {
        tells_nothing(&run(here.path(), &format!("{form} wal")));
    }
}

#[test]
fn a_file_that_is_something_else_is_not_quoted() {
    let here = archive();
    for words in [
        "--names secret wal",
        "names --names secret wal",
        "--config secret wal",
        "check --config secret wal",
        "check --baseline secret wal",
        "check --backup-label secret wal",
        "diff secret wal",
        "merge secret",
        "secret",
    ] {
        tells_nothing(&run(here.path(), words));
    }
    for (json, words) in [
        ("{\"schema\": \"hunter2\"}", "schema"),
        ("{\"schema\": \"1.0\", \"command\": \"hunter2\"}", "another command"),
        ("{\"schema\": \"1.0\", \"command\": \"report\", \"input\": \"hunter2\"}", "no report"),
        ("{\"hunter2\": hunter2}", "no JSON in line 1"),
        ("{\"error\": \"hunter2\"}", "schema"),
    ] {
        fs::write(here.path().join("other.json"), json).expect("a file");
        let ran = run(here.path(), "diff other.json wal").exits(3);
        tells_nothing(&ran);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
        tells_nothing(&run(here.path(), "check --baseline other.json wal").exits(3));
        tells_nothing(&run(here.path(), "--names other.json --stats=relation wal"));
    }
}

/// A partial result goes to others; and still a merge says what a report of all says.
#[test]
fn a_partial_result_has_no_bytes_of_other_files() {
    let here = archive();
    let wal = here.path().join("wal");
    fs::write(wal.join("000000010000000000000009"), SECRET.repeat(30_000)).expect("a file");
    let zeros = [vec![0; 70_000], SECRET.repeat(100).into_bytes()].concat();
    fs::write(wal.join("00000001000000000000000A"), zeros).expect("a file");
    run(here.path(), "--partial -o part wal").exits(0);
    let part = fs::read(here.path().join("part")).expect("a partial result");
    let plain = zstd::decode_all(&part[32..]).expect("zstd");
    let has = |word: &str| plain.windows(word.len()).any(|window| window == word.as_bytes());
    assert!(!has("hunter2") && !has("salt") && has("wal"));
    let json = |words: &str| {
        let mut json = run(here.path(), words).exits(4).json();
        json["input"]["paths"] = serde_json::Value::Null;
        json
    };
    assert_eq!(json("merge part -f json"), json("wal -f json"));
}

/// Nor has anything of a connection string: it may have a password in it.
#[test]
fn a_connection_string_is_not_told() {
    let here = archive();
    for dsn in [
        "postgres://walstat:hunter2@127.0.0.1:1/shop",
        "host=127.0.0.1\u{a0}port=1\u{a0}password=hunter2",
        "password=hunter2",
    ] {
        let option = format!("--dsn={}", dsn.replace('\u{a0}', " "));
        let forms = ["-v", "-f=json", "--stats=relation", "records", "names", "check", "-opart"];
        for form in forms.into_iter().chain(["--nonsense", "-R=hunter3", "whatif"]) {
            let words = [form, &option, "wal"];
            tells_nothing(&finish(command(&words).current_dir(here.path())));
        }
    }
}

/// Messages end in logs and mails.
#[test]
fn keys_in_a_url_are_not_printed() {
    let here = archive();
    for path in
        ["s3://hunter2:hunter2@b/p", "az://c/p?sig=hunter2", "https://u:hunter2@h/p?x=hunter2"]
    {
        for form in
            ["check", "check -f json", "check -f junit", "check -f nagios", "-f json", "window"]
        {
            let ran = run(here.path(), &format!("{form} --endpoint http://127.0.0.1:1 {path}"));
            tells_nothing(&ran);
            tells_nothing(&run(here.path(), &format!("{form} {path}")));
        }
    }
}
