//! PostgreSQL's own compression, as far as the length of what it makes goes (`pglz_compress` in
//! `src/common/pg_lzcompress.c`, with its default strategy). To unpack it:
//! [`walstat_format::data_page::pglz`].
//!
//! Positions with the same hash of four bytes hang together in a list, the newest first. At each
//! position the list is searched for the longest match; the more entries were looked at, the
//! shorter a match is taken.

/// Shorter input is not compressed.
const INPUT_BYTES_MIN: usize = 32;
/// Output must be that share of the input at most, in percent.
const RESULT_PERCENT_MAX: usize = 75;
/// Output without a match gives up here.
const FIRST_SUCCESS_BYTES: usize = 1024;
/// A match of that length ends the search.
const GOOD_MATCH: usize = 128;
/// By how many percent that falls with each entry looked at.
const GOOD_MATCH_DROP: usize = 10;
/// Longest match.
const MATCH_MAX: usize = 273;
/// Matches lie less than that far back.
const DISTANCE_END: usize = 0x0FFF;
/// Positions that are remembered.
const HISTORY: usize = 4096;
/// Most lists.
const LISTS_MAX: usize = 8192;
/// Number 0 is no entry.
const NO_ENTRY: u16 = 0;

#[derive(Clone, Copy, Default)]
struct Entry {
    next: u16,
    previous: u16,
    list: u16,
    position: u16,
}

/// Compresses, one input after the other, in memory that it uses again.
pub(super) struct Pglz {
    heads: Vec<u16>,
    entries: Vec<Entry>,
    /// The next entry to be used.
    next: usize,
    /// Whether all were used already.
    recycles: bool,
    mask: usize,
}

impl Default for Pglz {
    fn default() -> Pglz {
        Pglz {
            heads: vec![NO_ENTRY; LISTS_MAX],
            entries: vec![Entry::default(); HISTORY + 1],
            next: 1,
            recycles: false,
            mask: 0,
        }
    }
}

/// Output is counted, not written: control bits in groups of eight with a byte of their own.
#[derive(Default)]
struct Output {
    bytes: usize,
    items: usize,
}

impl Output {
    fn item(&mut self, bytes: usize) {
        self.bytes += bytes + usize::from(self.items.is_multiple_of(8));
        self.items += 1;
    }
}

impl Pglz {
    /// Length of what `source` is compressed to; `None` where it does not compress well enough.
    pub(super) fn compressed_bytes(&mut self, source: &[u8]) -> Option<usize> {
        // Positions have 16 bits: a page is shorter.
        if source.len() < INPUT_BYTES_MIN || source.len() > usize::from(u16::MAX) {
            return None;
        }
        self.reset(source.len());
        let most = source.len() * RESULT_PERCENT_MAX / 100;
        let mut output = Output::default();
        let (mut at, mut found) = (0, false);
        while at < source.len() {
            if output.bytes >= most || !found && output.bytes >= FIRST_SUCCESS_BYTES {
                return None;
            }
            let length = self.longest_match(source, at);
            // A reference has two bytes, a long one three.
            match length {
                Some(length) => output.item(if length > 17 { 3 } else { 2 }),
                None => output.item(1),
            }
            found |= length.is_some();
            for _ in 0..length.unwrap_or(1) {
                self.remember(source, at);
                at += 1;
            }
        }
        (output.bytes < most).then_some(output.bytes)
    }

    fn reset(&mut self, bytes: usize) {
        let lists = match bytes {
            0..128 => 512,
            128..256 => 1024,
            256..512 => 2048,
            512..1024 => 4096,
            _ => LISTS_MAX,
        };
        self.mask = lists - 1;
        self.heads.iter_mut().take(lists).for_each(|head| *head = NO_ENTRY);
        self.next = 1;
        self.recycles = false;
    }

