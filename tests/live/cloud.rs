//! WAL in object stores, read by their own protocols: the same as on disk, whatever the network does, and
//! no more of it than is asked for.

mod proxy;
mod store;

use crate::common::builder::{Form, Wal};
use crate::common::record::{Block, HEAP, Image, Rec, TRANSACTION};
use crate::support::fixtures::{fixtures, sample};
use crate::support::{Ran, command, finish, walstat};
use proxy::{Act, Proxy, Request};
use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};
use store::{Kind, Store, free_port};

const KEY: &str = "AKIATESTTESTTEST";
const SECRET: &str = "NeverPrintThisSecret/1";
const TOKEN: &str = "NeverPrintThisToken/2";

/// Runs the program with an endpoint and credentials in its environment.
fn on(endpoint: &str, arguments: &[&str]) -> Ran {
    let mut command = command(arguments);
    command.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET);
    command.env("AWS_SESSION_TOKEN", TOKEN).env("AWS_REGION", "us-east-1");
    command.env("AWS_ENDPOINT_URL", endpoint).env("STORAGE_EMULATOR_HOST", endpoint);
    let ran = finish(&mut command);
    for secret in [SECRET, TOKEN] {
        assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret), "{}", ran.call);
    }
    ran
}

/// Archives as archivers make them, unpacked below a folder.
fn trees(folder: &Path) -> PathBuf {
    let packed = std::fs::File::open(fixtures().join("archives/trees.tar.zst")).expect("the trees");
    let packed = zstd::Decoder::new(packed).expect("zstd");
    tar::Archive::new(packed).unpack(folder).expect("a tar");
    folder.join("trees")
}

/// The trees that are compared with the same on disk: every archiver's, every packing of one of them.
const TREES: [&str; 7] = [
    "cp",
    "pgbackrest-zst",
    "pgbackrest-none",
    "barman-gzip",
    "receiving-none",
    "basebackup",
    "promotion",
];

/// What is printed with the place in it called alike, and without what depends on the processor.
fn leveled(ran: &Ran, place: &str) -> (Option<i32>, String, String) {
    let level = |text: &str| text.replace(place, "PLACE");
    (ran.code, level(&ran.stdout), level(&ran.stderr))
}

/// What is said of a place in a bucket is what is said of it on disk.
#[track_caller]
fn is_the_same(endpoint: &str, arguments: &[&str], url: &str, directory: &Path) {
    let directory = directory.to_str().expect("UTF-8");
    let there = on(endpoint, &[arguments, &[url]].concat());
    let here = walstat(&[arguments, &[directory]].concat());
    assert_eq!(leveled(&there, url), leveled(&here, directory), "{}", there.call);
}

#[test]
fn what_is_said_of_a_bucket_is_what_is_said_of_the_same_tree_on_disk() {
    let Some(store) = Store::start(Kind::S3) else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let trees = trees(folder.path());
    let bucket = store.put(&trees);
    let commands: [&[&str]; 3] =
        [&["--stats=all", "-f", "json"], &["check", "-f", "json"], &["window", "-f", "json"]];
    for tree in TREES {
        for command in commands {
            let url = format!("s3://{bucket}/archive/{tree}");
            is_the_same(&store.endpoint(), command, &url, &trees.join(tree));
        }
    }
    // Several archives below one prefix, too: they are told apart.
    is_the_same(&store.endpoint(), &["-f", "json"], &format!("s3://{bucket}/archive"), &trees);
    for name in ["pg15-mixed", "timeline", "livedir"] {
        let sample = sample(name);
        let bucket = store.put(&sample.wal);
        let commands: [&[&str]; 4] = [
            &["--stats=all", "-f", "json"],
            &["-f", "json"],
            &["events", "-f", "json"],
            &["records", "-f", "csv", "-n", "1000"],
        ];
        for command in commands {
            let url = format!("s3://{bucket}/archive/");
            is_the_same(&store.endpoint(), command, &url, &sample.wal);
        }
    }
}

