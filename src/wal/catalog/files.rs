//! Which files are those of catalogs: asked of every block of every record, so that it has to be
//! fast to say that one is not.

use super::CatalogTable;
use crate::wal::block::RelFileLocator;
use std::collections::HashMap;

/// File numbers are told apart by so many low bits first.
const NUMBERS: u32 = 4096;
const WORD_BITS: u32 = u64::BITS;

/// Files of catalogs.
#[derive(Debug, Clone)]
pub(super) struct CatalogFiles {
    /// Those beside the original ones.
    files: HashMap<RelFileLocator, CatalogTable>,
    /// A bit for each number whose low bits are those of a catalog's file.
    numbers: Box<[u64; (NUMBERS / WORD_BITS) as usize]>,
}

impl Default for CatalogFiles {
    fn default() -> CatalogFiles {
        let numbers = Box::new([0; (NUMBERS / WORD_BITS) as usize]);
        let mut files = CatalogFiles { files: HashMap::new(), numbers };
        CatalogTable::ALL.iter().for_each(|table| files.mark(table.oid()));
        files
    }
}

/// Word and bit of a file number.
fn place(relfilenode: u32) -> (usize, u32) {
    let low = relfilenode % NUMBERS;
    ((low / WORD_BITS) as usize, low % WORD_BITS)
}

impl CatalogFiles {
    fn mark(&mut self, relfilenode: u32) {
        let (word, bit) = place(relfilenode);
        if let Some(word) = self.numbers.get_mut(word) {
            *word |= 1 << bit;
        }
    }

    /// Adds a file.
    pub fn add(&mut self, file: RelFileLocator, table: CatalogTable) {
        self.mark(file.relfilenode);
        self.files.insert(file, table);
    }

    /// Adds those of others.
    pub fn merge(&mut self, others: CatalogFiles) {
        for (file, table) in others.files {
            self.add(file, table);
        }
    }

    /// The catalogs of a database, given by oid and tablespace, have files of the same numbers in a
    /// copy of it.
    pub fn copy(&mut self, from: (u32, u32), to: (u32, u32)) {
        let files = self.files.iter().filter(|(file, _)| (file.database, file.tablespace) == from);
        let copies: Vec<_> = files.map(|(file, table)| (*file, *table)).collect();
        for (file, table) in copies {
            self.add(RelFileLocator { database: to.0, tablespace: to.1, ..file }, table);
        }
    }

    /// Which catalog a file is.
    #[inline]
    pub fn get(&self, file: RelFileLocator) -> Option<CatalogTable> {
        let (word, bit) = place(file.relfilenode);
        match self.numbers.get(word).is_some_and(|word| word >> bit & 1 == 1) {
            true => self.look_up(file),
            false => None,
        }
    }

    fn look_up(&self, file: RelFileLocator) -> Option<CatalogTable> {
        self.files.get(&file).copied().or_else(|| CatalogTable::of_original_file(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn original_files_and_added_ones_are_known() {
        let file = |relfilenode| RelFileLocator { tablespace: 1663, database: 5, relfilenode };
        let mut files = CatalogFiles::default();
        assert_eq!(files.get(file(1259)), Some(CatalogTable::Class));
        // The same low bits; other ones.
        assert_eq!((files.get(file(1259 + NUMBERS)), files.get(file(16400))), (None, None));
        files.add(file(16400), CatalogTable::Index);
        assert_eq!(files.get(file(16400)), Some(CatalogTable::Index));
        files.copy((5, 1663), (6, 1700));
        let copy = RelFileLocator { tablespace: 1700, database: 6, relfilenode: 16400 };
        assert_eq!(files.get(copy), Some(CatalogTable::Index));
        let mut others = CatalogFiles::default();
        others.merge(files);
        assert_eq!(others.get(copy), Some(CatalogTable::Index));
    }
}
