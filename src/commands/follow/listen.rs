//! `--listen`: an HTTP server that answers at `/metrics` with what was told last. It reads nothing of a
//! request but its head, and closes each connection once it has answered: whoever sends slowly, or never,
//! keeps nobody else waiting.

use crate::failure::Failure;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What Prometheus calls its text format.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// No head of a request is longer.
const HEAD_BYTES: usize = 16 << 10;
/// So long a request may take to come, and its answer to go.
const PATIENCE: Duration = Duration::from_secs(5);
/// What comes behind the head is thrown away for so long, since an answer is lost where it is not.
const LINGER: Duration = Duration::from_millis(500);
/// So many are answered at a time; who comes then is turned away.
const AT_ONCE: usize = 64;

/// What is served at the moment.
type Text = Arc<Mutex<Arc<Vec<u8>>>>;

/// A server that answers in threads of its own.
pub struct Listener {
    text: Text,
    #[cfg(test)]
    address: SocketAddr,
}

impl Listener {
    /// Begins to listen.
    pub fn begin(address: SocketAddr) -> Result<Listener, Failure> {
        let failed = |source| Failure::Output { path: format!("--listen {address}"), source };
        let server = TcpListener::bind(address).map_err(failed)?;
        let text = Text::default();
        #[cfg(test)]
        let address = server.local_addr().map_err(failed)?;
        let served = Arc::clone(&text);
        let accepting = std::thread::Builder::new();
        accepting.spawn(move || accept(&server, &served)).map_err(failed)?;
        Ok(Listener {
            text,
            #[cfg(test)]
            address,
        })
    }

    /// Serves this from now on.
    pub fn serve(&self, text: Vec<u8>) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(text);
    }
}

fn accept(server: &TcpListener, served: &Text) {
    let active = Arc::new(AtomicUsize::new(0));
    for stream in server.incoming() {
        let Ok(stream) = stream else {
            // Too many files are open: some will be closed.
            std::thread::sleep(LINGER);
            continue;
        };
        if active.fetch_add(1, Ordering::Relaxed) >= AT_ONCE {
            active.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let text = Arc::clone(&served.lock().unwrap_or_else(PoisonError::into_inner));
        let count = Arc::clone(&active);
        let answered = std::thread::Builder::new().spawn(move || {
            // Whoever asked and went away is not waited for.
            let _ = answer(stream, &text);
            count.fetch_sub(1, Ordering::Relaxed);
        });
        if answered.is_err() {
            active.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn answer(mut stream: TcpStream, text: &[u8]) -> io::Result<()> {
    let head = head(&mut stream)?;
    let line = head.lines().next().unwrap_or_default();
    let mut words = line.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split('?').next().unwrap_or_default();
    let (status, body): (&str, &[u8]) = match (method, path) {
        ("GET" | "HEAD", "/metrics") if text.is_empty() => {
            ("503 Service Unavailable", &b"walstat is reading the WAL that is there\n"[..])
        }
        ("GET" | "HEAD", "/metrics") => ("200 OK", text),
        ("GET" | "HEAD", _) => ("404 Not Found", &b"walstat serves /metrics\n"[..]),
        _ => ("405 Method Not Allowed", &b"walstat serves /metrics to GET\n"[..]),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    let until = Instant::now() + PATIENCE;
    write_until(&mut stream, head.as_bytes(), until)?;
    if method != "HEAD" {
        write_until(&mut stream, body, until)?;
    }
    stream.shutdown(Shutdown::Write)?;
    let until = Instant::now() + LINGER;
    let mut rest = [0; 4096];
    while read_until(&mut stream, &mut rest, until)? > 0 {}
    Ok(())
}

/// The head of a request, as far as it has come.
fn head(stream: &mut TcpStream) -> io::Result<String> {
    let until = Instant::now() + PATIENCE;
    let (mut head, mut part) = (Vec::new(), [0; 2048]);
    let is_whole = |head: &[u8]| head.windows(4).any(|end| end == b"\r\n\r\n");
    while !is_whole(&head) && head.len() < HEAD_BYTES {
        let count = read_until(stream, &mut part, until)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(part.get(..count).unwrap_or_default());
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// Writes all: who takes a byte now and then is not waited for longer than who takes none.
fn write_until(stream: &mut TcpStream, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(until)?))?;
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn read_until(stream: &mut TcpStream, bytes: &mut [u8], until: Instant) -> io::Result<usize> {
    stream.set_read_timeout(Some(left(until)?))?;
    stream.read(bytes)
}

/// How long there is still time.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(address: SocketAddr, request: &str) -> (TcpStream, String) {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        let clone = stream.try_clone().expect("the same");
        clone.take(1 << 20).read_to_string(&mut answer).expect("an answer");
        (stream, answer)
    }

    #[test]
    fn who_announces_a_body_and_sends_none_keeps_nobody_waiting() {
        let listener = Listener::begin(([127, 0, 0, 1], 0).into()).expect("a port");
        let get = || ask(listener.address, "GET /metrics?a=b HTTP/1.1\r\nHost: x\r\n\r\n").1;
        assert!(get().starts_with("HTTP/1.1 503 "), "{}", get());
        listener.serve(b"walstat_up 1\n".to_vec());
        let mut silent = TcpStream::connect(listener.address).expect("it listens");
        silent.write_all(b"GET /met").expect("sent");
        // More than there is memory for.
        let post = "POST /metrics HTTP/1.1\r\nContent-Length: 1000000000000000000\r\n\r\n";
        let (open, refused) = ask(listener.address, post);
        assert!(refused.starts_with("HTTP/1.1 405 "), "{refused}");
        let told = get();
        assert!(told.starts_with("HTTP/1.1 200 OK\r\n"), "{told}");
        assert!(
            told.contains("\r\nContent-Length: 13\r\n") && told.ends_with("\r\n\r\nwalstat_up 1\n")
        );
        let (_, head) = ask(listener.address, "HEAD /metrics HTTP/1.0\r\n\r\n");
        assert!(head.ends_with("\r\n\r\n") && head.contains("Content-Length: 13"), "{head}");
        let (_, other) = ask(listener.address, "GET / HTTP/1.1\r\n\r\n");
        assert!(other.starts_with("HTTP/1.1 404 "), "{other}");
        drop((silent, open));
    }

    /// Every write gets on a little.
    #[test]
    fn who_reads_slowly_is_given_up() {
        let listener = Listener::begin(([127, 0, 0, 1], 0).into()).expect("a port");
        let text = vec![b' '; 64 << 20];
        listener.serve(text.clone());
        let mut stream = TcpStream::connect(listener.address).expect("it listens");
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("sent");
        let (mut part, mut received) = (vec![0; 256 << 10], 0);
        while let Ok(count) = stream.read(&mut part)
            && count > 0
        {
            received += count;
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(received < text.len(), "{received}");
    }
}
