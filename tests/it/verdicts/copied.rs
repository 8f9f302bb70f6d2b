//! A file with the bytes of another timeline's for the same segment, in which one of the two begins.

use super::recovered::{SEGMENT, history, promoted, store, timeline_1, write};
use super::{check, is_green, told};
use crate::common::record::Rec;
use std::fs;

/// Its records go on behind the segment, where those of the right file do not: the next file is as it should
/// be.
#[test]
fn the_copy_is_blamed_and_not_the_next_file() {
    for room in [8, 24, 160, 3000, 9000] {
        let mut left = timeline_1(2, true);
        left.leave_in_segment(room);
        let number = left.at() / SEGMENT;
        let mut older = left.clone();
        older.add(&Rec::data(12_000));
        write(&mut older, 20);
        older.switch();
        let newer = promoted(&left, 1, 2);
        for (from, to) in [(1, 2), (2, 1)] {
            let directory = tempfile::tempdir().expect("a directory");
            let directory = directory.path();
            store(&older, 0, directory);
            store(&newer, left.at(), directory);
            history(directory, 2, &[(1, left.at())]);
            is_green("as it is", directory);
            let [from, to] = [from, to].map(|timeline| format!("{timeline:08X}{number:016X}"));
            fs::copy(directory.join(&from), directory.join(&to)).expect("a copy");
            let told = told(&check(&["--as", "archive"], directory).exits(4));
            let are_its_own = told.iter().all(|(_, file)| *file == to);
            assert!(are_its_own && !told.is_empty(), "{from} as {to}, room {room}: {told:?}");
        }
    }
}
