//! Whether another program has a file open to write to it: what packs a segment writes in bursts, seconds
//! apart.

use std::path::Path;

/// Which signal is sent (`include/uapi/asm-generic/fcntl.h`); the crate `libc` does not have it.
#[cfg(target_os = "linux")]
const F_SETSIG: libc::c_int = 10;

/// Whether somebody has a file of this machine open for writing. Known only on Linux, to the file's owner and
/// to root.
#[cfg(target_os = "linux")]
pub fn is_open_for_writing(path: &Path) -> bool {
    use std::fs::File;
    use std::io::{Error, ErrorKind};
    use std::os::fd::AsRawFd;
    let Ok(file) = File::open(path) else { return false };
    // A lease for reading is not given while the file is open for writing. Whoever opens it in the moments in
    // which there is one makes the kernel send a signal: one that does nothing unless it is handled.
    // SAFETY: the descriptor is open, and no memory is passed.
    let lease = unsafe {
        libc::fcntl(file.as_raw_fd(), F_SETSIG, libc::SIGURG);
        libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK)
    };
    lease == -1 && Error::last_os_error().kind() == ErrorKind::WouldBlock
}

/// The same where nothing tells.
#[cfg(not(target_os = "linux"))]
pub fn is_open_for_writing(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::is_open_for_writing;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_writer_is_seen_until_it_closes_the_file() {
        let path = std::env::temp_dir().join(format!("walstat-writers-{}", std::process::id()));
        let file = std::fs::File::create(&path).expect("a file");
        let while_open = is_open_for_writing(&path);
        drop(file);
        let after = is_open_for_writing(&path);
        std::fs::remove_file(path).expect("removed");
        assert_eq!((while_open, after), (true, false));
    }
}
