//! How long and how often something is tried again: for a minute, after pauses that grow, and no longer than
//! the store as a whole is waited for.

use crate::contact::Contact;
use crate::reason::{Cause, Reason};
use std::time::{Duration, Instant};

/// So long, from the first failure on.
const MINUTE: Duration = Duration::from_secs(60);
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// What is left of the patience with one thing.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    since: Option<Instant>,
    failures: u32,
    /// The object was tried for a minute already, for another part of it: this part is tried once.
    is_spent: bool,
}

impl Patience {
    /// With an object that was tried for a minute already, for another part of it: once is enough.
    pub(crate) fn spent() -> Patience {
        Patience { is_spent: true, ..Patience::default() }
    }

    /// The pause before the next try after a failure; `None`: no more.
    pub(crate) fn after(&mut self, reason: &Reason, contact: &Contact) -> Option<Duration> {
        self.at(Instant::now(), reason, contact)
    }

    fn at(&mut self, now: Instant, reason: &Reason, contact: &Contact) -> Option<Duration> {
        if reason.cause.is_final() {
            return None;
        }
        let left_of_store = contact.left(reason, now)?;
        let left = self.left(now, reason.cause).min(left_of_store);
        let pause = PAUSE_FIRST.saturating_mul(1 << self.failures.min(10)).min(PAUSE_MAX);
        self.failures += 1;
        (!left.is_zero()).then(|| pause.mul_f64(jitter()).min(left))
    }

    /// How long this one thing may still be tried.
    fn left(&mut self, now: Instant, cause: Cause) -> Duration {
        // Credentials are no affair of the one object: either all can be had again, or none.
        if cause == Cause::Credentials {
            return Duration::MAX;
        }
        let since = *self.since.get_or_insert(now);
        let most = if self.is_spent { Duration::ZERO } else { MINUTE };
        most.saturating_sub(now.saturating_duration_since(since))
    }
}

/// Between a half and one: what failed together is not tried again together.
fn jitter() -> f64 {
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = nanos.map_or(0, |time| time.subsec_nanos());
    0.5 + f64::from(nanos % 1024) / 2048.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_tried_for_a_minute_and_after_that_once() {
        let (contact, begun) = (Contact::default(), Instant::now());
        let busy = Reason { text: "slow down".to_owned(), cause: Cause::Busy };
        let mut patience = Patience::default();
        let mut at = |seconds| patience.at(begun + Duration::from_secs(seconds), &busy, &contact);
        assert!(at(0).is_some_and(|pause| pause <= PAUSE_FIRST));
        assert!(at(59).is_some_and(|pause| pause <= Duration::from_secs(1)));
        assert_eq!(at(60), None);
        assert_eq!(Patience::spent().at(begun, &busy, &contact), None);
        let denied = Reason::lasting("denied");
        assert_eq!(Patience::default().at(begun, &denied, &contact), None);
    }

    #[test]
    fn credentials_that_were_good_are_waited_for_until_the_store_is_given_up() {
        let (contact, begun) = (Contact::default(), Instant::now());
        let expired = Reason { text: "ExpiredToken".to_owned(), cause: Cause::Credentials };
        contact.note_bytes();
        let (mut one, mut spent) = (Patience::default(), Patience::spent());
        for patience in [&mut one, &mut spent] {
            assert!(patience.at(begun, &expired, &contact).is_some());
            let last = patience.at(begun + Duration::from_secs(119), &expired, &contact);
            assert!(last.is_some_and(|pause| pause <= Duration::from_secs(1)));
        }
        assert_eq!(one.at(begun + Duration::from_secs(120), &expired, &contact), None);
        let told = "the store has given nothing for 2 minutes, after 0 objects had been read: ExpiredToken";
        assert_eq!(contact.given_up().as_deref(), Some(told));
        // Where they never were, nobody waits for others.
        let new = Contact::default();
        assert_eq!(Patience::default().at(begun, &expired, &new), None);
        assert_eq!(new.given_up().as_deref(), Some("ExpiredToken"));
    }
}
