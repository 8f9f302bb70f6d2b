//! Files whose names resemble those of segments: cut off, with digits too many, or a server's own notes
//! (`archive_status`) in an archive. None is a segment, and no `restore_command` asks for them.

use super::Plan;
use crate::input_kind::InputKind;
use crate::names::first_of;
use walstat_format::segment::{NAME_DIGITS, SegmentName};

/// A name with fewer digits than that is no segment's that was cut: timeline and half of the number.
const CUT_DIGITS_MIN: usize = 16;

impl Plan {
    /// Notes of them: of names that are cut or too long, and of marks of segments newer than all.
    pub(super) fn resembling(&self) -> Vec<String> {
        let name = |of: &[String], what: &str| Some(format!("{}: {what}", first_of(of)?));
        let those = |is: &dyn Fn(&str) -> bool| -> Vec<String> {
            self.other_files.iter().filter(|file| is(file)).cloned().collect()
        };
        let digits = those(&has_wrong_digits);
        let mut files = self.files.values().flatten();
        let are_archives = files.all(|file| file.taken_for == InputKind::Archive);
        let newest = self.files.keys().map(|(_, number)| *number).max();
        let marks = those(&|file| are_archives && self.marked(file) > newest);
        let of_digits = name(&digits, "not read: a segment's name has 24 digits");
        let of_marks = name(
            &marks,
            "not read: marks of archive_status, for segments newer than all that there are",
        );
        of_digits.into_iter().chain(of_marks).collect()
    }

    /// The segment that a file of this name marks, as a server does in `archive_status`.
    fn marked(&self, file: &str) -> Option<u64> {
        let (segment, _) =
            file.rsplit_once('.').filter(|(_, suffix)| matches!(*suffix, "ready" | "done"))?;
        SegmentName::parse(segment)?.number(self.geometry.segment_bytes)
    }
}

/// Whether a name is that of a segment with too few digits or too many, whatever suffix follows, but for that
/// of WAL-G's lists of segments, which has all digits but the last.
fn has_wrong_digits(file: &str) -> bool {
    if file.ends_with(".json") {
        return false;
    }
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'A'..=b'F');
    let digits = file.bytes().take_while(|byte| is_digit(*byte)).count();
    let is_ended = matches!(file.as_bytes().get(digits), None | Some(b'.'));
    is_ended && digits >= CUT_DIGITS_MIN && digits != NAME_DIGITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_wrong_length_are_told_apart() {
        for name in
            ["0000000100000000000000", "0000000100000000000000071", "00000001000000000000000.gz"]
        {
            assert!(has_wrong_digits(name), "{name}");
        }
        for name in [
            "000000010000000000000007",
            "00000002.history",
            "000000010000000000000007.bak",
            "12345678",
            "00000001000000000000003.json",
        ] {
            assert!(!has_wrong_digits(name), "{name}");
        }
    }
}
