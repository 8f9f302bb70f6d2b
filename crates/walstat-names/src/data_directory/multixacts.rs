//! Multixacts (`pg_multixact`; `multixact.c`): several transactions that stand in one xmax, at most
//! one of which updates the row. One file says where the members of each lie, another has them.

use super::slru::Slru;
use super::warning;
use std::path::Path;
use walstat_format::cursor::at;
use walstat_format::payload::multixact::is_update;
use walstat_format::version::Version;
use walstat_input::control::Control;

/// Four members lie together: a byte of status each, then the xids.
const GROUP_MEMBERS: u64 = 4;
const GROUP_BYTES: u64 = 20;
/// No row has that many lockers; a count above is no count.
const MEMBERS_MAX: u64 = 1 << 16;
/// `%04X`; of members whose places have 8 bytes, `%015X`.
const NAME_DIGITS: usize = 4;
const LONG_NAME_DIGITS: usize = 15;

/// The multixacts of a data directory.
pub(super) struct Multixacts {
    offsets: Slru,
    members: Slru,
    /// Bytes of a place: 4, or 8.
    offset_bytes: u64,
    /// The next multixact, and where its members will lie.
    next: (u32, u64),
    is_warned: bool,
}

impl Multixacts {
    pub(super) fn new(directory: &Path, version: &Version, control: &Control) -> Multixacts {
        let slru = |name, digits| {
            let path = directory.join("pg_multixact").join(name);
            Slru::new(path, control.page_bytes, control.slru_pages, digits)
        };
        let offset_bytes = u64::from(version.multixact_offset_bytes);
        let digits = if offset_bytes == 8 { LONG_NAME_DIGITS } else { NAME_DIGITS };
        Multixacts {
            offsets: slru("offsets", NAME_DIGITS),
            members: slru("members", digits),
            offset_bytes,
            next: control.checkpoint.next_multixact,
            is_warned: false,
        }
    }

    /// The member that updates or deletes: `None` where it cannot be told, `Some(None)` where there
    /// is none. That it cannot be told is said once.
    pub(super) fn updater(
        &mut self,
        multixact: u32,
        warnings: &mut Vec<String>,
    ) -> Option<Option<u32>> {
        let found = self.find(multixact);
        if found.is_none() && !self.is_warned {
            let text = format!("does not say who is in multixact {multixact}");
            warnings.push(warning(self.offsets.directory(), text));
            self.is_warned = true;
        }
        found
    }

    fn find(&mut self, multixact: u32) -> Option<Option<u32>> {
        let first = self.offset(multixact).filter(|offset| *offset != 0)?;
        // Multixact 0 is none: after the last comes 1.
        let following = multixact.wrapping_add(1).max(1);
        let end = match self.next {
            (next, offset) if next == following => offset,
            _ => self.offset(following).filter(|offset| *offset != 0)?,
        };
        let count = self.distance(first, end).filter(|count| *count <= MEMBERS_MAX)?;
        for index in 0..count {
            let (xid, status) = self.member(self.advance(first, index))?;
            if is_update(status) {
                return Some(Some(xid));
            }
        }
        Some(None)
    }

    /// Places of 4 bytes turn over.
    fn distance(&self, first: u64, end: u64) -> Option<u64> {
        match self.offset_bytes {
            8 => end.checked_sub(first),
            _ => Some(end.wrapping_sub(first) & 0xFFFF_FFFF),
        }
    }

    fn advance(&self, first: u64, index: u64) -> u64 {
        let place = first.wrapping_add(index);
        if self.offset_bytes == 8 { place } else { place & 0xFFFF_FFFF }
    }

    /// Where the members of a multixact begin.
    fn offset(&mut self, multixact: u32) -> Option<u64> {
        let per_page = u64::from(self.offsets.page_bytes()) / self.offset_bytes;
        let (page, index) = (u64::from(multixact) / per_page, u64::from(multixact) % per_page);
        let place = usize::try_from(index * self.offset_bytes).ok()?;
        if self.offset_bytes == 8 {
            return at(self.offsets.bytes(page, place, 8)?, 0);
        }
        at::<u32>(self.offsets.bytes(page, place, 4)?, 0).map(u64::from)
    }

    /// Xid and status of the member at a place.
    fn member(&mut self, place: u64) -> Option<(u32, u32)> {
        let groups_per_page = u64::from(self.members.page_bytes()) / GROUP_BYTES;
        let (group, index) = (place / GROUP_MEMBERS, usize::try_from(place % GROUP_MEMBERS).ok()?);
        let from = usize::try_from(group % groups_per_page * GROUP_BYTES).ok()?;
        let group = self.members.bytes(
            group / groups_per_page,
            from,
            usize::try_from(GROUP_BYTES).ok()?,
        )?;
        let status: u8 = at(group, index)?;
        Some((at(group, 4 + 4 * index)?, u32::from(status)))
    }
}
