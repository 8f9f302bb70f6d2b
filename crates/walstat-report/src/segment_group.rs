//! Integrity by group of segments: the first 16 digits of a segment's name, by which archives
//! make directories (256 segments of 16 MB).

use super::model::Problem;
use super::model::checked::SegmentGroup;
use std::collections::BTreeMap;
use walstat_format::segment::{GROUP_DIGITS, NAME_DIGITS};

/// The group of files whose names are no segment's.
const OTHER_FILES: &str = "other files";

/// Groups the segments read and the problems, ascending by name.
pub(crate) fn groups(segments: &[String], problems: &[Problem]) -> Vec<SegmentGroup> {
    let mut groups: BTreeMap<&str, SegmentGroup> = BTreeMap::new();
    let empty = |group: &str| SegmentGroup {
        group: group.to_owned(),
        segments: 0,
        first: None,
        last: None,
        problems: Vec::new(),
    };
    for name in segments {
        let key = key(name);
        let group = groups.entry(key).or_insert_with(|| empty(key));
        group.segments += 1;
        group.first.get_or_insert_with(|| name.clone());
        group.last = Some(name.clone());
    }
    for (index, problem) in problems.iter().enumerate() {
        let key = key(&problem.segment);
        groups.entry(key).or_insert_with(|| empty(key)).problems.push(index);
    }
    groups.into_values().collect()
}

fn key(name: &str) -> &str {
    let digits = name.get(..NAME_DIGITS).filter(|n| n.bytes().all(|b| b.is_ascii_hexdigit()));
    digits.and_then(|digits| digits.get(..GROUP_DIGITS)).unwrap_or(OTHER_FILES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ProblemKind;

    #[test]
    fn a_missing_segment_counts_in_its_group() {
        let names = ["000000010000000000000006", "000000010000000100000001"].map(str::to_owned);
        let problem = |segment: &str| Problem {
            kind: ProblemKind::MissingSegment,
            segment: segment.to_owned(),
            lsn: None,
            offset: None,
            expected: String::new(),
            found: String::new(),
            skipped_bytes: 0,
        };
        let problems = [problem("000000010000000000000007.zst"), problem("junk")];
        let groups = groups(&names, &problems);
        let told: Vec<_> =
            groups.iter().map(|g| (g.group.as_str(), g.segments, g.problems.as_slice())).collect();
        let want: [(&str, usize, &[usize]); 3] =
            [("0000000100000000", 1, &[0]), ("0000000100000001", 1, &[]), ("other files", 0, &[1])];
        assert_eq!(told, want);
    }
}
