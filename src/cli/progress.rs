//! Progress on standard error: bytes, rate, time left. For work of more than a second, and for
//! people only unless asked for.

use super::values::When;
use crate::render::number::human_bytes;
use crate::scan::pages::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle, TermLike};
use std::io::{self, IsTerminal, Write as _};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Work that is done sooner shows no progress.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two drawings.
const TICK: Duration = Duration::from_millis(200);
/// Columns, where nothing tells how many there are.
const COLUMNS: u16 = 80;

/// Does `work`, showing how much of `total` bytes `read` says are done. `total` is only asked if
/// something is shown; `None` is not known.
pub fn shown<T>(
    when: When,
    total: impl FnOnce() -> Option<u64> + Send,
    read: &Progress,
    work: impl FnOnce() -> T,
) -> T {
    if !wanted(when) {
        return work();
    }
    std::thread::scope(|scope| {
        let (done, wait) = channel::<()>();
        scope.spawn(move || watch(when, total, read, &wait));
        let result = work();
        drop(done);
        result
    })
}

/// A terminal that a CI server lends has nobody in front of it.
fn wanted(when: When) -> bool {
    match when {
        When::Auto => io::stderr().is_terminal() && std::env::var_os("CI").is_none(),
        When::Always => true,
        When::Never => false,
    }
}

/// Draws until the other end of `wait` is gone.
fn watch(when: When, total: impl FnOnce() -> Option<u64>, read: &Progress, wait: &Receiver<()>) {
    let goes_on = |time| wait.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
    if when == When::Auto && !goes_on(PATIENCE) {
        return;
    }
    let total = total();
    let bar = bar(total);
    loop {
        let going_on = goes_on(TICK);
        bar.set_position(read.load(Ordering::Relaxed).min(total.unwrap_or(u64::MAX)));
        if !going_on {
            break;
        }
    }
    bar.finish_and_clear();
}

fn bar(total: Option<u64>) -> ProgressBar {
    let target = match io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::term_like(Box::new(Plain)),
    };
    let bar = ProgressBar::with_draw_target(total, target);
    let template = match total {
        Some(_) => "{read} of {all}, {rate}, {eta} left [{bar:20}]",
        None => "{read}, {rate}",
    };
    bar.set_style(style(template).unwrap_or_else(ProgressStyle::default_bar));
    bar
}

/// The sizes in the units of everything else that walstat says.
fn style(template: &str) -> Option<ProgressStyle> {
    let style = ProgressStyle::with_template(template).ok()?;
    let style = style
        .with_key("read", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let _ = out.write_str(&human_bytes(state.pos()));
        })
        .with_key("all", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let _ = out.write_str(&human_bytes(state.len().unwrap_or_default()));
        })
        .with_key("rate", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let _ = write!(out, "{}/s", human_bytes(state.per_sec() as u64));
        });
    Some(style.progress_chars("##-"))
}

/// Standard error that is no terminal: a line a drawing, nothing else to be done.
#[derive(Debug)]
struct Plain;

impl TermLike for Plain {
    fn width(&self) -> u16 {
        COLUMNS
    }
    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn write_line(&self, text: &str) -> io::Result<()> {
        writeln!(io::stderr(), "{text}")
    }
    fn write_str(&self, text: &str) -> io::Result<()> {
        // The bar, then what pads it to the width.
        match text.trim() {
            "" => Ok(()),
            text => writeln!(io::stderr(), "{text}"),
        }
    }
    fn clear_line(&self) -> io::Result<()> {
        Ok(())
    }
    fn flush(&self) -> io::Result<()> {
        io::stderr().flush()
    }
}
