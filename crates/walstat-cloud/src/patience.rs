//! How long and how often something is tried again: for a minute, after pauses that grow. A store that never
//! answered at all is more likely misspelt than busy, and is given up sooner.

use crate::reason::{Reason, Then};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// So long, from the first failure on.
const MINUTE: Duration = Duration::from_secs(60);
/// So long, where nothing listens and nothing has answered yet.
const FIRST_CONTACT: Duration = Duration::from_secs(10);
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Whether any store has answered, whatever it said.
static ANSWERED: AtomicBool = AtomicBool::new(false);

/// Takes note that a store has answered.
pub(crate) fn note_answer() {
    ANSWERED.store(true, Ordering::Relaxed);
}

/// What is left of the patience with one thing.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    since: Option<Instant>,
    failures: u32,
}

impl Patience {
    /// The pause before the next try after a failure; `None`: no more.
    pub(crate) fn after(&mut self, reason: &Reason) -> Option<Duration> {
        match reason.then {
            Then::Again => {
                note_answer();
                self.pause(false)
            }
            Then::AgainIfEver => self.pause(true),
            Then::Absent | Then::Shorter | Then::GiveUp => None,
        }
    }

    /// The same; `no_contact`: nobody was there.
    fn pause(&mut self, no_contact: bool) -> Option<Duration> {
        let since = *self.since.get_or_insert_with(Instant::now);
        let is_first_contact = no_contact && !ANSWERED.load(Ordering::Relaxed);
        let most = if is_first_contact { FIRST_CONTACT } else { MINUTE };
        let pause = PAUSE_FIRST.saturating_mul(1 << self.failures.min(10)).min(PAUSE_MAX);
        self.failures += 1;
        let left = most.checked_sub(since.elapsed())?;
        (!left.is_zero()).then(|| pause.mul_f64(jitter()).min(left))
    }
}

/// Between a half and one: what failed together is not tried again together.
fn jitter() -> f64 {
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = nanos.map_or(0, |time| time.subsec_nanos());
    0.5 + f64::from(nanos % 1024) / 2048.0
}
