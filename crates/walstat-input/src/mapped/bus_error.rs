//! What is done when a file ends or fails under its mapping, on Linux: the kernel sends SIGBUS to the thread
//! that touched the page, and zeros are put in the place of the rest of the mapping. A signal that has
//! nothing to do with a mapping of this module does what it would do without it.
//!
//! The handler may run at any time, so it only uses atomics and system calls.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use rustix::param::page_size;
use std::fs::File;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// So many mappings are watched at a time at most: one for each thread.
const SLOTS: usize = 256;

/// File systems whose files are mapped: those that lie on this machine and use the page cache, by their
/// numbers in `linux/magic.h`.
const LOCAL: [i64; 6] = [
    0xEF53,      // ext2 to ext4
    0x5846_5342, // XFS
    0x9123_683E, // Btrfs
    0xF2F5_2010, // F2FS
    0x0102_1994, // tmpfs
    0x794C_7630, // overlayfs
];

static WATCHING: [Slot; SLOTS] = [const { Slot::new() }; SLOTS];

/// A mapping that is watched.
struct Slot {
    is_taken: AtomicBool,
    /// Its pages: the number of the first one, and in the lowest [`COUNT_BITS`] how many they are. One
    /// number, so that the handler never sees half of a change. 0: nothing is watched.
    pages: AtomicU64,
    is_lost: AtomicBool,
}

/// Enough for 64 GB.
const COUNT_BITS: u32 = 24;

/// Addresses, from that of a page on.
type Addresses = Range<usize>;

impl Slot {
    const fn new() -> Slot {
        Slot {
            is_taken: AtomicBool::new(false),
            pages: AtomicU64::new(0),
            is_lost: AtomicBool::new(false),
        }
    }

    fn watch(&self, addresses: Addresses) {
        let page = page_size();
        let (first, end) = (addresses.start / page, addresses.end.div_ceil(page));
        self.pages.store((first as u64) << COUNT_BITS | (end - first) as u64, Ordering::Release);
    }

    fn watched(&self) -> Addresses {
        let (pages, page) = (self.pages.load(Ordering::Acquire), page_size());
        let first = (pages >> COUNT_BITS) as usize;
        let count = (pages & ((1 << COUNT_BITS) - 1)) as usize;
        first * page..(first + count) * page
    }
}

/// A mapping that is watched as long as this lives.
pub(super) struct Watched(&'static Slot);

impl Watched {
    /// Watches a mapping; `None`: too many are watched.
    pub(super) fn new(map: &[u8]) -> Option<Watched> {
        let is_free = |slot: &&Slot| !slot.is_taken.swap(true, Ordering::AcqRel);
        let slot = WATCHING.iter().find(is_free)?;
        slot.is_lost.store(false, Ordering::Release);
        let start = map.as_ptr().addr();
        slot.watch(start..start + map.len());
        Some(Watched(slot))
    }

    /// Whether a part of it was gone when it was read.
    pub(super) fn is_lost(&self) -> bool {
        self.0.is_lost.load(Ordering::Acquire)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.pages.store(0, Ordering::Release);
        self.0.is_taken.store(false, Ordering::Release);
    }
}

/// Whether a file may be mapped: it lies on this machine, and its mapping can be watched.
pub(super) fn can_watch(file: &File) -> bool {
    let is_local = rustix::fs::fstatfs(file).is_ok_and(|system| LOCAL.contains(&system.f_type));
    is_local && BEFORE.get_or_init(install).is_some()
}

/// What SIGBUS did before the handler was installed; `None` in it: it could not be.
static BEFORE: OnceLock<Option<libc::sigaction>> = OnceLock::new();

/// Installs the handler and returns what was done before.
fn install() -> Option<libc::sigaction> {
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_bus_error;
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: all zeros are a sigaction; the handler has the form that SA_SIGINFO asks for.
    let done = unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGBUS, &raw const action, before.as_mut_ptr())
    };
    // SAFETY: initialised above, and filled by the call if it succeeded.
    (done == 0).then(|| unsafe { before.assume_init() })
}

extern "C" fn on_bus_error(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel hands over the address that was touched.
    let address = unsafe { (*info).si_addr() }.addr();
    let of_mapping =
        |slot: &Slot| Some(slot.watched()).filter(|watched| watched.contains(&address));
    let found = WATCHING.iter().find_map(|slot| Some((slot, of_mapping(slot)?)));
    if found.is_some_and(|(slot, watched)| put_zeros(slot, address..watched.end)) {
        return;
    }
    // Not of a mapping here. It is touched once more, and what was done before is done.
    // SAFETY: a sigaction that was there before; all zeros are the default.
    unsafe {
        let default = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        let before = BEFORE.get().and_then(Option::as_ref).unwrap_or(&default);
        libc::sigaction(libc::SIGBUS, std::ptr::from_ref(before), std::ptr::null_mut());
    }
}

/// Puts zeros in the place of a part of a mapping.
fn put_zeros(slot: &Slot, gone: Addresses) -> bool {
    let first = gone.start / page_size() * page_size();
    // SAFETY: these pages belong to the mapping of the slot, which is not unmapped while it is watched, and
    // which nobody writes to.
    let mapped = unsafe {
        let place = std::ptr::with_exposed_provenance_mut(first);
        mmap_anonymous(
            place,
            gone.end - first,
            ProtFlags::READ,
            MapFlags::PRIVATE | MapFlags::FIXED,
        )
    };
    slot.is_lost.store(true, Ordering::Release);
    mapped.is_ok()
}
