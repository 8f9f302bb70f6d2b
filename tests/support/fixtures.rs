//! The samples under `tests/fixtures`: what `sample.toml` says, and their WAL, unpacked once for
//! all test programs. See `tests/fixtures/README.md`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// One sample of real WAL with the official answers beside it.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Its name, that of its folder.
    pub name: String,
    /// The release that wrote it: `9.5` … `19`.
    pub release: String,
    /// The timeline of the range.
    pub timeline: String,
    /// Start of the range.
    pub start: String,
    /// End of the range.
    pub end: String,
    /// Name of the first segment.
    pub first_segment: String,
    /// Whether there are goldens without a range.
    pub all_stats: bool,
    /// The folder with the goldens.
    pub golden: PathBuf,
    /// The folder with the WAL.
    pub wal: PathBuf,
}

/// `tests/fixtures`.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// The names of all samples, by what lies in the folder.
pub fn sample_names() -> Vec<String> {
    let entries = fs::read_dir(fixtures()).expect("tests/fixtures can be read");
    let folders = entries.map(|entry| entry.expect("an entry of tests/fixtures").path());
    let mut names: Vec<String> = folders
        .filter(|path| path.join("sample.toml").is_file())
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    names
}

/// All samples, unpacked.
pub fn samples() -> Vec<Sample> {
    let names = sample_names();
    assert!(names.len() >= 12, "one sample for each release at least, found {names:?}");
    names.iter().map(|name| sample(name)).collect()
}

/// One sample, unpacked.
pub fn sample(name: &str) -> Sample {
    let golden = fixtures().join(name);
    let facts = facts(&golden.join("sample.toml"));
    let fact = |key: &str| match facts.get(key) {
        Some(value) => value.clone(),
        None => panic!("{name}/sample.toml has no {key}"),
    };
    let wal = match fact("archive").as_str() {
        "" => golden.clone(),
        archive => unpacked(archive).join(name),
    };
    Sample {
        name: name.to_owned(),
        release: fact("release"),
        timeline: fact("timeline"),
        start: fact("start"),
        end: fact("end"),
        first_segment: fact("first_segment"),
        all_stats: fact("all_stats") == "true",
        golden,
        wal,
    }
}

impl Sample {
    /// The options of the sample's range.
    pub fn range(&self) -> [&str; 6] {
        ["-t", &self.timeline, "-s", &self.start, "-e", &self.end]
    }

    /// A golden's text.
    pub fn golden(&self, file: &str) -> String {
        let path = self.golden.join(file);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Whether the official answers are texts (else they are the rows of `wal-stats.tsv`).
    pub fn has_texts(&self) -> bool {
        self.golden.join("stats.txt").is_file()
    }

    /// The path of a file of the sample's WAL, compressed or not.
    pub fn segment(&self, name: &str) -> PathBuf {
        let suffixes = ["", ".zst", ".partial", ".partial.zst"];
        let mut paths = suffixes.iter().map(|suffix| self.wal.join(format!("{name}{suffix}")));
        paths.find(|path| path.is_file()).unwrap_or_else(|| self.wal.join(name))
    }

    /// The names of all segments, ascending.
    pub fn segments(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.wal).expect("the sample's folder can be read");
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut names: Vec<String> = names
            .filter_map(|name| name.get(..24).filter(|head| hex(head)).map(str::to_owned))
            .collect();
        names.sort();
        names
    }
}

/// `key = value` lines; quotes around a text are taken off.
fn facts(path: &Path) -> BTreeMap<String, String> {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.split_once(" = "));
    pairs.map(|(key, value)| (key.to_owned(), value.trim_matches('"').to_owned())).collect()
}

/// The folder of an unpacked archive. Its name holds a checksum of the archive, so that a changed
/// one is unpacked anew; it appears by one rename, so that test programs that run at once do not
/// see half of it.
pub fn unpacked(archive: &str) -> PathBuf {
    let path = fixtures().join(archive);
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fixtures");
    let target = root.join(format!("{:08x}", crc32c::crc32c(&bytes)));
    if target.is_dir() {
        return target;
    }
    fs::create_dir_all(&root).expect("a folder for the unpacked fixtures");
    let half = tempfile::tempdir_in(&root).expect("a folder for one archive");
    let decoder = zstd::Decoder::new(bytes.as_slice()).expect("a zstd decoder");
    tar::Archive::new(decoder)
        .unpack(half.path())
        .unwrap_or_else(|error| panic!("{archive}: {error}"));
    let half = half.keep();
    if let Err(error) = fs::rename(&half, &target) {
        // Another test was faster: its folder holds the same.
        assert!(target.is_dir(), "{}: {error}", target.display());
        fs::remove_dir_all(&half).expect("the second copy can be removed");
    }
    target
}
