//! How far reading has come, on all its threads; and what the system lacked for it.

use crate::input::error::{InputError, Lacking};
use std::io;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far reading has come.
#[derive(Debug, Default)]
pub struct Progress {
    read_bytes: AtomicU64,
    /// The first thing that was lacking. Whatever is told of files from then on says nothing of them.
    lacking: OnceLock<Lacking>,
}

impl Progress {
    /// Bytes read so far.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Takes note of an error, if it says nothing of the file.
    pub(crate) fn note_error(&self, path: &Path, error: &io::Error) {
        if let Some(lacking) = Lacking::of(path, error) {
            // Of several, the first is enough.
            let _ = self.lacking.set(lacking);
        }
    }

    /// Ends reading where something was lacking.
    pub(crate) fn fail_if_lacking(&self) -> Result<(), InputError> {
        self.lacking.get().map_or(Ok(()), |lacking| Err(lacking.clone().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::discover::discover;
    use crate::input::probe::{NotWal, Probe};
    use crate::input::problem::ProblemKind;
    use crate::input::source::KeptBytes;
    use crate::scan::observer::Observer;
    use crate::scan::read::read_found;
    use crate::scan::streamed::Wanted;
    use std::num::NonZeroUsize;
    use std::path::PathBuf;

    #[test]
    fn a_packed_file_that_could_not_be_looked_at_is_unpacked_when_it_is_read() {
        let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/pg15-mixed");
        let read = |found| {
            let (one, progress) = (NonZeroUsize::MIN, Progress::default());
            let read = read_found(found, Wanted::default(), one, &progress, &Observer::default());
            read.expect("WAL").1
        };
        let found = discover(&[PathBuf::from(sample)]).expect("files");
        let mut unseen = found.clone();
        let piece = unseen.pieces.get_mut(1).expect("a second one");
        assert!(piece.probe.compressed, "the sample is packed");
        let failed = NotWal::Io("slow down".to_owned());
        piece.probe = Probe::failed(piece.path(), failed);
        let (outcome, want) = (read(unseen), read(found));
        assert_eq!(outcome.problems, want.problems);
        assert_eq!(outcome.books, want.books);
    }

    #[test]
    fn what_the_system_lacks_says_nothing_of_the_file() {
        let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/pg15-mixed");
        let read = |kind: io::ErrorKind| {
            let mut found = discover(&[PathBuf::from(sample)]).expect("files");
            let piece = &mut found.pieces[1];
            let failing = KeptBytes::failing(kind, "no luck".into());
            piece.probe.source = piece.probe.source.kept(failing);
            let (one, progress) = (NonZeroUsize::MIN, Progress::default());
            read_found(found, Wanted::default(), one, &progress, &Observer::default())
        };
        let (_, outcome) = read(io::ErrorKind::Other).expect("the others");
        assert!(outcome.problems.iter().any(|it| it.kind == ProblemKind::Unreadable));
        let error = read(io::ErrorKind::OutOfMemory).expect_err("nothing");
        assert!(error.to_string().ends_with("no luck"), "{error}");
    }
}
