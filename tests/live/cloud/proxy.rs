//! What stands between walstat and a store: it counts what is asked for, and misbehaves as it is told.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request that came by.
#[derive(Debug, Clone)]
pub struct Request {
    /// `GET`, `HEAD`.
    pub method: String,
    /// The path, with bucket and key; of a listing with the query behind it.
    pub target: String,
    /// The range asked for.
    pub range: Option<String>,
    /// How often the same was asked for before.
    pub before: usize,
    /// So many bytes of a body were sent.
    pub bytes: u64,
}

impl Request {
    /// The object's name; `None`: it is another request than one for bytes.
    pub fn object(&self) -> Option<&str> {
        let is_object = self.method == "GET" && !self.target.contains('?');
        self.target.rsplit('/').next().filter(|_| is_object)
    }

    pub fn is_listing(&self) -> bool {
        self.target.contains("list-type")
    }
}

/// What is done with a request.
pub enum Act {
    /// It is passed on.
    Pass,
    /// So many bytes of the answer's body are passed on, then the connection ends.
    Short(usize),
    /// It is answered with this status and body.
    Answer(u16, String),
    /// The connection ends without an answer.
    Reset,
    /// It is passed on after a while.
    Slow(Duration),
}

/// Decides what is done with a request.
pub type Plan = dyn Fn(&Request) -> Act + Send + Sync;

/// A proxy on loopback.
pub struct Proxy {
    pub endpoint: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Proxy {
    /// Before the store that listens on `port`.
    pub fn before(port: u16, plan: impl Fn(&Request) -> Act + Send + Sync + 'static) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        Proxy::on(listener, port, plan)
    }

    /// The same on a listener that is there.
    pub fn on(
        listener: TcpListener,
        port: u16,
        plan: impl Fn(&Request) -> Act + Send + Sync + 'static,
    ) -> Proxy {
        let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (all, plan): (_, Arc<Plan>) = (Arc::clone(&seen), Arc::new(plan));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (all, plan) = (Arc::clone(&all), Arc::clone(&plan));
                // One that the client gives up is no failure of the test.
                std::thread::spawn(move || _ = serve(client, port, &all, &*plan));
            }
        });
        Proxy { endpoint, seen }
    }

    /// What came by so far.
    pub fn seen(&self) -> Vec<Request> {
        self.seen.lock().expect("no panic").clone()
    }
}

/// Serves one request; then the connection ends.
fn serve(
    mut client: TcpStream,
    port: u16,
    all: &Mutex<Vec<Request>>,
    plan: &Plan,
) -> std::io::Result<()> {
    let head = head(&mut client)?;
    let text = String::from_utf8_lossy(&head).into_owned();
    let mut words = text.split_whitespace().map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let header = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, v)| v.trim().to_owned())
    };
    let mut request = Request { method, target, range: header("range"), before: 0, bytes: 0 };
    let index = {
        let mut all = all.lock().expect("no panic");
        let same = |other: &&Request| {
            (&other.method, &other.target, &other.range)
                == (&request.method, &request.target, &request.range)
        };
        request.before = all.iter().filter(same).count();
        all.push(request.clone());
        all.len() - 1
    };
    let most = match plan(&request) {
        Act::Pass => usize::MAX,
        Act::Short(bytes) => bytes,
        Act::Slow(pause) => {
            std::thread::sleep(pause);
            usize::MAX
        }
        Act::Reset => return client.shutdown(Shutdown::Both),
        Act::Answer(status, body) => {
            let length = body.len();
            let head = format!("HTTP/1.1 {status} No\r\nContent-Length: {length}\r\n");
            let body = if request.method == "HEAD" { String::new() } else { body };
            return client.write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes());
        }
    };
    let sent = pass(&text, port, &mut client, most)?;
    all.lock().expect("no panic")[index].bytes = sent;
    client.shutdown(Shutdown::Both)
}

/// The head of a request or an answer, with the empty line after it.
fn head(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte)? == 1 {
        head.extend(byte);
    }
    Ok(head)
}

/// Passes a request on, and its answer with up to `most` bytes of its body back; says how many those were.
fn pass(request: &str, port: u16, client: &mut TcpStream, most: usize) -> std::io::Result<u64> {
    let mut store = TcpStream::connect(("127.0.0.1", port))?;
    let closed = |text: &str| {
        let lines = text.trim_end().lines();
        let kept = lines.filter(|line| !line.to_ascii_lowercase().starts_with("connection:"));
        kept.map(|line| format!("{line}\r\n")).collect::<String>() + "Connection: close\r\n\r\n"
    };
    store.write_all(closed(request).as_bytes())?;
    let answer = head(&mut store)?;
    client.write_all(closed(&String::from_utf8_lossy(&answer)).as_bytes())?;
    std::io::copy(&mut store.take(most as u64), client)
}
