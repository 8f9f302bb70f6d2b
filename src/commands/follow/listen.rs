//! `--listen`: an HTTP server that answers at `/metrics` with what was told last.

use crate::failure::Failure;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tiny_http::{Header, Method, Request, Response, Server};

/// What Prometheus calls its text format.
const CONTENT_TYPE: &str = "Content-Type: text/plain; version=0.0.4; charset=utf-8";

/// What is served at the moment.
type Text = Arc<Mutex<Arc<Vec<u8>>>>;

/// A server that answers in a thread of its own.
pub struct Listener {
    text: Text,
}

impl Listener {
    /// Begins to listen.
    pub fn begin(address: SocketAddr) -> Result<Listener, Failure> {
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| Failure::Output {
            path: format!("--listen {address}"),
            source: match error.downcast::<io::Error>() {
                Ok(error) => *error,
                Err(error) => io::Error::other(error.to_string()),
            },
        };
        let server = Server::http(address).map_err(failed)?;
        let text = Text::default();
        let served = Arc::clone(&text);
        std::thread::spawn(move || {
            for request in server.incoming_requests() {
                let text = Arc::clone(&served.lock().unwrap_or_else(PoisonError::into_inner));
                // Whoever asked and went away is not waited for.
                let _ = answer(request, &text);
            }
        });
        Ok(Listener { text })
    }

    /// Serves this from now on.
    pub fn serve(&self, text: Vec<u8>) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(text);
    }
}

fn answer(request: Request, text: &[u8]) -> io::Result<()> {
    let is_read = matches!(request.method(), Method::Get | Method::Head);
    let path = request.url().split('?').next().unwrap_or_default().to_owned();
    let (status, body) = match path.as_str() {
        _ if !is_read => (405, b"walstat serves /metrics to GET\n".to_vec()),
        "/metrics" if text.is_empty() => {
            (503, b"walstat is reading the WAL that is there\n".to_vec())
        }
        "/metrics" => (200, text.to_vec()),
        _ => (404, b"walstat serves /metrics\n".to_vec()),
    };
    let response = Response::from_data(body).with_status_code(status);
    match CONTENT_TYPE.parse::<Header>() {
        Ok(header) => request.respond(response.with_header(header)),
        Err(()) => request.respond(response),
    }
}
