//! A store that speaks as much of S3's protocol as walstat does, and misbehaves as it is told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// What is never printed.
pub const SECRET: &str = "NeverPrintThis";

/// A request for an object's bytes; or for a token, of which the machine's credentials are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Get {
    /// The object's name, without what lies before it.
    pub name: String,
    /// The part that is asked for; `None`: all of it.
    pub range: Option<Range<usize>>,
}

/// What is done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// It is answered as it should be.
    Answer,
    /// All of the object comes, whatever part is asked for.
    IgnoreRange,
    /// The answer says that it is another part.
    WrongRange,
    /// Nobody may see it.
    Deny,
    /// The same, said so that what the store says is cut in the middle of the secret that it repeats.
    Repeat,
    /// Not just now.
    Busy,
    /// All of the object comes, as far as this byte; then the connection ends.
    Cut(usize),
}

type Plan = dyn Fn(&Get) -> Act + Send + Sync;
type Objects = BTreeMap<String, Vec<u8>>;

/// A store on loopback, with a directory below the prefix `archive` of the bucket `wal`.
pub struct Store {
    pub endpoint: String,
    seen: Arc<Mutex<Vec<Get>>>,
}

impl Store {
    pub fn of(directory: &Path, plan: impl Fn(&Get) -> Act + Send + Sync + 'static) -> Store {
        let mut objects = Objects::new();
        add(&mut objects, "archive", directory);
        Store::serving(move |client, all| serve(client, &objects, all, &plan))
    }

    /// One that gives this answer to every request.
    pub fn saying(answer: &str) -> Store {
        let answer = answer.to_owned();
        Store::serving(move |mut client, _| {
            head(&mut client)?;
            client.write_all(answer.as_bytes())
        })
    }

    fn serving(
        serve: impl Fn(TcpStream, &Mutex<Vec<Get>>) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Store {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (all, serve) = (Arc::clone(&seen), Arc::new(serve));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (all, serve) = (Arc::clone(&all), Arc::clone(&serve));
                // One that the client gives up is no failure of the test.
                std::thread::spawn(move || _ = serve(client, &all));
            }
        });
        Store { endpoint, seen }
    }

    /// What was asked for so far.
    pub fn seen(&self) -> Vec<Get> {
        self.seen.lock().expect("no panic").clone()
    }
}

fn add(objects: &mut Objects, prefix: &str, directory: &Path) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let key = format!("{prefix}/{}", path.file_name().expect("a name").to_string_lossy());
        match path.is_dir() {
            true => add(objects, &key, &path),
            false => _ = objects.insert(key, fs::read(&path).expect("a file")),
        }
    }
}

/// The lines of a request, before its body.
fn head(client: &mut TcpStream) -> std::io::Result<Vec<String>> {
    let mut head = Vec::new();
    for line in BufReader::new(client.take(1 << 16)).lines() {
        match line? {
            line if line.is_empty() => break,
            line => head.push(line),
        }
    }
    Ok(head)
}

