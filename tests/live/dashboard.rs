//! The dashboards of docs/grafana: a real Prometheus that scrapes what walstat wrote, or serves, answers
//! every panel.

use crate::support::fixtures::sample;
use crate::support::missing::skip;
use crate::support::{command, walstat};
use crate::wait::wait;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Ends Prometheus with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Serves a text to whoever asks.
fn serve(text: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let length = text.len();
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close";
            let _ = write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{text}");
        }
    });
    port
}

/// A port that is free now.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// What Prometheus answers to a query; `None` as long as it does not.
fn ask(port: u16, query: &str) -> Option<Value> {
    let escaped: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET /api/v1/query?query={escaped} HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let body = answer.split_once("\r\n\r\n")?.1;
    serde_json::from_str(body).ok()
}

fn results(port: u16, query: &str) -> usize {
    ask(port, query).map_or(0, |answer| answer["data"]["result"].as_array().map_or(0, Vec::len))
}

fn prometheus(config: &Path, data: &Path, port: u16) -> Option<Running> {
    let child = Command::new("prometheus")
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", data.display()))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match child {
        Ok(child) => Some(Running(child)),
        Err(error) => {
            skip("prometheus, which the dashboard asks", &error.to_string());
            None
        }
    }
}

/// promtool reads what is written, and has nothing to say against it.
#[test]
fn promtool_takes_every_metric() {
    let wal = sample("pg15-mixed").wal;
    let wal = wal.to_str().expect("UTF-8");
    for words in [
        &["-f", "openmetrics", wal][..],
        &["--stats=all", "-f", "openmetrics", wal],
        &["check", "--max-fpi-ratio=0.1", "-f", "openmetrics", wal],
        &["whatif", "-f", "openmetrics", wal],
    ] {
        let text = walstat(words).stdout;
        assert!(text.ends_with("# EOF\n"), "{words:?}");
        let spawned = Command::new("promtool")
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = match spawned {
            Ok(child) => child,
            Err(error) => return skip("promtool, which checks metrics", &error.to_string()),
        };
        child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("written");
        let output = child.wait_with_output().expect("it ends");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(output.status.success() && said.is_empty(), "{words:?}: {said}");
    }
}

#[test]
fn every_panel_of_the_dashboard_has_data() {
    let wal = sample("pg15-mixed").wal;
    let words = ["-f", "openmetrics", wal.to_str().expect("UTF-8")];
    let target = serve(walstat(&words).exits(0).stdout);
    every_panel_has_data("docs/grafana/walstat.json", target);
}

/// Prometheus asks walstat itself, and takes rates.
#[test]
fn every_panel_of_the_live_dashboard_has_data() {
    let wal = sample("pg15-mixed").wal;
    let target = free_port();
    let address = format!("127.0.0.1:{target}");
    let words = ["follow", wal.to_str().expect("UTF-8"), "--listen", &address, "-q"];
    let child = command(&words).stdout(Stdio::null()).spawn().expect("it starts");
    let _following = Running(child);
    every_panel_has_data("docs/grafana/walstat-live.json", target);
}

/// Has a real Prometheus scrape `target`, and asks it all that a dashboard asks.
fn every_panel_has_data(dashboard: &str, target: u16) {
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("prometheus.yml");
    let text = format!(
        "scrape_configs:\n- job_name: walstat\n  scrape_interval: 1s\n  static_configs:\n  - targets: \
         ['127.0.0.1:{target}']\n"
    );
    std::fs::write(&config, text).expect("written");
    let port = free_port();
    let Some(_running) = prometheus(&config, &directory.path().join("data"), port) else { return };
    let scraped = "count_over_time(walstat_up[1m]) > 1";
    wait("prometheus has scraped", || results(port, scraped) > 0);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(dashboard);
    let text = std::fs::read_to_string(path).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    assert!(panels.len() >= 8, "{}", panels.len());
    for panel in panels {
        for target in panel["targets"].as_array().expect("targets") {
            let query = target["expr"].as_str().expect("a query").replace("$instance", ".*");
            let query = query.replace("$__rate_interval", "1m");
            // There are none without a data directory; `follow_metrics` has all that are asked for.
            if query.starts_with("walstat_pg_wal_") {
                continue;
            }
            assert!(
                results(port, &query) > 0,
                "{}: {query}: {:?}",
                panel["title"],
                ask(port, &query)
            );
        }
    }
}
