//! Events that cannot be judged without the records before the first one that was seen: they stay open until
//! what was counted there is merged. Knows nothing of what is counted.

use super::recent_map::Granule;
use serde::{Deserialize, Serialize};

/// Open events, in WAL order, and where the WAL begins that was seen.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OpenEvents<E> {
    events: Vec<E>,
    /// Where the first record is that counts here.
    start: Option<Granule>,
    /// Nothing can come before it.
    is_first: bool,
}

impl<E> Default for OpenEvents<E> {
    fn default() -> Self {
        OpenEvents { events: Vec::new(), start: None, is_first: false }
    }
}

impl<E> OpenEvents<E> {
    /// Takes note of a record that counts.
    pub(crate) fn note(&mut self, at: Granule) {
        self.start.get_or_insert(at);
    }

    /// Whether an event may have to do with something before the first record.
    pub(crate) fn may_reach_before(&self, window: u64, at: Granule) -> bool {
        !self.is_first && self.start.is_some_and(|start| at.is_within(window, start))
    }

    /// Whether nothing can come before the first record.
    pub(crate) fn is_first(&self) -> bool {
        self.is_first
    }

    /// Adds an event.
    pub(crate) fn push(&mut self, event: E) {
        self.events.push(event);
    }

    /// The event that was added last.
    pub(crate) fn last_mut(&mut self) -> Option<&mut E> {
        self.events.last_mut()
    }

    /// Goes on with what a later run has seen; returns its open events, which can be judged now.
    pub(crate) fn join(&mut self, later: OpenEvents<E>) -> Vec<E> {
        self.start = self.start.or(later.start);
        later.events
    }

    /// Nothing earlier can come any more: what is open stays unknown.
    pub(crate) fn settle(&mut self) {
        self.is_first = true;
        self.events = Vec::new();
    }

    /// Takes no more memory than it needs.
    pub(crate) fn shrink(&mut self) {
        self.events.shrink_to_fit();
    }
}