/// Serves one request; then the connection ends.
fn serve(
    mut client: TcpStream,
    objects: &Objects,
    all: &Mutex<Vec<Get>>,
    plan: &Plan,
) -> std::io::Result<()> {
    let head = head(&mut client)?;
    let mut words = head.first().map_or("", |line| line.as_str()).split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    // Google's client encodes the slashes and dots of a key.
    let path = path.replace("%2F", "/").replace("%2E", ".");
    let key = path.trim_start_matches("/wal").trim_start_matches('/');
    if path.starts_with("/latest/") {
        let get = Get { name: path.rsplit('/').next().unwrap_or_default().to_owned(), range: None };
        return credentials(&mut client, &get.name, plan(&get));
    }
    if query.contains("list-type") {
        return answer(&mut client, "200 OK", "", listing(objects, query).as_bytes(), true);
    }
    let Some(bytes) = objects.get(key) else {
        let body = b"<Error><Code>NoSuchKey</Code><Message>There is none.</Message></Error>";
        return answer(&mut client, "404 Not Found", "", body, method == "GET");
    };
    let range = head.iter().find_map(|line| {
        let (name, value) = line.split_once(": bytes=")?;
        let (first, last) = value.split_once('-').filter(|_| name.eq_ignore_ascii_case("range"))?;
        Some(first.parse().ok()?..(last.parse::<usize>().ok()? + 1).min(bytes.len()))
    });
    let get = Get { name: key.rsplit('/').next().unwrap_or_default().to_owned(), range };
    let act = if method == "GET" { plan(&get) } else { Act::Answer };
    if method == "GET" {
        all.lock().expect("no panic").push(get.clone());
    }
    let marks = "ETag: \"one\"\r\nLast-Modified: Wed, 01 Jan 2025 00:00:00 GMT\r\n";
    match (get.range, act) {
        (_, Act::Deny) => {
            let body = b"<Error><Code>AccessDenied</Code><Message>Not this one.</Message></Error>";
            answer(&mut client, "403 Forbidden", "", body, true)
        }
        (_, Act::Repeat) => {
            let before = "x".repeat(293);
            let body = format!("<Error><Message>{before}{SECRET}</Message></Error>");
            answer(&mut client, "403 Forbidden", "", body.as_bytes(), true)
        }
        (Some(range), Act::Answer | Act::WrongRange) => {
            let off = usize::from(act == Act::WrongRange);
            let (first, last, of) = (range.start + off, range.end - 1 + off, bytes.len() + off);
            let marks = format!("{marks}Content-Range: bytes {first}-{last}/{of}\r\n");
            answer(&mut client, "206 Partial Content", &marks, &bytes[range], true)
        }
        (_, Act::Cut(at)) => {
            let length = bytes.len();
            let head = format!("HTTP/1.1 200 OK\r\n{marks}Content-Length: {length}\r\n\r\n");
            client.write_all(head.as_bytes())?;
            client.write_all(&bytes[..at.min(length)])
        }
        _ => answer(&mut client, "200 OK", marks, bytes, method == "GET"),
    }
}

/// What the machine that walstat runs on has to give: credentials that are to be renewed for every request.
fn credentials(client: &mut TcpStream, name: &str, act: Act) -> std::io::Result<()> {
    let body = match name {
        _ if act == Act::Busy => return answer(client, "503 Service Unavailable", "", b"", true),
        "token" => "token",
        "" => "role",
        _ => {
            r#"{"AccessKeyId": "key", "SecretAccessKey": "secret", "Token": "token",
                "Expiration": "2025-01-01T00:00:00Z"}"#
        }
    };
    answer(client, "200 OK", "", body.as_bytes(), true)
}

fn answer(
    client: &mut TcpStream,
    status: &str,
    marks: &str,
    body: &[u8],
    with_body: bool,
) -> std::io::Result<()> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{marks}Content-Length: {length}\r\n");
    client.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes())?;
    client.write_all(if with_body { body } else { &[] })
}

/// What lies directly below a prefix.
fn listing(objects: &Objects, query: &str) -> String {
    let prefix = query.split('&').find_map(|pair| pair.strip_prefix("prefix="));
    let prefix = prefix.unwrap_or_default().replace("%2F", "/");
    let mut text = "<ListBucketResult><Name>wal</Name><IsTruncated>false</IsTruncated>".to_owned();
    let mut below = BTreeSet::new();
    for (key, bytes) in objects {
        let Some(rest) = key.strip_prefix(&prefix) else { continue };
        if let Some((folder, _)) = rest.split_once('/') {
            below.insert(folder);
            continue;
        }
        let size = bytes.len();
        let marks = "<LastModified>2025-01-01T00:00:00.000Z</LastModified><ETag>\"one\"</ETag>";
        write!(text, "<Contents><Key>{key}</Key>{marks}<Size>{size}</Size></Contents>")
            .expect("a string");
    }
    for folder in below {
        write!(text, "<CommonPrefixes><Prefix>{prefix}{folder}/</Prefix></CommonPrefixes>")
            .expect("a string");
    }
    text + "</ListBucketResult>"
}
