//! Which transactions subtransactions belong to, as far as the data directory knows it
//! (`pg_subtrans`; `subtrans.c`): four bytes a transaction, the parent's xid or 0.

use super::{read_at_most, warning};
use std::fs;
use std::path::Path;
use walstat_format::record_header::FIRST_NORMAL_XID;
use walstat_input::control;

const PARENT_BYTES: usize = 4;
/// More are not kept: the server removes what no running transaction needs.
const KNOWN_MAX: usize = 1 << 20;

/// The subtransactions of a data directory with their parents, if it is of this cluster.
pub fn read(directory: &Path, cluster: u64, warnings: &mut Vec<String>) -> Vec<(u32, u32)> {
    let control = match control::read(directory) {
        Ok(control) if control.system_identifier == cluster => control,
        // Where names are wanted too, it is said of them.
        Ok(_) => return Vec::new(),
        Err(error) => {
            warnings.push(warning(&control::path(directory), error));
            return Vec::new();
        }
    };
    let file_bytes = control.page_bytes.saturating_mul(control.slru_pages);
    parents_in(&directory.join("pg_subtrans"), file_bytes)
}

fn parents_in(directory: &Path, file_bytes: u32) -> Vec<(u32, u32)> {
    let file_xids = file_bytes / PARENT_BYTES as u32;
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let files = entries.filter_map(|entry| {
        let number = u32::from_str_radix(entry.file_name().to_str()?, 16).ok()?;
        let bytes = read_at_most(&entry.path(), u64::from(file_bytes)).ok()?;
        Some((number.checked_mul(file_xids)?, bytes))
    });
    let parents = files.flat_map(|(first, bytes)| parents_of(first, &bytes));
    parents.take(KNOWN_MAX).collect()
}

/// Those of a file that begins with xid `first`. A parent has its xid before its children: anything
/// else is what was left of other pages.
fn parents_of(first: u32, bytes: &[u8]) -> Vec<(u32, u32)> {
    let (parents, _) = bytes.as_chunks::<PARENT_BYTES>();
    let pairs = (first..).zip(parents.iter().map(|bytes| u32::from_le_bytes(*bytes)));
    let is_sound = |(xid, parent): &(u32, u32)| {
        *parent >= FIRST_NORMAL_XID && parent.wrapping_sub(*xid).cast_signed() < 0
    };
    pairs.filter(is_sound).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_are_before_their_children() {
        let root = tempfile::tempdir().expect("a directory");
        let parents = [0_u32, 0, 0, 0, 3, 9, 4, 2];
        let bytes: Vec<u8> = parents.into_iter().flat_map(u32::to_le_bytes).collect();
        fs::write(root.path().join("0000"), &bytes).expect("a file");
        fs::write(root.path().join("0002"), &bytes[16..20]).expect("a file");
        fs::write(root.path().join("other"), &bytes).expect("a file");
        let mut found = parents_in(root.path(), 32);
        found.sort_unstable();
        assert_eq!(found, [(4, 3), (6, 4), (16, 3)]);
        assert!(parents_in(&root.path().join("no"), 32).is_empty());
    }
}