#[test]
fn a_directory_may_be_given_by_url_too() {
    let sample = sample("pg15-mixed");
    let url = format!("file://{}", sample.wal.display());
    is_the_same("", &["--stats=all", "-f", "json"], &url, &sample.wal);
    let ran = walstat(&["-f", "json", "file:///no/such/directory"]).exits(3);
    assert!(ran.stderr.starts_with("walstat: /no/such/directory: No such file"), "{}", ran.stderr);
}

#[test]
fn google_cloud_storage_and_azure_are_read_alike() {
    let sample = sample("pg15-mixed");
    let arguments = ["--stats=all", "-f", "json"];
    if let Some(store) = Store::start(Kind::S3) {
        let bucket = store.put(&sample.wal);
        let url = format!("gs://{bucket}/archive");
        is_the_same(&store.endpoint(), &arguments, &url, &sample.wal);
    }
    let Some(store) = Store::start(Kind::Azure) else { return };
    let bucket = store.put(&sample.wal);
    let url = format!("az://{bucket}/archive");
    let there = |variables: &[(&str, &str)]| {
        let mut command = command(&[&arguments[..], &[&url]].concat());
        command.args(["--endpoint", &store.endpoint()]);
        finish(command.envs(variables.iter().copied()))
    };
    let account = ("AZURE_STORAGE_ACCOUNT", "devstoreaccount1");
    // Azurite's own key, which everybody knows.
    let key =
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
    let ran = there(&[account, ("AZURE_STORAGE_KEY", key)]);
    let here = walstat(&[&arguments[..], &[sample.wal.to_str().expect("UTF-8")]].concat());
    let directory = sample.wal.to_str().expect("UTF-8");
    assert_eq!(leveled(&ran, &url), leveled(&here, directory));
    let wrong = "d3Jvbmcga2V5IHdyb25nIGtleSB3cm9uZyBrZXk=";
    let ran = there(&[account, ("AZURE_STORAGE_KEY", wrong)]).exits(3);
    assert!(ran.stderr.starts_with(&format!("walstat: {url}: ")), "{}", ran.stderr);
    assert!(!ran.stderr.contains(wrong) && ran.stderr.lines().count() == 1, "{}", ran.stderr);
}

/// The names of objects of which more than a beginning was asked for, and of all.
fn objects(seen: &[Request]) -> (BTreeSet<String>, BTreeSet<String>) {
    let names = |of: &dyn Fn(&Request) -> bool| {
        let wanted = seen.iter().filter(|request| of(request));
        wanted.filter_map(|request| request.object().map(str::to_owned)).collect()
    };
    let is_beginning = |request: &Request| request.range.as_deref() == Some("bytes=0-65535");
    (names(&|request| !is_beginning(request)), names(&|_| true))
}

/// Segments of a minute each, of 1 MB.
fn an_hour(folder: &Path) -> usize {
    const SEGMENTS: u64 = 60;
    let mut wal = Wal::new(Form::of("15"), 1);
    let mut xid = 1000;
    while wal.at() >> 20 <= SEGMENTS {
        xid += 1;
        let block = Block { relation: Some([1663, 5, 16_384]), number: xid, ..Block::new(0) };
        let insert = Rec { xid, ..Rec::new(HEAP, 0x00, 3) };
        wal.add(&insert.block(block.data(40).image(Image::WHOLE)));
        // 2025-12-31 and so many microseconds.
        let passed = 60_000_000 * (wal.at() - (1 << 20)) as i64 / (1 << 20);
        let main = (820_454_400_000_000 + passed).to_le_bytes().to_vec();
        wal.add(&Rec { xid, main, ..Rec::new(TRANSACTION, 0x00, 0) });
    }
    let disk = wal.finish();
    let count = disk.files.len();
    disk.files.keys().for_each(|number| disk.write_segment(folder, *number));
    count
}

