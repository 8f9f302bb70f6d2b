//! The map of catalogs to their files (`RelMapFile` in `src/backend/utils/cache/relmapper.c`): the
//! file `pg_filenode.map`, and the record that carries all of a new one.

use crate::crc::Crc32c;
use crate::cursor::{Cursor, List, at};

/// `RELMAPPER_FILEMAGIC`, the first four bytes.
const MAGIC: u32 = 0x0059_2717;
/// Where the mappings begin.
const MAPPINGS: usize = 8;
/// Length of the file and where its checksum lies: up to 15, and since.
const FORMS: [(usize, usize); 2] = [(512, 504), (524, 520)];

/// A map, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelMap<'a> {
    /// Pairs of a catalog's oid and the number of its file.
    pub mappings: List<'a, (u32, u32)>,
}

/// Why bytes are no map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RelMapFault {
    /// Another length.
    #[error("found {0} bytes, expected a map of 512 or 524 bytes")]
    Length(usize),
    /// Another kind of file.
    #[error("found 0x{0:08X}, expected a map that begins with 0x{MAGIC:08X}")]
    Magic(u32),
    /// More mappings than there is room for.
    #[error("found {0} mappings, which the map has no room for")]
    Count(u32),
    /// Torn or damaged.
    #[error("found checksum 0x{found:08X}, expected 0x{expected:08X}")]
    Checksum {
        /// What the bytes have.
        found: u32,
        /// What they say they have.
        expected: u32,
    },
}

impl<'a> RelMap<'a> {
    /// Reads a map.
    pub fn parse(bytes: &'a [u8]) -> Result<RelMap<'a>, RelMapFault> {
        let length = RelMapFault::Length(bytes.len());
        let form = FORMS.iter().find(|(length, _)| *length == bytes.len());
        let (covered, _) =
            form.and_then(|(_, checksum)| bytes.split_at_checked(*checksum)).ok_or(length)?;
        let magic: u32 = at(bytes, 0).ok_or(length)?;
        if magic != MAGIC {
            return Err(RelMapFault::Magic(magic));
        }
        let found = Crc32c::finish(Crc32c::detect().update(Crc32c::START, covered));
        let expected = at(bytes, covered.len()).ok_or(length)?;
        if found != expected {
            return Err(RelMapFault::Checksum { found, expected });
        }
        let count: u32 = at(bytes, 4).ok_or(length)?;
        let mut cursor = Cursor::new(covered.get(MAPPINGS..).unwrap_or_default());
        let mappings = cursor.list(count).ok_or(RelMapFault::Count(count))?;
        Ok(RelMap { mappings })
    }

    /// The file of a catalog, if it is mapped.
    pub fn relfilenode(&self, oid: u32) -> Option<u32> {
        self.mappings.iter().find(|(mapped, _)| *mapped == oid).map(|(_, file)| file)
    }
}

/// A map is replaced.
pub(crate) const UPDATE: u8 = 0x00;

/// Whether such a record has a map as long as it says, and of a length that a map has: redo ends at another
/// one (`wrong size`, `relmap_redo`).
pub(crate) fn has_map(main_data: &[u8]) -> bool {
    const MAP_AT: usize = 12;
    let bytes: Option<u32> = at(main_data, MAP_AT - 4);
    let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
    bytes.is_some_and(|bytes| {
        FORMS.iter().any(|(length, _)| *length == bytes) && main_data.len() >= MAP_AT + bytes
    })
}

/// A new map (`xl_relmap_update`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Update<'a> {
    /// Whose catalogs; 0 for the shared ones.
    pub database: u32,
    /// The tablespace of that database.
    pub tablespace: u32,
    /// All of the new map.
    pub map: RelMap<'a>,
}

impl<'a> Update<'a> {
    /// Reads the main data; `None` if it is too short or holds no sound map.
    pub fn parse(main_data: &'a [u8]) -> Option<Update<'a>> {
        let mut cursor = Cursor::new(main_data);
        let (database, tablespace) = cursor.field()?;
        let bytes: u32 = cursor.field()?;
        let map = cursor.take(usize::try_from(bytes).ok()?)?;
        Some(Update { database, tablespace, map: RelMap::parse(map).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(bytes: usize, pairs: &[(u32, u32)]) -> Vec<u8> {
        let (_, checksum) = FORMS.into_iter().find(|(length, _)| *length == bytes).expect("form");
        let mut map = vec![0u8; bytes];
        map[..4].copy_from_slice(&MAGIC.to_le_bytes());
        map[4..8].copy_from_slice(&(pairs.len() as u32).to_le_bytes());
        for (index, (oid, file)) in pairs.iter().enumerate() {
            let at = 8 + index * 8;
            map[at..at + 4].copy_from_slice(&oid.to_le_bytes());
            map[at + 4..at + 8].copy_from_slice(&file.to_le_bytes());
        }
        let crc = Crc32c::portable().update(Crc32c::START, &map[..checksum]);
        map[checksum..checksum + 4].copy_from_slice(&Crc32c::finish(crc).to_le_bytes());
        map
    }

    #[test]
    fn both_lengths_are_read() {
        for bytes in [512, 524] {
            let file = map(bytes, &[(1259, 1259), (1249, 16400)]);
            let map = RelMap::parse(&file).expect("sound");
            assert_eq!(map.relfilenode(1249), Some(16400));
            assert_eq!(map.relfilenode(1247), None);
            let record = [&[5, 0, 0, 0, 9, 0, 0, 0, bytes as u8, 2, 0, 0][..], &file].concat();
            let update = Update::parse(&record).expect("a map");
            assert_eq!((update.database, update.tablespace, update.map), (5, 9, map));
            assert_eq!(Update::parse(&record[..bytes]), None);
        }
    }

    #[test]
    fn each_fault_is_named() {
        let sound = map(512, &[(1259, 1259)]);
        assert_eq!(RelMap::parse(&sound[..511]), Err(RelMapFault::Length(511)));
        let mut other = sound.clone();
        other[0] = 0;
        assert_eq!(RelMap::parse(&other), Err(RelMapFault::Magic(0x0059_2700)));
        let mut other = sound.clone();
        other[8] ^= 1;
        assert!(matches!(RelMap::parse(&other), Err(RelMapFault::Checksum { .. })));
        let full = map(512, &[(1, 1); 62]);
        assert_eq!(RelMap::parse(&full).map(|map| map.mappings.len()), Ok(62));
        let mut other = full;
        other[4] = 63;
        let crc = Crc32c::portable().update(Crc32c::START, &other[..504]);
        other[504..508].copy_from_slice(&Crc32c::finish(crc).to_le_bytes());
        assert_eq!(RelMap::parse(&other), Err(RelMapFault::Count(63)));
    }
}
