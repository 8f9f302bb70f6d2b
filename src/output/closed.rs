//! Whether standard output was closed when the program began. The standard library opens `/dev/null` in its
//! place before `main`, and all that is written to it would be lost without a word.

use std::io;
#[cfg(unix)]
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(unix)]
static IS_CLOSED: AtomicBool = AtomicBool::new(false);

#[cfg(unix)]
ctor::declarative::ctor! {
    // SAFETY: runs before `main`, and before the standard library is ready: it makes one system call and
    // stores a number, and needs nothing of either.
    #[ctor(unsafe)]
    fn look() {
        let is_open = rustix::io::fcntl_getfd(rustix::stdio::stdout()).is_ok();
        IS_CLOSED.store(!is_open, Ordering::Relaxed);
    }
}

/// Fails where there is no standard output.
pub fn check_standard_output() -> io::Result<()> {
    #[cfg(unix)]
    if IS_CLOSED.load(Ordering::Relaxed) {
        return Err(rustix::io::Errno::BADF.into());
    }
    Ok(())
}