#[test]
fn a_range_fetches_its_segments_and_looks_into_four_others_at_most() {
    let Some(store) = Store::start(Kind::S3) else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let count = an_hour(folder.path());
    let url = format!("s3://{}/archive", store.put(folder.path()));
    let proxy = Proxy::before(store.port, |_| Act::Pass);
    let range = ["-s", "0/A00000", "-e", "0/C00000", "--stats", "-f", "json"];
    let there = on(&proxy.endpoint, &[&range[..], &[&url]].concat()).exits(0).json();
    let directory = folder.path().to_str().expect("UTF-8");
    let here = walstat(&[&range[..], &[directory]].concat()).json();
    assert_eq!(there["totals"], here["totals"]);
    let (whole, all) = objects(&proxy.seen());
    let wanted = ["00000001000000000000000A", "00000001000000000000000B"];
    assert_eq!(whole, wanted.map(str::to_owned).into(), "{count} segments");
    assert!(all.len() <= wanted.len() + 4, "{all:?}");
    let bytes: u64 = proxy.seen().iter().map(|request| request.bytes).sum();
    assert!(bytes < (2 << 20) + (12 * (64 << 10)), "{bytes} bytes were sent");
    // And where it is empty, what there is is told as on disk.
    let range = ["-s", "F/0", "--stats"];
    let there = on(&proxy.endpoint, &[&range[..], &[&url]].concat()).exits(3);
    let here = walstat(&[&range[..], &[directory]].concat()).exits(3);
    assert_eq!(there.stderr.replace(&url, directory), here.stderr);
}

#[test]
fn a_span_of_time_fetches_its_segments_and_some_pages_of_others() {
    let Some(store) = Store::start(Kind::S3) else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let count = an_hour(folder.path());
    let url = format!("s3://{}/archive", store.put(folder.path()));
    let proxy = Proxy::before(store.port, |_| Act::Pass);
    let span = ["--since", "2025-12-31 00:30:10", "--until", "2025-12-31 00:32:20"];
    let arguments = [&span[..], &["--stats", "-f", "json"]].concat();
    let there = on(&proxy.endpoint, &[&arguments[..], &[&url]].concat()).exits(0).json();
    let directory = folder.path().to_str().expect("UTF-8");
    let here = walstat(&[&arguments[..], &[directory]].concat()).exits(0).json();
    assert_eq!(there["totals"], here["totals"]);
    let mut fetched: BTreeMap<String, u64> = BTreeMap::new();
    for request in proxy.seen() {
        let Some(name) = request.object() else { continue };
        *fetched.entry(name.to_owned()).or_default() += request.bytes;
    }
    // Three segments, and one on each side.
    let whole = fetched.values().filter(|bytes| **bytes > 512 << 10).count();
    let most = 2 * count.ilog2() as usize + 4;
    assert!(whole <= 5 && fetched.len() <= whole + most, "{count} segments: {fetched:?}");
}

#[test]
fn a_nightly_round_fetches_what_is_new() {
    let Some(store) = Store::start(Kind::S3) else { return };
    let folder = tempfile::tempdir().expect("a directory");
    an_hour(folder.path());
    let (late, newest) = (tempfile::tempdir().expect("a directory"), "00000001000000000000003C");
    std::fs::rename(folder.path().join(newest), late.path().join(newest)).expect("moved");
    let bucket = store.put(folder.path());
    let url = format!("s3://{bucket}/archive");
    let state = late.path().join("state");
    let round = || {
        let proxy = Proxy::before(store.port, |_| Act::Pass);
        let arguments = ["check", "-f", "json", "--state", state.to_str().expect("UTF-8"), &url];
        let report = on(&proxy.endpoint, &arguments).json();
        let (whole, all) = objects(&proxy.seen());
        assert_eq!(report["state"]["read_segments"], whole.len());
        (all, proxy.seen().len())
    };
    let (all, _) = round();
    assert!(all.len() > 50, "{all:?}");
    let (all, requests) = round();
    assert!(all.is_empty() && requests < 5, "{requests} requests, {all:?}");
    store.put_into(&bucket, "archive", late.path());
    let (all, _) = round();
    // The state lies beside it, and is no segment.
    assert_eq!(all, [newest.to_owned()].into());
}

