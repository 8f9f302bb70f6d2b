//! Progress on standard error: bytes, rate, time left. For work of more than a second, and for
//! people only unless asked for.

use crate::args::values::When;
use crate::render::number::human_bytes;
use indicatif::{
    HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle, TermLike,
};
use std::any::Any;
use std::io::{self, IsTerminal, Write as _};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use walstat_read::Watch;
use walstat_read::scan::progress::Progress;

/// Work that is done sooner shows no progress.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two drawings.
const TICK: Duration = Duration::from_millis(200);
/// Columns, if their number is not known.
const COLUMNS: u16 = 80;

/// Shows how far reading is, once it takes long enough.
#[derive(Debug)]
pub struct ProgressDisplay {
    when: When,
}

impl ProgressDisplay {
    /// Who shows it, if it is to be shown.
    pub fn when(when: When) -> Option<Arc<dyn Watch>> {
        wanted(when).then(|| Arc::new(ProgressDisplay { when }) as Arc<dyn Watch>)
    }
}

impl Watch for ProgressDisplay {
    fn begin(&self, total: Option<u64>, read: Arc<Progress>) -> Box<dyn Any> {
        let (done, wait) = channel::<()>();
        let when = self.when;
        let drawing = std::thread::spawn(move || draw(when, total, &read, &wait));
        Box::new(Drawing { done: Some(done), drawing: Some(drawing) })
    }
}

/// Progress that is being shown; it is removed when this is dropped.
struct Drawing {
    done: Option<Sender<()>>,
    drawing: Option<JoinHandle<()>>,
}

impl Drop for Drawing {
    fn drop(&mut self) {
        self.done = None;
        if let Some(drawing) = self.drawing.take() {
            // If it cannot be drawn, nothing is lost.
            let _ = drawing.join();
        }
    }
}

/// In CI, a terminal has nobody in front of it.
fn wanted(when: When) -> bool {
    match when {
        When::Auto => io::stderr().is_terminal() && std::env::var_os("CI").is_none(),
        When::Always => true,
        When::Never => false,
    }
}

/// Draws until the other end of `wait` is gone.
fn draw(when: When, total: Option<u64>, read: &Progress, wait: &Receiver<()>) {
    let goes_on = |time| wait.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
    if when == When::Auto && !goes_on(PATIENCE) {
        return;
    }
    let bar = bar(total);
    loop {
        let going_on = goes_on(TICK);
        bar.set_position(read.read_bytes().min(total.unwrap_or(u64::MAX)));
        if !going_on {
            break;
        }
    }
    bar.finish_and_clear();
}

fn bar(total: Option<u64>) -> ProgressBar {
    let target = if io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::term_like(Box::new(Plain))
    };
    let bar = ProgressBar::with_draw_target(total, target);
    let template = match total {
        Some(_) => "{read} of {all}, {rate}, {left} [{bar:20}]",
        None => "{read}, {rate}",
    };
    bar.set_style(style(template).unwrap_or_else(ProgressStyle::default_bar));
    bar
}

/// Sizes in the units that all outputs use.
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
        })
        .with_key("left", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let is_read = state.len().is_some_and(|all| state.pos() >= all);
            let _ = out.write_str(&left(is_read, state.eta()));
        });
    Some(style.progress_chars("##-"))
}

/// How long it takes still. Work with what was read may go on for a while after the last byte, which nobody
/// knows beforehand.
fn left(is_read: bool, time: Duration) -> String {
    if is_read { "all read".to_owned() } else { format!("{:#} left", HumanDuration(time)) }
}

/// Standard error that is no terminal: each drawing is a line of its own.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_is_promised_after_the_last_byte() {
        assert_eq!(left(false, Duration::from_secs(12)), "12s left");
        assert_eq!(left(true, Duration::ZERO), "all read");
    }
}
