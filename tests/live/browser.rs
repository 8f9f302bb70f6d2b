//! A real browser, headless, and what it sees of a page.

use crate::support::missing::skip;
use std::path::Path;
use std::process::Command;

/// What a browser made of a page.
pub struct Seen {
    /// The document after loading.
    pub document: String,
    /// What it complained of.
    pub complaints: Vec<String>,
    /// How wide the page is where there are 390 pixels.
    pub width: u32,
    /// Marks in charts that are drawn.
    pub marks: u32,
    /// Tiles whose text is wider than they are.
    pub narrow_tiles: u32,
}

/// Has a browser draw a page; `None` where it is not installed.
pub fn seen(page: &str) -> Option<Seen> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("page.html");
    std::fs::write(&path, page).expect("written");
    let (document, said) = browsed(&path, 1000)?;
    let complaints = said.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned);
    std::fs::write(&path, measuring(page)).expect("written");
    let (measured, _) = browsed(&path, 800)?;
    let told = measured.split("id=\"w\">").nth(1).and_then(|rest| rest.split('<').next());
    let words: Vec<&str> = told.unwrap_or_default().split(' ').collect();
    let ["width", width, "marks", marks, "narrow", narrow] = words[..] else { panic!("{words:?}") };
    let number = |word: &str| word.parse().expect("a number");
    let (width, marks, narrow_tiles) = (number(width), number(marks), number(narrow));
    Some(Seen { document, complaints: complaints.collect(), width, marks, narrow_tiles })
}

/// What Chromium makes of a page: its document after loading, and what it complains of. `None` where it
/// is not installed.
fn browsed(page: &Path, width: u32) -> Option<(String, String)> {
    let directory = tempfile::tempdir().expect("a directory");
    let profile = format!("--user-data-dir={}", directory.path().display());
    let window = format!("--window-size={width},900");
    let address = format!("file://{}", page.display());
    let options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
        "--v=0",
        "--virtual-time-budget=5000",
        "--dump-dom",
    ];
    let run = Command::new("chromium").args(options).args([profile, window, address]).output();
    let output = match run {
        Ok(output) => output,
        Err(error) => {
            skip("chromium, which draws pages", &error.to_string());
            return None;
        }
    };
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    Some((text(&output.stdout), text(&output.stderr)))
}

/// A page that measures another one inside of itself, as wide as a telephone.
fn measuring(page: &str) -> String {
    let inside = page.replace('&', "&amp;").replace('"', "&quot;");
    format!(
        "<!DOCTYPE html><html><body><iframe id=\"f\" style=\"width:390px;height:800px;border:0\" \
         srcdoc=\"{inside}\"></iframe><p id=\"w\"></p><script>const f = document.getElementById('f');\
         f.onload = () => {{ const d = f.contentDocument; const r = [...d.querySelectorAll('figure \
         svg *')].filter(e => e.getBoundingClientRect().width > 0).length; \
         const n = [...d.querySelectorAll('.card')].filter(e => e.scrollWidth > e.clientWidth).length; \
         document.getElementById('w').textContent = 'width ' + d.documentElement.scrollWidth + ' marks ' \
         + r + ' narrow ' + n; }};</script></body></html>"
    )
}
