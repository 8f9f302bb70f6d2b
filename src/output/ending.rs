//! How a command that runs until it is stopped ends: a signal asks it to stop, so that it can write its last
//! result. If it has not stopped within a second, the program is ended.

use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Whether it is to end.
#[derive(Debug, Default)]
pub struct Ending {
    is_asked: Mutex<bool>,
    changed: Condvar,
}

/// The only one.
static ENDING: OnceLock<Ending> = OnceLock::new();

/// So long a command may take to end after it was told to.
const PATIENCE: Duration = Duration::from_millis(900);

impl Ending {
    /// From now on a signal asks to end. `aside`: what is done in any case before the program ends, or stops
    /// for a while; `again`: what is done when it goes on.
    pub fn heed(aside: fn(), again: fn()) -> &'static Ending {
        let ending = ENDING.get_or_init(Ending::default);
        let end = move || {
            ending.ask();
            std::thread::sleep(PATIENCE);
            aside();
        };
        #[cfg(unix)]
        super::interrupt::heed_ending(end, aside, again);
        #[cfg(not(unix))]
        drop((end, again));
        ending
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks to end.
    pub fn ask(&self) {
        *self.lock() = true;
        self.changed.notify_all();
    }

    /// Whether that was asked.
    pub fn is_asked(&self) -> bool {
        *self.lock()
    }

    /// Waits for so long, or until it is asked to end; whether it is.
    pub fn wait(&self, pause: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), pause, |is_asked| !*is_asked);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
