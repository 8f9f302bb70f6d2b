//! What tells that a file was not changed since it was looked at, without reading it.

use super::storage::{Changed, Metadata};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};

/// Longer than a tick of the clock that file systems take modification times from.
pub const CLOCK_TICK: Duration = Duration::from_millis(20);

/// If two stamps of a file are equal, its content has not changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Its length.
    bytes: u64,
    /// When it was last written to, since 1970; `None`: before that, or not known.
    modified: Option<Duration>,
    /// When anything of it was last changed.
    changed: Option<Changed>,
    /// What an object store says of the content.
    etag: Option<String>,
}

impl Stamp {
    /// That of a file.
    pub fn of(metadata: &Metadata) -> Stamp {
        let since_1970 = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).ok();
        Stamp {
            bytes: metadata.bytes,
            modified: metadata.modified.and_then(since_1970),
            changed: metadata.changed,
            etag: metadata.tag.clone(),
        }
    }

    /// Whether the file was changed so shortly ago that a change after this one might have the same times.
    /// A time in the future is that of another clock, and says nothing.
    pub fn is_younger_than(&self, age: Duration) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let changed = self.changed.and_then(|Changed { seconds, nanos, .. }| {
            Some(Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanos).ok()?))
        });
        let last = changed.max(self.modified).unwrap_or_default();
        now.checked_sub(last).is_none_or(|old| old < age)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage;
    use std::fs;

    #[test]
    fn other_bytes_of_the_same_length_and_time_are_another_stamp() {
        let path = std::env::temp_dir().join(format!("walstat-stamp-{}", std::process::id()));
        let stamp = || Stamp::of(&storage::metadata(&path).expect("metadata"));
        fs::write(&path, b"one").expect("written");
        let modified = fs::metadata(&path).and_then(|found| found.modified()).expect("a time");
        let before = stamp();
        assert_eq!(before, stamp());
        std::thread::sleep(Duration::from_millis(30));
        fs::write(&path, b"two").expect("written");
        let open = fs::File::options().write(true).open(&path).expect("open");
        open.set_modified(modified).expect("set back");
        assert_eq!(stamp().modified, before.modified);
        assert_ne!(stamp(), before);
        fs::remove_file(&path).expect("it was there");
    }

    #[test]
    fn a_time_in_the_future_is_young() {
        let stamp = |modified| Stamp { bytes: 0, modified, changed: None, etag: None };
        let tick = Duration::from_millis(20);
        assert!(stamp(Some(Duration::from_secs(1 << 40))).is_younger_than(tick));
        assert!(!stamp(Some(Duration::from_secs(1))).is_younger_than(tick));
    }
}
