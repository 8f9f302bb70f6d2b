//! A file that is mapped into memory, some megabytes of it at a time: its bytes are read where the page
//! cache has them, and are not copied. They are brought into the processor's cache in order before they are
//! handed out: records are read and checked in steps that memory cannot foresee.
//!
//! A file that ends or fails under its mapping raises SIGBUS. `bus_error` then puts zeros in the place of
//! what is gone, and [`Mapped::is_lost`] says so: whoever reads the file begins anew with `read()`, which
//! tells where it ends, or why it cannot be read.

#[cfg_attr(not(target_os = "linux"), path = "mapped/bus_error_elsewhere.rs")]
mod bus_error;

use bus_error::Watched;
use memmap2::{Advice, Mmap, MmapOptions};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// So much is mapped at a time, so that memory stays flat whatever the size of a segment.
const PART_BYTES: usize = 4 << 20;

/// Bytes that processors fetch together.
const CACHE_LINE: usize = 64;

/// A file, a part of which is mapped.
pub struct Mapped {
    file: File,
    /// Its length when it was opened.
    bytes: u64,
    /// Where the next part begins.
    at: u64,
    part: Option<Part>,
    is_lost: bool,
}

/// The part at hand. It is not watched any more when it is unmapped: fields are dropped in their order.
struct Part {
    watched: Watched,
    map: Mmap,
    /// So many bytes of it were handed out.
    used: usize,
}

impl Mapped {
    /// Opens a file, to be read from byte `from` on; `None`: `read()` is better, because it is no plain file
    /// of a local file system, or cannot be watched here.
    ///
    /// # Errors
    ///
    /// When it cannot be opened.
    pub fn open(path: &Path, from: u64) -> io::Result<Option<Mapped>> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || !bus_error::can_watch(&file) {
            return Ok(None);
        }
        Ok(Some(Mapped { file, bytes: metadata.len(), at: from, part: None, is_lost: false }))
    }

    /// The next `wanted` bytes, or as many as there are; none, too, where they cannot be mapped, which
    /// [`Mapped::is_lost`] says.
    pub fn next(&mut self, wanted: usize) -> &[u8] {
        if self.part.as_ref().is_none_or(|part| part.left() < wanted) {
            self.forget();
            self.part = self.map(wanted);
        }
        let window = self.part.as_mut().map_or(&[][..], |part| part.next(wanted));
        self.at += window.len() as u64;
        bring_in(window);
        window
    }

    /// Maps a part, of which the first `wanted` bytes are needed now.
    fn map(&mut self, wanted: usize) -> Option<Part> {
        let left = usize::try_from(self.bytes.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let length = PART_BYTES.max(wanted).min(left);
        if length == 0 {
            return None;
        }
        // SAFETY: others may change the file meanwhile. Its bytes are taken for what they are at the moment,
        // through bounds that do not depend on them, and what is gone reads as zeros.
        let map = unsafe { MmapOptions::new().offset(self.at).len(length).map(&self.file) };
        let part = map.ok().and_then(Part::new);
        self.is_lost |= part.is_none();
        part
    }

    /// Unmaps the part at hand.
    fn forget(&mut self) {
        self.is_lost |= self.part.take().is_some_and(|part| part.watched.is_lost());
    }

    /// Whether bytes were gone before they were read, so that zeros were handed out in their place. The part
    /// at hand is unmapped.
    pub fn is_lost(&mut self) -> bool {
        self.forget();
        // The rest of a page after the file's new end is zeros without a signal.
        let bytes = self.file.metadata().map_or(0, |metadata| metadata.len());
        self.is_lost || bytes < self.bytes
    }
}

impl Part {
    /// `None`: it cannot be watched.
    fn new(map: Mmap) -> Option<Part> {
        // Only advice: reading works without it, too.
        let _ = map.advise(Advice::Sequential);
        Some(Part { watched: Watched::new(&map)?, map, used: 0 })
    }

    fn left(&self) -> usize {
        self.map.len() - self.used
    }

    fn next(&mut self, wanted: usize) -> &[u8] {
        let from = self.used;
        self.used += wanted.min(self.left());
        self.map.get(from..self.used).unwrap_or_default()
    }
}

/// Brings bytes into the processor's cache, by a look at each line of it.
fn bring_in(bytes: &[u8]) {
    let (lines, _) = bytes.as_chunks::<CACHE_LINE>();
    lines.iter().for_each(|[first, ..]| {
        // SAFETY: a reference can be read. Volatile, since nobody uses what is read.
        unsafe { std::ptr::read_volatile(first) };
    });
}

impl Read for Mapped {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.next(out.len()).read(out)
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::process::ExitStatusExt;
    use std::path::PathBuf;
    use std::process::Command;

    const WINDOW: usize = 64 << 10;

    /// A file of two windows.
    fn file(name: &str) -> PathBuf {
        let name = format!("walstat-mapped-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, vec![7; 2 * WINDOW]).expect("a file written");
        path
    }

    fn cut(path: &Path, bytes: u64) {
        let file = File::options().write(true).open(path).expect("the file");
        file.set_len(bytes).expect("a shorter file");
    }

    #[test]
    fn bytes_come_in_windows() {
        let path = file("windows");
        let mut mapped = Mapped::open(&path, 100).expect("a file").expect("of a local file system");
        assert_eq!(mapped.next(WINDOW), vec![7; WINDOW]);
        assert_eq!(mapped.next(WINDOW), vec![7; WINDOW - 100]);
        assert!(mapped.next(WINDOW).is_empty());
        assert!(!mapped.is_lost());
        fs::remove_file(path).expect("the file");
    }

    #[test]
    fn what_is_gone_is_zeros_and_lost() {
        for (name, left) in [("page", WINDOW + 4096), ("in-page", WINDOW + 5000), ("all", 0)] {
            let path = file(name);
            let mut mapped = Mapped::open(&path, 0).expect("a file").expect("a local one");
            assert_eq!(mapped.next(WINDOW), vec![7; WINDOW]);
            cut(&path, left as u64);
            let window = mapped.next(WINDOW);
            let (there, gone) = window.split_at(left.saturating_sub(WINDOW));
            assert!(there.iter().all(|byte| *byte == 7) && gone.iter().all(|byte| *byte == 0));
            assert_eq!(window.len(), WINDOW);
            assert!(mapped.is_lost(), "{name}");
            fs::remove_file(path).expect("the file");
        }
    }

    /// What is no mapping of this module's ends the process as ever.
    #[test]
    #[cfg_attr(
        target_arch = "aarch64",
        ignore = "an emulator does not start this program once more"
    )]
    fn other_bus_errors_are_what_they_were() {
        const IN_CHILD: &str = "WALSTAT_TEST_BUS_ERROR";
        if std::env::var_os(IN_CHILD).is_some() {
            let path = file("foreign");
            Mapped::open(&path, 0).expect("a file").expect("a local one").next(WINDOW);
            let file = File::open(&path).expect("the file");
            // SAFETY: nobody else knows the file; that it ends is what is tested.
            let map = unsafe { Mmap::map(&file) }.expect("a mapping");
            cut(&path, 0);
            fs::remove_file(path).expect("the file");
            bring_in(&map);
            return;
        }
        let program = std::env::current_exe().expect("this program");
        let name = "mapped::tests::other_bus_errors_are_what_they_were";
        let status = Command::new(program)
            .args(["--exact", name])
            .env(IN_CHILD, "1")
            .output()
            .expect("it runs")
            .status;
        assert_eq!(status.signal(), Some(libc::SIGBUS), "{status}");
    }
}