/// It takes the two minutes for which other credentials are waited for.
#[test]
fn a_round_whose_credentials_expire_remembers_what_it_has_read() {
    const READ: usize = 20;
    let Some(store) = Store::start(Kind::S3) else { return };
    let folder = tempfile::tempdir().expect("a directory");
    an_hour(folder.path());
    let bucket = store.put(folder.path());
    let url = format!("s3://{bucket}/archive");
    let beside = tempfile::tempdir().expect("a directory");
    let state = beside.path().join("state");
    let arguments = ["check", "-f", "json", "--state", state.to_str().expect("UTF-8"), &url];
    let read = AtomicUsize::new(0);
    let proxy = Proxy::before(store.port, move |request| {
        let is_whole = request.object().is_some() && request.range.is_none();
        if is_whole && read.fetch_add(1, Ordering::Relaxed) >= READ {
            let body = "<Error><Code>ExpiredToken</Code><Message>Too old.</Message></Error>";
            return Act::Answer(403, body.to_owned());
        }
        Act::Pass
    });
    let ran = on(&proxy.endpoint, &arguments).exits(3);
    assert!(ran.stderr.contains("ExpiredToken"), "{}", ran.stderr);
    let proxy = Proxy::before(store.port, |_| Act::Pass);
    let report = on(&proxy.endpoint, &arguments).json();
    assert_eq!(report["state"]["known_segments"], READ);
    let (whole, _) = objects(&proxy.seen());
    assert_eq!(report["state"]["read_segments"], whole.len());
}

/// How often each request fails before it is passed on.
fn troubled(request: &Request) -> Act {
    match request.before {
        0 => Act::Answer(503, "<Error><Code>SlowDown</Code></Error>".to_owned()),
        1 => Act::Reset,
        2 => Act::Short(100),
        3 if request.is_listing() => Act::Answer(500, String::new()),
        _ => Act::Pass,
    }
}

#[test]
fn what_fails_for_a_moment_is_tried_again() {
    let Some(store) = Store::start(Kind::S3) else { return };
    let sample = sample("timeline");
    let bucket = store.put(&sample.wal);
    let proxy = Proxy::before(store.port, troubled);
    let url = format!("s3://{bucket}/archive");
    is_the_same(&proxy.endpoint, &["--stats=all", "-f", "json"], &url, &sample.wal);
    let failed = proxy.seen().iter().filter(|request| request.before < 3).count();
    assert!(failed > 9, "{failed} requests were troubled");
}

#[test]
fn a_store_that_is_slow_or_comes_up_late_is_waited_for() {
    let Some(store) = Store::start(Kind::S3) else { return };
    let sample = sample("timeline");
    let bucket = store.put(&sample.wal);
    let url = format!("s3://{bucket}/archive");
    let slow = |_: &Request| Act::Slow(Duration::from_millis(300));
    let port = free_port();
    let upstream = store.port;
    let late = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(2));
        Proxy::on(TcpListener::bind(("127.0.0.1", port)).expect("the port"), upstream, slow)
    });
    let endpoint = format!("http://127.0.0.1:{port}");
    is_the_same(&endpoint, &["--stats", "-f", "json"], &url, &sample.wal);
    assert!(!late.join().expect("a proxy").seen().is_empty());
}

/// The object that something happens to.
const TROUBLED: &str = "00000001000000000000000A";

/// What is found of that object, where `act` is done with requests for all of it.
#[track_caller]
fn found(port: u16, url: &str, act: impl Fn() -> Act + Send + Sync + 'static) -> String {
    let proxy = Proxy::before(port, move |request| {
        let is_look = request.range.as_deref() == Some("bytes=0-65535");
        if request.object() == Some(TROUBLED) && !is_look { act() } else { Act::Pass }
    });
    let ran = on(&proxy.endpoint, &["--stats", "-f", "json", url]).exits(4).json();
    let problems = ran["problems"].as_array().expect("problems");
    let named = problems.iter().find(|problem| problem["segment"] == TROUBLED);
    let found = named.unwrap_or_else(|| panic!("{problems:?}"))["found"].as_str();
    found.expect("text").to_owned()
}

