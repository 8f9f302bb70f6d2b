//! Small numbers for the files that blocks lie in, each one fork of one relation.

use crate::fork_table::ForkKey;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

/// How many files are remembered before the map is asked; a power of two.
const RECENT: usize = 64;

/// All files that were met.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct FileNumbers {
    all: Vec<ForkKey>,
    #[serde(skip)]
    numbers: HashMap<ForkKey, u32>,
    /// By the low bits of the file number: hashing is what costs most.
    #[serde(skip)]
    recent: Vec<(ForkKey, u32)>,
}

impl FileNumbers {
    /// The number of a file, which is given one if it is new.
    #[inline(always)]
    pub fn number(&mut self, file: ForkKey) -> u32 {
        let slot = (file.relation.relfilenode as usize ^ usize::from(file.fork) << 4) % RECENT;
        match self.recent.get(slot) {
            Some((known, number)) if *known == file => *number,
            _ => self.look_up(file, slot),
        }
    }

    #[inline(never)]
    fn look_up(&mut self, file: ForkKey, slot: usize) -> u32 {
        let next = self.all.len() as u32;
        let number = *self.numbers.entry(file).or_insert(next);
        if number == next {
            self.all.push(file);
        }
        // No server numbers a file so: an empty slot is never taken for a file.
        let nothing = (ForkKey { fork: u8::MAX, ..ForkKey::default() }, 0);
        self.recent.resize(RECENT, nothing);
        if let Some(recent) = self.recent.get_mut(slot) {
            *recent = (file, number);
        }
        number
    }

    /// All of them, by their numbers.
    pub fn all(&self) -> &[ForkKey] {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_format::block::RelFileLocator;

    #[test]
    fn a_file_keeps_its_number() {
        let mut files = FileNumbers::default();
        let file = |relfilenode, fork| {
            let relation = RelFileLocator { tablespace: 1663, database: 5, relfilenode };
            ForkKey { relation, fork }
        };
        let asked: Vec<ForkKey> = (0..200).flat_map(|n| [file(n, 0), file(n, 1)]).collect();
        let first: Vec<u32> = asked.iter().map(|file| files.number(*file)).collect();
        assert_eq!(first, (0..400).collect::<Vec<u32>>());
        assert_eq!(asked.iter().map(|file| files.number(*file)).collect::<Vec<_>>(), first);
        assert_eq!(files.all(), asked);
    }
}
