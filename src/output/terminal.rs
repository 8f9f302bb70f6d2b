//! A terminal that shows one page which changes: other lines come back when the program ends, however it
//! ends. Only lines that have changed are written, for slow connections.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::stdio::{stdin, stdout};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How the terminal was before; `None`: it is so now.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Another page, without a cursor; lines are not broken.
const BEGIN: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
const END: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A letter or another character.
    Character(char),
    /// Up.
    Up,
    /// Down.
    Down,
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// What ends a program: Ctrl-C.
    Interrupt,
}

/// The terminal while it shows the page.
#[derive(Debug)]
pub struct Terminal {
    shown: Vec<String>,
    size: (usize, usize),
}

/// Whether there is a terminal that can do this.
pub fn is_there() -> bool {
    let is_dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb" || term.is_empty());
    io::stdin().is_terminal() && io::stdout().is_terminal() && !is_dumb
}

/// Whether everything is to be drawn anew.
static IS_EMPTY: AtomicBool = AtomicBool::new(false);

fn before() -> MutexGuard<'static, Option<Termios>> {
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the terminal what it was before, if it shows the page.
pub fn leave() {
    if let Some(before) = &*before() {
        let mut out = io::stdout();
        let _ = out.write_all(END.as_bytes()).and_then(|()| out.flush());
        let _ = tcsetattr(stdin(), OptionalActions::Now, before);
    }
}

/// Shows the page again, if it was left.
pub fn enter_again() {
    if let Some(before) = &*before() {
        let _ = enter(before);
        IS_EMPTY.store(true, Ordering::Relaxed);
    }
}

fn enter(before: &Termios) -> io::Result<()> {
    let mut raw = before.clone();
    raw.make_raw();
    tcsetattr(stdin(), OptionalActions::Now, &raw)?;
    let mut out = io::stdout();
    out.write_all(BEGIN.as_bytes())?;
    out.flush()
}

/// Makes the terminal what it was before for good.
fn restore() {
    leave();
    before().take();
}

impl Terminal {
    /// Begins the page.
    ///
    /// # Errors
    ///
    /// When the terminal cannot be set so.
    pub fn begin() -> io::Result<Terminal> {
        let found = tcgetattr(stdin())?;
        *before() = Some(found.clone());
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            usual(panic);
        }));
        enter(&found)?;
        Ok(Terminal { shown: Vec::new(), size: (0, 0) })
    }

    /// Columns and rows.
    pub fn size(&self) -> (usize, usize) {
        let size = tcgetwinsize(stdout()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
        size.map_or((80, 24), |size| (usize::from(size.ws_col), usize::from(size.ws_row)))
    }

    /// Shows these lines.
    ///
    /// # Errors
    ///
    /// When the terminal is gone.
    pub fn show(&mut self, lines: Vec<String>) -> io::Result<()> {
        let mut text = String::new();
        let size = self.size();
        if size != self.size || IS_EMPTY.swap(false, Ordering::Relaxed) {
            text.push_str("\x1b[2J");
            (self.size, self.shown) = (size, Vec::new());
        }
        for row in 0..lines.len().max(self.shown.len()) {
            let (before, now) = (self.shown.get(row), lines.get(row));
            if before != now {
                let now = now.map(String::as_str).unwrap_or_default();
                text.push_str(&format!("\x1b[{};1H\x1b[2K{now}", row + 1));
            }
        }
        self.shown = lines;
        let mut out = io::stdout();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Waits so long for keys; those that were pressed.
    pub fn keys(&self, pause: Duration) -> Vec<Key> {
        let nanoseconds = pause.subsec_nanos().into();
        let pause = Timespec { tv_sec: pause.as_secs() as i64, tv_nsec: nanoseconds };
        let input = stdin();
        let mut polled = [PollFd::new(&input, PollFlags::IN)];
        match poll(&mut polled, Some(&pause)) {
            Ok(0) | Err(_) => Vec::new(),
            Ok(_) => {
                let mut bytes = [0; 64];
                match rustix::io::read(input, &mut bytes) {
                    // The terminal is gone.
                    Ok(0) | Err(_) => vec![Key::Interrupt],
                    Ok(count) => keys(bytes.get(..count).unwrap_or_default()),
                }
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

/// What keys bytes are.
fn keys(bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        keys.push(match (first, after) {
            (0x1b, [b'[' | b'O', letter, later @ ..]) => {
                rest = later;
                match letter {
                    b'A' => Key::Up,
                    b'B' => Key::Down,
                    _ => continue,
                }
            }
            (0x1b, _) => Key::Escape,
            (b'\r' | b'\n', _) => Key::Enter,
            (3, _) => Key::Interrupt,
            (byte, _) => Key::Character(char::from(*byte)),
        });
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_are_three_bytes() {
        let found = keys(b"q\x1b[A\x1bOB\r\x1b");
        let want = [Key::Character('q'), Key::Up, Key::Down, Key::Enter, Key::Escape];
        assert_eq!(found, want);
        assert_eq!(keys(&[3]), [Key::Interrupt]);
    }
}
