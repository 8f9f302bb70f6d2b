//! How a store as a whole behaves: whether it has ever answered, and for how long nothing was had from it.
//! One object that cannot be had says little of the others; a store that gives nothing is not asked for each.

use crate::reason::{Cause, Reason};
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A store that has not answered for so long, from the first request on, is more likely misspelt than busy.
const FIRST_ANSWER: Duration = Duration::from_secs(10);
/// A store that has given nothing for so long, from the first failure on, is not asked any more.
const NOTHING_HAD: Duration = Duration::from_secs(120);

/// What is known of a store.
#[derive(Debug, Default)]
pub(crate) struct Contact(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// When it was asked for the first thing, as long as it has not answered.
    asked: Option<Instant>,
    has_answered: bool,
    /// It has given something, so the credentials were good.
    has_given: bool,
    /// What failed last, other than by silence.
    last: Option<String>,
    /// The first failure after the last bytes that came.
    failing: Option<Instant>,
    /// So many objects were read, whole or in part.
    objects: u64,
    /// Why it is not asked any more.
    given_up: Option<String>,
}

impl Contact {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what failed, and that the store was given up: a new reading begins, maybe long after.
    pub(crate) fn begin(&self) {
        let mut known = self.known();
        let Known { has_answered, has_given, .. } = *known;
        *known = Known { has_answered, has_given, ..Known::default() };
    }

    /// Why the store is not asked any more, if it is not.
    pub(crate) fn given_up(&self) -> Option<String> {
        self.known().given_up.clone()
    }

    /// Takes note of an object of which something was read for the first time.
    pub(crate) fn note_object(&self) {
        self.known().objects += 1;
    }

    /// Takes note of bytes that came: on a slow line a part takes longer than a store is waited for.
    pub(crate) fn note_bytes(&self) {
        self.known().had();
    }

    /// Asks for something, unless the store was given up; until it has answered once, not for longer than it
    /// is waited for.
    pub(crate) async fn ask<T>(
        &self,
        request: impl Future<Output = Result<T, Reason>>,
    ) -> Result<T, Reason> {
        let until = match self.known().begin_asking(Instant::now()) {
            Ok(until) => until,
            Err(text) => return Err(Reason::lasting(&text)),
        };
        let answer = match until {
            None => request.await,
            Some(until) => match tokio::time::timeout_at(until.into(), request).await {
                Ok(answer) => answer,
                Err(_) => Err(Reason::silence(FIRST_ANSWER)),
            },
        };
        match &answer {
            Ok(_) => self.known().had(),
            Err(reason) if reason.cause.is_final() => self.known().refused(),
            Err(_) => {}
        }
        answer
    }

    /// How long something that failed may still be tried; `None`: no longer, the store is given up.
    pub(crate) fn left(&self, reason: &Reason, now: Instant) -> Option<Duration> {
        self.known().left(reason, now)
    }
}

impl Known {
    /// Until when the first answer is waited for, if there was none yet.
    fn begin_asking(&mut self, now: Instant) -> Result<Option<Instant>, String> {
        if let Some(text) = &self.given_up {
            return Err(text.clone());
        }
        let asked = *self.asked.get_or_insert(now);
        Ok((!self.has_answered).then(|| asked + FIRST_ANSWER))
    }

    /// Something was had.
    fn had(&mut self) {
        self.has_given = true;
        self.refused();
    }

    /// Something was refused in so many words: the store works.
    fn refused(&mut self) {
        (self.has_answered, self.failing) = (true, None);
    }

    fn left(&mut self, reason: &Reason, now: Instant) -> Option<Duration> {
        if reason.cause == Cause::Credentials && !self.has_given {
            self.given_up.get_or_insert_with(|| reason.text.clone());
            return None;
        }
        self.has_answered |= reason.cause.is_answer();
        let (since, most) = if self.has_answered {
            (*self.failing.get_or_insert(now), NOTHING_HAD)
        } else {
            (*self.asked.get_or_insert(now), FIRST_ANSWER)
        };
        if reason.cause != Cause::Silence || self.last.is_none() {
            self.last = Some(reason.text.clone());
        }
        let left = most.saturating_sub(now.saturating_duration_since(since));
        if left.is_zero() {
            self.give_up();
            return None;
        }
        Some(left)
    }

