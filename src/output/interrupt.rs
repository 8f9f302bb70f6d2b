//! Signals that end the program, held back while a file is half written, so that none is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A signal that came, 0 for none yet.
#[derive(Debug, Default)]
pub struct Interrupt(Arc<AtomicUsize>);

impl Interrupt {
    /// Whether `work` should clean up and return.
    pub fn is_due(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

/// Does `work`. SIGINT, SIGTERM and SIGHUP do not end the program before it returns, which it
/// should do soon when [`Interrupt::is_due`].
#[cfg(unix)]
pub fn held_back<T>(work: impl FnOnce(&Interrupt) -> T) -> T {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::flag::{register_conditional_default, register_usize};
    use signal_hook::low_level::{emulate_default_handler, unregister};
    use std::sync::atomic::AtomicBool;

    // A file that exceeds the size limit (SIGXFSZ) is a write error, and does not end the program.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    let interrupt = Interrupt::default();
    let is_done = Arc::new(AtomicBool::new(false));
    let mut actions = Vec::new();
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        let came = Arc::clone(&interrupt.0);
        // A signal that cannot be caught ends the program as it always does.
        actions.extend(register_usize(signal, came, signal as usize));
        // Stays registered: else the signal would do nothing any more.
        let _ = register_conditional_default(signal, Arc::clone(&is_done));
    }
    let result = work(&interrupt);
    is_done.store(true, Ordering::Relaxed);
    actions.into_iter().for_each(|action| {
        unregister(action);
    });
    let signal = interrupt.0.load(Ordering::Relaxed);
    if let Some(signal) = i32::try_from(signal).ok().filter(|signal| *signal != 0) {
        let _ = emulate_default_handler(signal);
    }
    result
}

/// Does `work`; nothing is held back here.
#[cfg(not(unix))]
pub fn held_back<T>(work: impl FnOnce(&Interrupt) -> T) -> T {
    work(&Interrupt::default())
}
