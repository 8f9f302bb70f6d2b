//! How keys come into a B-tree: how many, into how many leaves, and how many into the last one.
//! Keys that rise with time all go into the right-most leaf; random ones go anywhere, and each
//! leaf then costs an image after every checkpoint.
//!
//! Which leaf is the right-most is told by images of a leaf without a right sibling, and by splits
//! of one. What came before the first such sign is judged by it: nothing else could have moved the
//! right end. Without any sign it was not split, so all of its entries went into one leaf: the one with most
//! has at least as many. What is counted does not depend on how the WAL was divided into runs.

use super::block_set::BlockSet;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use walstat_format::block::BlockRef;
use walstat_format::by_key;
use walstat_format::data_page::btree_page::{PLACE_BYTES, PagePlace};
use walstat_format::payload::btree::{Insertion, Split};
use walstat_format::record::Record;

/// Insertions into the leaves of one B-tree.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Leaves {
    /// Into leaves that were there, and splits of leaves.
    pub inserts: u64,
    /// Distinct leaves that these touched.
    pub blocks: BlockSet,
    end: RightEnd,
}

/// The right-most leaf, as far as it is known.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct RightEnd {
    /// The first one that there was a sign of: so it was from the beginning.
    first: Option<u32>,
    /// The right-most one now.
    now: Option<u32>,
    /// Insertions before the first sign, by leaf.
    #[serde(serialize_with = "by_key::map")]
    before: HashMap<u32, u64>,
    /// Insertions into the right-most leaf since the first sign.
    inserts: u64,
}

impl Leaves {
    /// Takes note of a record of a B-tree.
    pub fn observe(&mut self, record: &Record<'_>) {
        for block in record.blocks() {
            if block.fork == 0 && is_rightmost_leaf(record, &block) {
                self.end.move_to(block.block);
            }
        }
        match Insertion::of(record.header.info, record.version) {
            Some(Insertion::Leaf { .. }) => {
                if let Some(leaf) = record.blocks().next() {
                    self.insert(leaf.block, 1);
                }
            }
            Some(Insertion::Split { .. }) => self.split(record),
            Some(Insertion::Inner) | None => {}
        }
    }

    /// Counts insertions into a leaf that was there.
    pub fn insert(&mut self, leaf: u32, count: u64) {
        self.inserts += count;
        self.blocks.insert(leaf);
        self.end.insert(leaf, count);
    }

    fn split(&mut self, record: &Record<'_>) {
        let main_data = record.main_data().unwrap_or_default();
        let split = Split::parse(&main_data, record.version);
        if split.is_none_or(|split| split.level > 0) {
            return;
        }
        let (mut left, mut right, mut has_sibling) = (None, None, false);
        for block in record.blocks() {
            match block.id {
                0 => left = Some(block.block),
                1 => right = Some(block.block),
                2 => has_sibling = true,
                _ => {}
            }
        }
        let (Some(left), Some(right)) = (left, right) else { return };
        if !has_sibling {
            self.end.move_to(left);
        }
        self.insert(left, 1);
        self.blocks.insert(right);
        if !has_sibling {
            self.end.move_to(right);
        }
    }

    /// Insertions into the right-most leaf; at most so many where nothing tells which one it is.
    pub fn rightmost_inserts(&self) -> u64 {
        let RightEnd { first, before, inserts, .. } = &self.end;
        match first {
            Some(first) => inserts + before.get(first).copied().unwrap_or_default(),
            None => before.values().copied().max().unwrap_or_default(),
        }
    }

    /// Adds what a later run has seen.
    pub fn merge(&mut self, later: Leaves) {
        self.inserts += later.inserts;
        self.blocks.merge(later.blocks);
        self.end.merge(later.end);
    }

    /// Nothing earlier can come any more.
    pub fn settle(&mut self) {
        self.blocks.settle();
        if let Some(first) = self.end.first {
            let before = std::mem::take(&mut self.end.before);
            self.end.inserts += before.get(&first).copied().unwrap_or_default();
        }
    }
}