#[test]
fn an_object_that_goes_or_changes_after_it_was_listed_is_a_problem_that_names_it() {
    let Some(store) = Store::start(Kind::S3) else { return };
    let folder = tempfile::tempdir().expect("a directory");
    an_hour(folder.path());
    let bucket = store.put(folder.path());
    let url = format!("s3://{bucket}/archive");
    let gone = found(store.port, &url, || {
        let body = "<Error><Code>NoSuchKey</Code><Message>It is gone.</Message></Error>";
        Act::Answer(404, body.to_owned())
    });
    assert!(gone.starts_with("gone since it was listed: NoSuchKey: It is gone."), "{gone}");
    let shorter = found(store.port, &url, || Act::Answer(416, String::new()));
    assert!(shorter.starts_with("changed since it was listed: HTTP 416"), "{shorter}");
    // Other bytes under the same name, before the first byte of it is asked for in earnest.
    let other = tempfile::tempdir().expect("a directory");
    let bytes = std::fs::read(folder.path().join(TROUBLED)).expect("the segment");
    let changed: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
    std::fs::write(other.path().join(TROUBLED), changed).expect("a file");
    let (store, once) = (Arc::new(store), Once::new());
    let putting = Arc::clone(&store);
    let changed = found(store.port, &url, move || {
        once.call_once(|| putting.put_into(&bucket, "archive", other.path()));
        Act::Pass
    });
    assert!(changed.starts_with("changed since it was listed: ETag "), "{changed}");
}

#[test]
fn what_cannot_be_had_at_all_is_one_line_with_the_stores_own_reason() {
    let Some(store) = Store::start(Kind::S3) else { return };
    let sample = sample("timeline");
    let bucket = store.put(&sample.wal);
    let url = format!("s3://{bucket}/archive");
    let told = |endpoint: &str, arguments: &[&str]| {
        let ran = on(endpoint, arguments).exits(3);
        assert_eq!((ran.stderr.lines().count(), ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
        ran.stderr.trim_end().to_owned()
    };
    let endpoint = store.endpoint();
    assert_eq!(
        told(&endpoint, &["s3://no-such-bucket/wal"]),
        "walstat: s3://no-such-bucket/wal: NoSuchBucket: The specified bucket does not exist (HTTP 404 Not \
         Found)"
    );
    let nothing = format!("s3://{bucket}/nothing");
    assert_eq!(
        told(&endpoint, &[&nothing]),
        format!("walstat: {nothing}: no object of this name or prefix")
    );
    // A store that repeats what it was asked, secrets and all.
    let denying = Proxy::before(store.port, |_| {
        let body = format!(
            "<Error><Code>AccessDenied</Code><Message>Not for {SECRET}.</Message>\
             <CanonicalRequest>x-amz-security-token:{TOKEN}</CanonicalRequest></Error>"
        );
        Act::Answer(403, body)
    });
    for arguments in [&[][..], &["-v"], &["check"], &["events"]] {
        assert_eq!(
            told(&denying.endpoint, &[arguments, &[&url]].concat()),
            format!("walstat: {url}: AccessDenied: Not for ***. (HTTP 403 Forbidden)")
        );
    }
    let elsewhere = Proxy::before(store.port, |_| {
        let body =
            "<Error><Code>PermanentRedirect</Code><Message>Ask the other region.</Message></Error>";
        Act::Answer(301, body.to_owned())
    });
    let said = told(&elsewhere.endpoint, &[&url]);
    assert!(said.contains("region"), "{said}");
    let begun = Instant::now();
    let said = told(&format!("http://127.0.0.1:{}", free_port()), &[&url]);
    assert!(said.to_ascii_lowercase().contains("connect"), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    let said = on(&endpoint, &["--endpoint", "http://user:NeverPrintThisPassword@host", &url]);
    assert!(said.code == Some(3) && !said.stderr.contains("NeverPrint"), "{}", said.stderr);
}
