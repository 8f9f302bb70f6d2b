//! The rows: what is done to an archive in which packing, and what a restore makes of it.

use std::fmt;

use super::archive::Packing;

use Packing::{Bzip2, Gzip, Lz4, Raw, Xz, Zstd};

/// What is wanted of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// A restore reaches the end, and the check is green.
    Sound,
    /// It does not, and the check is red.
    Damaged,
    /// It ends earlier, and nothing in the archive has promised more: the check is green.
    Shorter,
}

/// One row.
pub struct Row {
    /// What is wanted.
    pub want: Want,
    /// Of an archive so packed.
    pub packing: Packing,
    /// To which this is done.
    pub operations: Vec<String>,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}: {}", self.want, self.packing, self.operations.join(", "))
    }
}

const ALL: &[Packing] = &[Raw, Gzip, Zstd, Xz, Bzip2, Lz4];
const PACKED: &[Packing] = &[Gzip, Zstd, Xz, Bzip2, Lz4];

/// Operations that every place and packing has a part of: `*` is the place.
const ANYWHERE: [(&str, &[Packing]); 14] = [
    ("* missing", &[Raw, Gzip]),
    ("* zeros 0 8192", &[Raw, Gzip, Zstd, Xz]),
    ("* flip 0", &[Raw, Zstd]),
    ("* flip 9", &[Raw, Lz4]),
    ("* cut 500000", &[Raw, Gzip, Lz4]),
    ("* grow 8192", &[Raw, Zstd]),
    ("* stored-empty", ALL),
    ("* stored-cut 50", PACKED),
    ("* stored-short", PACKED),
    ("* stored-flip", PACKED),
    ("* tar", &[Raw]),
    ("* folder", &[Raw, Gzip]),
    ("* nowhere", &[Raw, Zstd]),
    ("* moved old", &[Raw, Gzip]),
];

/// Of a file that is not packed as its name or its neighbours say; `zstd` unpacks what others packed.
const PACKED_OTHERWISE: [(Packing, &str); 12] = [
    (Raw, "gzip"),
    (Raw, "zstd"),
    (Raw, "xz"),
    (Gzip, "cat"),
    (Gzip, "xz"),
    (Gzip, "zstd"),
    (Zstd, "cat"),
    (Xz, "cat"),
    (Xz, "gzip"),
    (Bzip2, "cat"),
    (Lz4, "cat"),
    (Lz4, "gzip"),
];

/// Rows that look odd and are well.
const SOUND: [(&str, &[Packing]); 21] = [
    ("last record insert-at-0 harmless", &[Raw]),
    ("second halves 0 harmless", &[Gzip, Zstd, Xz, Bzip2, Lz4]),
    ("second halves 4 harmless", &[Xz]),
    ("second stored-zeros 512 harmless", &[Gzip, Xz]),
    ("last stored-zeros 4 harmless", &[Gzip, Xz]),
    ("second packed gzip harmless", &[Zstd]),
    ("second packed xz harmless", &[Zstd]),
    ("second link harmless", &[Raw, Gzip]),
    ("beside backup", &[Raw, Gzip]),
    ("beside old-backup", &[Raw]),
    ("beside deep", &[Raw, Zstd]),
    ("beside text", &[Raw]),
    ("beside copy", &[Raw]),
    ("beside partial", &[Raw]),
    ("beside history 900 harmless", &[Raw, Gzip]),
    ("beside history 1000 harmless", &[Raw]),
    // No server gets these, and so none looks for segments of the timeline.
    ("beside history-at 00000002.history.gz gzip", &[Raw, Zstd]),
    ("beside history-at 00000002.history.gz cat", &[Gzip]),
    ("beside history-at 00000002.history.zst gzip", &[Lz4]),
    ("beside history-at old/00000002.history cat", &[Raw]),
    ("last zeros 1040000 1048576 harmless", &[Raw]),
];

/// Rows of one kind.
const DAMAGED: [(&str, &[Packing]); 32] = [
    ("second record insert-of-other-id", &[Raw, Gzip]),
    ("third record leaf-of-other-id", &[Raw]),
    ("third record insert-at-5000", &[Raw, Zstd]),
    ("second record insert-into-file-0", &[Raw]),
    ("last record insert-to-be-compared", &[Raw]),
    ("second record insert-with-broken-image", &[Raw]),
    ("second record insert-with-short-image", &[Raw]),
    ("second record insert-marked", &[Raw, Gzip]),
    ("second record insert-of-image-marked", &[Raw]),
    ("third record insert-unmarked", &[Raw]),
    ("second record split-unmarked", &[Raw]),
    ("second stored-zeros 2", &[Xz]),
    ("last stored-zeros 6", &[Xz]),
    ("second halves 2", &[Xz]),
    ("second halves 512", &[Gzip]),
    ("second stored-text", &[Gzip, Zstd, Xz]),
    ("last stored-text", &[Gzip, Zstd]),
    // Which a server that reads ahead ends before.
    ("second timeline 0", &[Raw]),
    ("second timeline 8192", &[Raw]),
    ("third timeline 0", &[Raw, Gzip]),
    ("third timeline 524288", &[Raw]),
    ("third content second", &[Raw, Gzip]),
    ("last content second", &[Raw, Zstd]),
    ("second named-cut .zstd zstd", &[Zstd]),
    ("second named .zstd", &[Zstd]),
    ("last named .gzip", &[Gzip]),
    ("third named .XZ", &[Xz]),
    ("last named-cut .zstd zstd", &[Zstd]),
    ("last named-cut .GZ gzip", &[Gzip]),
    ("last named-cut .LZ4 lz4", &[Lz4]),
    ("beside history 1100", &[Raw, Gzip]),
    ("beside minimal", &[Raw, Gzip]),
];

/// All of them.
pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |want: Want, packing: Packing, operation: &str| {
        let operations = match operation {
            "" => Vec::new(),
            operation => vec![operation.to_owned()],
        };
        rows.push(Row { want, packing, operations });
    };
    for &packing in ALL {
        add(Want::Sound, packing, "");
        add(Want::Shorter, packing, "last missing");
    }
    for (operation, packings) in SOUND {
        packings.iter().for_each(|packing| add(Want::Sound, *packing, operation));
    }
    for (number, (operation, packings)) in ANYWHERE.into_iter().enumerate() {
        for (nth, packing) in packings.iter().enumerate() {
            // Each packing at one place or two, so that all places have their turn.
            for place in [["second", "last"], ["third", "last"]][(number + nth) % 2] {
                let operation = operation.replace('*', place);
                if operation != "last missing" {
                    add(Want::Damaged, *packing, &operation);
                }
            }
        }
    }
    for (number, (packing, other)) in PACKED_OTHERWISE.into_iter().enumerate() {
        let place = ["second", "third", "last"][number % 3];
        add(Want::Damaged, packing, &format!("{place} packed {other}"));
    }
    for (operation, packings) in DAMAGED {
        packings.iter().for_each(|packing| add(Want::Damaged, *packing, operation));
    }
    rows
}
