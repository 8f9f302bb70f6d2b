//! What the program was given open, under all the names that it has: standard input and output, the pipes of
//! a shell (`<(…)`, `>(…)`), which bash and zsh call differently, and files.

use std::fs;
use std::path::Path;

/// The path that means standard input, and standard output where something is written.
pub const STANDARD_INPUT: &str = "-";

/// Where the system lists what a program has open.
const FOLDERS: [&str; 2] = ["/dev/fd", "/proc/self/fd"];
/// What has a name of its own, by number.
const STANDARD: [&str; 3] = ["/dev/stdin", "/dev/stdout", "/dev/stderr"];

/// The number under which the program has open what a path names; `None`: it would have to be opened.
pub fn descriptor(path: &Path) -> Option<u32> {
    let standard = (0..).zip(STANDARD).find(|(_, name)| path == Path::new(name));
    let listed = || {
        let mut inside = FOLDERS.iter().filter_map(|folder| path.strip_prefix(folder).ok());
        inside.find_map(|number| number.to_str()?.parse().ok())
    };
    standard.map(|(number, _)| number).or_else(listed)
}

/// Whether what a path names can be read only once.
pub fn is_read_once(path: &Path) -> bool {
    let is_pipe =
        || fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
    path == Path::new(STANDARD_INPUT) || descriptor(path).is_some() && is_pipe()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_are_known() {
        let of = |path: &str| descriptor(Path::new(path));
        assert_eq!(["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].map(of), [Some(0); 3]);
        assert_eq!(["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].map(of), [Some(1); 3]);
        assert_eq!(["/dev/stderr", "/dev/fd/2"].map(of), [Some(2); 2]);
        assert_eq!(["/dev/fd/63", "/proc/self/fd/12"].map(of), [Some(63), Some(12)]);
        let others = ["-", "stdin", "/dev/null", "/dev/fd", "/dev/fd/x", "/dev/fd/3/pg_wal"];
        assert_eq!(others.map(of), [None; 6]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pipe_is_read_once_and_a_file_again() {
        use std::os::fd::AsRawFd;
        let (pipe, _writer) = std::io::pipe().expect("a pipe");
        let file = fs::File::open("Cargo.toml").expect("a file");
        let folder = fs::File::open(".").expect("a folder");
        for listed in FOLDERS {
            let of = |number| is_read_once(Path::new(&format!("{listed}/{number}")));
            assert!(of(pipe.as_raw_fd()), "{listed}");
            assert!(!of(file.as_raw_fd()) && !of(folder.as_raw_fd()), "{listed}");
        }
        assert!(is_read_once(Path::new(STANDARD_INPUT)));
        assert!(!is_read_once(Path::new("Cargo.toml")) && !is_read_once(Path::new("/dev/null")));
    }
}
