//! The records that the fast way takes: those of all types that a release has and that refer to the blocks
//! which redo asks for, but for types that are looked into one by one, since recovery may end at them.

use std::sync::OnceLock;
use walstat_format::block::needed::NeededBlocks;
use walstat_format::payload::xlog;
use walstat_format::record_header::RECORD_HEADER_BYTES;
use walstat_format::rmgr::{XLOG, is_replayed, needed_blocks};
use walstat_format::version::{VERSIONS, Version};

/// Types of [`XLOG`] that the reader's own steps take.
const LOOKED_INTO: [u8; 6] = [
    xlog::CHECKPOINT_SHUTDOWN,
    xlog::CHECKPOINT_ONLINE,
    xlog::PARAMETER_CHANGE,
    xlog::END_OF_RECOVERY,
    xlog::OVERWRITE_CONTRECORD,
    xlog::SWITCH,
];

/// By resource manager and the high half of `xl_info`, which blocks a record has to refer to; of a type that
/// is no usual one, what no record has. So it is one load and one branch a record, whatever is asked of it.
pub(crate) struct UsualTypes([NeededBlocks; 1 << 12]);

static OF_RELEASES: [OnceLock<UsualTypes>; VERSIONS.len()] =
    [const { OnceLock::new() }; VERSIONS.len()];

impl UsualTypes {
    fn new(version: &Version) -> UsualTypes {
        UsualTypes(std::array::from_fn(|at| {
            let [info, rmgr] = ((at << 4) as u16).to_le_bytes();
            let is_looked_into = rmgr == XLOG && LOOKED_INTO.contains(&info);
            if is_replayed(rmgr, info, version) && !is_looked_into {
                needed_blocks(rmgr, info, version)
            } else {
                NeededBlocks::NEVER
            }
        }))
    }

    /// Those of a release.
    pub(super) fn of(version: &Version) -> &'static UsualTypes {
        let release = VERSIONS.iter().position(|known| known.magic == version.magic);
        OF_RELEASES[release.unwrap_or_default()].get_or_init(|| UsualTypes::new(version))
    }

    /// The blocks that the record with this header has to refer to: `xl_info` and `xl_rmid` are loaded as one
    /// number.
    #[inline(always)]
    pub(super) fn needed(&self, header: &[u8; RECORD_HEADER_BYTES]) -> NeededBlocks {
        let [.., info, rmgr, _, _, _, _, _, _] = *header;
        self.0[usize::from(u16::from_le_bytes([info, rmgr]) >> 4)]
    }
}

impl std::fmt::Debug for UsualTypes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("UsualTypes")
    }
}