    /// The list of a position. Bytes are signed, as the compilers of x86-64 have it.
    fn list_of(&self, source: &[u8], at: usize) -> usize {
        let rest = source.get(at..).unwrap_or_default();
        let hash = match rest {
            [a, b, c, d, ..] => {
                let signed = [*a, *b, *c, *d].map(|byte| i32::from(byte as i8));
                let [a, b, c, d] = signed;
                (a << 6) ^ (b << 4) ^ (c << 2) ^ d
            }
            [a, ..] => i32::from(*a as i8),
            [] => 0,
        };
        hash as usize & self.mask
    }

    fn entry(&self, number: u16) -> Entry {
        self.entries.get(usize::from(number)).copied().unwrap_or_default()
    }

    /// Length of the match that is taken at a position.
    fn longest_match(&self, source: &[u8], at: usize) -> Option<usize> {
        let mut number = self.heads.get(self.list_of(source, at)).copied()?;
        let here = source.get(at..)?;
        let (mut longest, mut good) = (0, GOOD_MATCH);
        while number != NO_ENTRY {
            let entry = self.entry(number);
            let position = usize::from(entry.position);
            if at - position >= DISTANCE_END {
                break;
            }
            let there = source.get(position..)?;
            longest = longest.max(common(here, there, longest));
            number = entry.next;
            if longest >= good {
                break;
            }
            good -= good * GOOD_MATCH_DROP / 100;
        }
        (longest > 2).then_some(longest)
    }

    fn remember(&mut self, source: &[u8], at: usize) {
        let list = self.list_of(source, at);
        if self.recycles {
            self.forget(self.next);
        }
        let head = self.heads.get(list).copied().unwrap_or_default();
        let number = self.next as u16;
        let entry =
            Entry { next: head, previous: NO_ENTRY, list: list as u16, position: at as u16 };
        if let Some(slot) = self.entries.get_mut(self.next) {
            *slot = entry;
        }
        // Entry 0 takes what belongs to none.
        if let Some(after) = self.entries.get_mut(usize::from(head)) {
            after.previous = number;
        }
        if let Some(slot) = self.heads.get_mut(list) {
            *slot = number;
        }
        self.next += 1;
        if self.next > HISTORY {
            self.next = 1;
            self.recycles = true;
        }
    }

    /// Takes an entry out of its list.
    fn forget(&mut self, index: usize) {
        let Some(entry) = self.entries.get(index).copied() else { return };
        if entry.previous == NO_ENTRY {
            if let Some(head) = self.heads.get_mut(usize::from(entry.list)) {
                *head = entry.next;
            }
        } else if let Some(before) = self.entries.get_mut(usize::from(entry.previous)) {
            before.next = entry.next;
        }
        if entry.next != NO_ENTRY
            && let Some(after) = self.entries.get_mut(usize::from(entry.next))
        {
            after.previous = entry.previous;
        }
    }
}

/// How many bytes are the same; 0 where it is known not to be more than `known`.
fn common(here: &[u8], there: &[u8], known: usize) -> usize {
    // A match of 16 bytes is compared in one piece first.
    if known >= 16 && here.get(..known) != there.get(..known) {
        return 0;
    }
    let from = if known >= 16 { known } else { 0 };
    let pairs = here.iter().zip(there).take(MATCH_MAX).skip(from);
    from + pairs.take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_repeated_byte_is_a_literal_and_long_references() {
        let mut pglz = Pglz::default();
        // 1 literal, then 1023 bytes in references of 273, 273, 273 and 204: a control byte for
        // all five.
        assert_eq!(pglz.compressed_bytes(&[7; 1024]), Some(1 + 1 + 4 * 3));
        assert_eq!(pglz.compressed_bytes(&[7; 31]), None);
    }

    #[test]
    fn memory_used_before_makes_no_difference() {
        let text = b"some words, and some other words after those words ".repeat(30);
        let fresh = Pglz::default().compressed_bytes(&text);
        let mut used = Pglz::default();
        used.compressed_bytes(&[b"words ".repeat(900), text.clone()].concat());
        assert_eq!(used.compressed_bytes(&text), fresh);
        assert!(fresh.is_some());
    }
}