impl RightEnd {
    /// Takes note of the right-most leaf from here on.
    fn move_to(&mut self, leaf: u32) {
        self.first.get_or_insert(leaf);
        self.now = Some(leaf);
    }

    fn insert(&mut self, leaf: u32, count: u64) {
        match self.now {
            Some(now) if now == leaf => self.inserts += count,
            Some(_) => {}
            None => *self.before.entry(leaf).or_default() += count,
        }
    }

    fn merge(&mut self, later: RightEnd) {
        match self.now {
            Some(now) => self.inserts += later.before.get(&now).copied().unwrap_or_default(),
            None => {
                for (leaf, inserts) in later.before {
                    *self.before.entry(leaf).or_default() += inserts;
                }
            }
        }
        self.inserts += later.inserts;
        self.first = self.first.or(later.first);
        self.now = later.now.or(self.now);
    }
}

/// Whether the image of a block shows the right-most leaf. Compressed ones are not looked into:
/// unpacking every image would cost more than what they tell.
fn is_rightmost_leaf(record: &Record<'_>, block: &BlockRef) -> bool {
    let Some(image) = block.image else { return false };
    if record.version.image_flags.is_compressed(image.info) {
        return false;
    }
    let end = (record.parts.head_bytes + block.payload_at) as usize + usize::from(image.bytes);
    let last = end.checked_sub(PLACE_BYTES).and_then(|at| record.body.get(at, PLACE_BYTES));
    let place = last.and_then(|last| PagePlace::parse(&last));
    place.is_some_and(|place| place.is_rightmost_leaf())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What happens in a B-tree: insertions into a leaf, and signs of the right-most one.
    #[derive(Clone, Copy)]
    enum Event {
        Insert(u32),
        End(u32),
    }

    fn seen(events: &[Event]) -> Leaves {
        let mut leaves = Leaves::default();
        for event in events {
            match event {
                Event::Insert(leaf) => leaves.insert(*leaf, 1),
                Event::End(leaf) => leaves.end.move_to(*leaf),
            }
        }
        leaves
    }

    #[test]
    fn the_right_end_does_not_depend_on_the_division_into_runs() {
        use Event::{End, Insert};
        let events = [
            Insert(1),
            Insert(2),
            Insert(1),
            End(1),
            Insert(1),
            Insert(2),
            End(3),
            Insert(3),
            Insert(1),
            Insert(3),
            End(7),
            Insert(3),
            Insert(7),
        ];
        let whole = seen(&events);
        // Two before the first sign, one after it, two into 3, one into 7.
        assert_eq!((whole.inserts, whole.rightmost_inserts()), (10, 6));
        for first in 0..=events.len() {
            for second in first..=events.len() {
                let [a, b, c] =
                    [&events[..first], &events[first..second], &events[second..]].map(seen);
                let (mut left, mut right) = (a.clone(), b.clone());
                left.settle();
                left.merge(b);
                left.settle();
                left.merge(c.clone());
                right.merge(c);
                let mut other = a;
                other.merge(right);
                for merged in [left, other] {
                    assert_eq!((merged.inserts, merged.blocks.len()), (10, 4), "{first} {second}");
                    assert_eq!(merged.rightmost_inserts(), 6, "{first} {second}");
                }
            }
        }
    }

    #[test]
    fn without_a_sign_the_right_end_has_at_most_what_the_leaf_with_most_has() {
        use Event::Insert;
        let events = [Insert(1), Insert(2), Insert(1), Insert(3)];
        for first in 0..=events.len() {
            let [mut merged, later] = [&events[..first], &events[first..]].map(seen);
            merged.settle();
            merged.merge(later);
            assert_eq!((merged.inserts, merged.rightmost_inserts()), (4, 2), "{first}");
        }
        assert_eq!(seen(&[]).rightmost_inserts(), 0);
    }
}