    fn give_up(&mut self) {
        // The limit mostly comes in the middle of the last of many tries: how it failed before tells more.
        let last = self.last.clone().unwrap_or_default();
        let text = if self.has_answered {
            let (minutes, objects) = (NOTHING_HAD.as_secs() / 60, self.objects);
            let after = match objects {
                1 => "1 object".to_owned(),
                _ => format!("{objects} objects"),
            };
            format!(
                "the store has given nothing for {minutes} minutes, after {after} had been read: {last}"
            )
        } else {
            last
        };
        self.given_up.get_or_insert(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// What a store says that is too busy.
    fn busy() -> Reason {
        Reason { text: "slow down".to_owned(), cause: Cause::Busy }
    }

    #[test]
    fn a_store_that_gives_nothing_for_two_minutes_is_given_up_whatever_is_asked_for() {
        let (mut known, begun) = (Known::default(), Instant::now());
        assert!(known.begin_asking(begun).is_ok_and(|until| until.is_some()));
        known.had();
        known.objects = 3;
        assert_eq!(known.left(&busy(), begun), Some(seconds(120)));
        assert_eq!(known.left(&busy(), begun + seconds(119)), Some(seconds(1)));
        // As long as anything is had in between, it is only the one object.
        known.had();
        assert_eq!(known.left(&busy(), begun + seconds(119)), Some(seconds(120)));
        assert_eq!(known.left(&busy(), begun + seconds(238)), Some(seconds(1)));
        assert_eq!(known.left(&busy(), begun + seconds(239)), None);
        let told = known.begin_asking(begun + seconds(239)).expect_err("given up");
        let after = "after 3 objects had been read: slow down";
        assert_eq!(told, format!("the store has given nothing for 2 minutes, {after}"));
    }

    #[test]
    fn the_first_answer_is_waited_for_ten_seconds_whatever_fails_meanwhile() {
        let silent = [Reason::silence(FIRST_ANSWER), Reason::broken("reset".to_owned())];
        for reason in silent {
            let (mut known, begun) = (Known::default(), Instant::now());
            let until = known.begin_asking(begun).expect("not given up").expect("a limit");
            assert_eq!(until, begun + seconds(10));
            assert_eq!(known.left(&reason, begun + seconds(9)), Some(seconds(1)));
            // A second request does not begin anew.
            assert_eq!(known.begin_asking(begun + seconds(9)), Ok(Some(until)));
            assert_eq!(known.left(&reason, begun + seconds(10)), None);
            assert_eq!(known.begin_asking(begun + seconds(10)), Err(reason.text));
        }
        // How it failed before tells more.
        let (mut known, begun) = (Known::default(), Instant::now());
        known.begin_asking(begun).expect("not given up");
        let refused = Reason::broken("connection refused".to_owned());
        assert_eq!(known.left(&refused, begun), Some(seconds(10)));
        assert_eq!(known.left(&Reason::silence(FIRST_ANSWER), begun + seconds(10)), None);
        let told = known.begin_asking(begun + seconds(10));
        assert_eq!(told, Err("connection refused".to_owned()));
        // One that says that it is busy is there.
        let (mut known, begun) = (Known::default(), Instant::now());
        known.begin_asking(begun).expect("not given up");
        assert_eq!(known.left(&busy(), begun + seconds(9)), Some(seconds(120)));
        assert_eq!(known.begin_asking(begun + seconds(30)), Ok(None));
    }

    #[test]
    fn whoever_begins_anew_asks_again() {
        let (contact, begun) = (Contact::default(), Instant::now());
        let reset = Reason::broken("reset".to_owned());
        contact.known().begin_asking(begun).expect("not given up");
        assert_eq!(contact.left(&reset, begun + seconds(11)), None);
        assert_eq!(contact.given_up().as_deref(), Some("reset"));
        contact.begin();
        assert_eq!(contact.given_up(), None);
        let later = begun + seconds(99);
        assert_eq!(contact.known().begin_asking(later), Ok(Some(later + seconds(10))));
    }

    #[test]
    fn what_failed_at_the_end_of_one_reading_does_not_end_the_next_one() {
        let (contact, begun) = (Contact::default(), Instant::now());
        contact.note_bytes();
        contact.note_object();
        assert_eq!(contact.left(&busy(), begun), Some(seconds(120)));
        contact.begin();
        assert_eq!(contact.left(&busy(), begun + seconds(130)), Some(seconds(120)));
        assert_eq!(contact.left(&busy(), begun + seconds(250)), None);
        let told = contact.given_up().expect("given up");
        assert!(told.contains("after 0 objects"), "{told}");
    }

    #[test]
    fn a_store_whose_bytes_flow_is_not_given_up() {
        let (contact, begun) = (Contact::default(), Instant::now());
        let reset = Reason::broken("reset".to_owned());
        contact.note_bytes();
        assert_eq!(contact.left(&reset, begun), Some(seconds(120)));
        contact.note_bytes();
        assert_eq!(contact.left(&reset, begun + seconds(130)), Some(seconds(120)));
    }
}
