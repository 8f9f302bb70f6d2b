//! Whether a file that may be mapped is mapped, or read with `read()`.
//!
//! Which of both takes less time depends on the processor, the kernel and how the page cache was filled: a
//! mapping spares the copy, but each of its pages is faulted in and looked up. Either can be half as fast as
//! the other, so the first segments are brought in by turns, and all others in the way that took less.

use std::time::Duration;

/// So many segments are brought in each way before one of both is chosen.
const TRIALS: u32 = 3;

/// How the bytes of a file come into the processor's cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The file is mapped.
    Map,
    /// `read()` copies it into a buffer.
    Read,
}

/// The processor's time that this thread has taken. What else runs does not count, other than by the clock.
#[cfg(target_os = "linux")]
pub fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Files are mapped on Linux alone.
#[cfg(not(target_os = "linux"))]
pub(crate) fn processor_time() -> Duration {
    Duration::ZERO
}

/// What each way has taken.
#[derive(Debug, Default)]
pub struct FasterWay {
    mapped: Trials,
    read: Trials,
}

#[derive(Debug, Default)]
struct Trials {
    count: u32,
    /// Of the fastest, in picoseconds a byte: whatever else the machine does only makes one slower.
    least: Option<u128>,
}

impl FasterWay {
    /// The way for the next segment, and whether it is to be timed.
    pub fn next(&self) -> (Way, bool) {
        if self.mapped.count.min(self.read.count) < TRIALS {
            let way = if self.read.count < self.mapped.count { Way::Read } else { Way::Map };
            return (way, true);
        }
        let reads = self.read.least.zip(self.mapped.least).is_some_and(|(read, map)| read < map);
        (if reads { Way::Read } else { Way::Map }, false)
    }

    /// Takes note of so many bytes that were brought in.
    pub fn took(&mut self, way: Way, bytes: u64, time: Duration) {
        let trials = if way == Way::Map { &mut self.mapped } else { &mut self.read };
        trials.count += 1;
        let Some(took) = (time.as_nanos() * 1000).checked_div(u128::from(bytes)) else { return };
        trials.least = Some(trials.least.map_or(took, |least| least.min(took)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is chosen where a segment takes so many milliseconds mapped, and so many read.
    fn chosen(mapped: &[u64], read: &[u64]) -> Way {
        let mut ways = FasterWay::default();
        for (mapped, read) in mapped.iter().zip(read) {
            for (way, took) in [(Way::Map, mapped), (Way::Read, read)] {
                assert_eq!(ways.next(), (way, true));
                ways.took(way, 1 << 20, Duration::from_millis(*took));
            }
        }
        let (way, is_timed) = ways.next();
        assert!(!is_timed);
        way
    }

    #[test]
    fn the_way_that_took_less_is_kept() {
        assert_eq!(chosen(&[9, 3, 4], &[5, 2, 8]), Way::Read);
        assert_eq!(chosen(&[9, 3, 4], &[5, 6, 8]), Way::Map);
    }

    #[test]
    fn segments_without_bytes_tell_nothing() {
        let mut ways = FasterWay::default();
        for _ in 0..TRIALS {
            ways.took(Way::Map, 1 << 20, Duration::from_millis(1));
            ways.took(Way::Read, 0, Duration::ZERO);
        }
        assert_eq!(ways.next(), (Way::Map, false));
    }
}
