//! A relation's file is made (`xl_smgr_create` in `src/include/catalog/storage_xlog.h`).

use crate::cursor::at;
use crate::locator::RelFileLocator;

/// Opcode of the record (`XLOG_SMGR_CREATE`).
pub const CREATE: u8 = 0x10;

/// The relation whose file it is, from the main data; `None` if that is too short.
pub fn relation(main_data: &[u8]) -> Option<RelFileLocator> {
    at(main_data, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_relation_comes_first() {
        let data: Vec<u8> = [1663u32, 5, 16384, 0].iter().flat_map(|n| n.to_le_bytes()).collect();
        let want = RelFileLocator { tablespace: 1663, database: 5, relfilenode: 16384 };
        assert_eq!(relation(&data), Some(want));
        assert_eq!(relation(&data[..11]), None);
    }
}
