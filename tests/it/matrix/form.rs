//! The forms in which a segment is stored, and what the codec's own tool makes of stored bytes.

use crate::support::pgbackrest;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

/// A codec, with the tool that is asked what a file of it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Codec {
    /// As it is.
    None,
    /// gzip.
    Gzip,
    /// lz4.
    Lz4,
    /// zstd, with its checksum.
    Zstd,
    /// zstd, without.
    BareZstd,
    /// bzip2.
    Bzip2,
    /// xz.
    Xz,
}

/// How a file is named and stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Form {
    /// `SEGMENT` and the codec's suffix.
    Suffixed(Codec),
    /// `archive/demo/15-1/<first 16 digits>/SEGMENT-<sha1>` and the codec's suffix.
    PgBackRest(Codec),
    /// `wals/<first 16 digits>/SEGMENT`, whatever the codec.
    Barman(Codec),
}

impl Codec {
    /// The suffix of its files.
    pub fn suffix(self) -> &'static str {
        match self {
            Codec::None => "",
            Codec::Gzip => ".gz",
            Codec::Lz4 => ".lz4",
            Codec::Zstd | Codec::BareZstd => ".zst",
            Codec::Bzip2 => ".bz2",
            Codec::Xz => ".xz",
        }
    }

    /// The program that decompresses.
    pub fn tool(self) -> Option<&'static str> {
        match self {
            Codec::None => None,
            Codec::Gzip => Some("gzip"),
            Codec::Lz4 => Some("lz4"),
            Codec::Zstd | Codec::BareZstd => Some("zstd"),
            Codec::Bzip2 => Some("bzip2"),
            Codec::Xz => Some("xz"),
        }
    }

    /// Compresses.
    pub fn encode(self, plain: &[u8]) -> Vec<u8> {
        let fits = "a vector takes all";
        match self {
            Codec::None => plain.to_vec(),
            Codec::Gzip => {
                let level = flate2::Compression::fast();
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                encoder.write_all(plain).expect(fits);
                encoder.finish().expect(fits)
            }
            // Linked blocks and the content's checksum, as pgBackRest writes it.
            Codec::Lz4 => run("lz4", &["-q", "-1", "-B4", "-BD", "-c"], plain).expect("lz4 packs"),
            Codec::Zstd | Codec::BareZstd => {
                let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("an encoder");
                encoder.include_checksum(self == Codec::Zstd).expect("a known setting");
                encoder.write_all(plain).expect(fits);
                encoder.finish().expect(fits)
            }
            Codec::Bzip2 => {
                let mut encoder =
                    bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
                encoder.write_all(plain).expect(fits);
                encoder.finish().expect(fits)
            }
            Codec::Xz => {
                let mut packed = Vec::new();
                liblzma::read::XzEncoder::new(plain, 0).read_to_end(&mut packed).expect(fits);
                packed
            }
        }
    }

    /// What a `restore_command` with the codec's own tool brings: nothing where the tool fails.
    pub fn decode(self, stored: &[u8]) -> Option<Vec<u8>> {
        match self.tool() {
            None => Some(stored.to_vec()),
            Some(tool) => run(tool, &["-q", "-d", "-c"], stored),
        }
    }
}

/// Runs a tool on bytes; nothing where it fails.
fn run(tool: &str, options: &[&str], bytes: &[u8]) -> Option<Vec<u8>> {
    let mut command = Command::new(tool);
    command.args(options).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{tool}: {error}"));
    let mut input = child.stdin.take().expect("a pipe");
    let bytes = bytes.to_vec();
    // The tool need not read to the end.
    let feeder = std::thread::spawn(move || drop(input.write_all(&bytes)));
    let output = child.wait_with_output().expect("the tool ends");
    feeder.join().expect("the feeder ends");
    output.status.success().then_some(output.stdout)
}

impl Form {
    /// All forms.
    pub const ALL: [Form; 13] = [
        Form::Suffixed(Codec::None),
        Form::Suffixed(Codec::Gzip),
        Form::Suffixed(Codec::Lz4),
        Form::Suffixed(Codec::Zstd),
        Form::Suffixed(Codec::Bzip2),
        Form::Suffixed(Codec::Xz),
        Form::PgBackRest(Codec::None),
        Form::PgBackRest(Codec::Gzip),
        Form::PgBackRest(Codec::Lz4),
        Form::PgBackRest(Codec::BareZstd),
        Form::Barman(Codec::None),
        Form::Barman(Codec::Gzip),
        Form::Barman(Codec::Xz),
    ];

    /// Plain files, one segment each.
    pub const RAW: Form = Form::Suffixed(Codec::None);

    /// Its codec.
    pub fn codec(self) -> Codec {
        match self {
            Form::Suffixed(codec) | Form::PgBackRest(codec) | Form::Barman(codec) => codec,
        }
    }

    /// For messages.
    pub fn name(self) -> String {
        let suffix = self.codec().suffix().trim_start_matches('.');
        let suffix = if suffix.is_empty() { "raw" } else { suffix };
        match self {
            Form::Suffixed(_) => suffix.to_owned(),
            Form::PgBackRest(_) => format!("pgbackrest-{suffix}"),
            Form::Barman(_) => format!("barman-{suffix}"),
        }
    }

    /// Where a segment is stored; `sha1`: of its content, asked for only where it is in the name.
    pub fn place(self, segment: &str, sha1: impl FnOnce() -> String) -> String {
        let (folder, suffix) = (&segment[..16], self.codec().suffix());
        match self {
            Form::Suffixed(_) => format!("{segment}{suffix}"),
            Form::PgBackRest(_) => {
                format!("archive/demo/15-1/{folder}/{segment}-{}{suffix}", sha1())
            }
            Form::Barman(_) => format!("wals/{folder}/{segment}"),
        }
    }
}

/// Where pgBackRest's list of archive ids lies.
pub const ARCHIVE_INFO: &str = "archive/demo/archive.info";

/// The list that has the cluster of a segment.
pub fn archive_info(segment: &[u8]) -> Vec<u8> {
    let id = segment[24..32].try_into().map(u64::from_le_bytes).expect("eight bytes");
    pgbackrest::archive_info(&["15-1"], id)
}
