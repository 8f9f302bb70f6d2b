//! Segments as they lie on a disk: to be spoiled, cut, mixed up and written to files.

use super::builder::Form;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use walstat_format::lsn::Lsn;
use walstat_format::segment::SegmentName;

/// Segment files by segment number.
#[derive(Debug, Clone)]
pub struct Disk {
    /// Sizes and release.
    pub form: Form,
    /// The files.
    pub files: BTreeMap<u64, Vec<u8>>,
}

impl Disk {
    /// Reads the segments of a directory; the form is that of the first one.
    pub fn read(directory: &Path, form: Form) -> Disk {
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let name = name.strip_suffix(".partial").unwrap_or(name);
            let number = SegmentName::parse(name).and_then(|n| n.number(form.segment as u32));
            if let Some(number) = number {
                files.insert(number, fs::read(&path).expect("a segment"));
            }
        }
        Disk { form, files }
    }

    /// The first byte of the first file.
    pub fn start(&self) -> Lsn {
        Lsn(self.files.keys().next().expect("a segment") * self.form.segment)
    }

    /// Behind the last byte of the last file, were it whole.
    pub fn end(&self) -> Lsn {
        Lsn((self.files.keys().last().expect("a segment") + 1) * self.form.segment)
    }

    /// Bytes of all files.
    pub fn total(&self) -> u64 {
        self.files.values().map(|file| file.len() as u64).sum()
    }

    /// The bytes of a file from `lsn` on.
    pub fn from(&mut self, lsn: Lsn) -> &mut [u8] {
        let segment = self.form.segment;
        let file = self.files.get_mut(&(lsn.0 / segment)).expect("a segment there");
        &mut file[(lsn.0 % segment) as usize..]
    }

    /// `bytes` bytes at `lsn`, all of them in one file.
    pub fn at(&mut self, lsn: Lsn, bytes: usize) -> &mut [u8] {
        &mut self.from(lsn)[..bytes]
    }

    /// The page in which `lsn` lies.
    pub fn page(&mut self, lsn: Lsn) -> &mut [u8] {
        let page = self.form.page;
        self.at(Lsn(lsn.0 / page * page), page as usize)
    }

    /// Leaves out a segment.
    pub fn without(mut self, number: u64) -> Disk {
        self.files.remove(&number).expect("a segment to leave out");
        self
    }

    /// Cuts off the file at `lsn`.
    pub fn cut(mut self, lsn: Lsn) -> Disk {
        let segment = self.form.segment;
        let file = self.files.get_mut(&(lsn.0 / segment)).expect("a segment there");
        file.truncate((lsn.0 % segment) as usize);
        self
    }

    /// Appends a segment with the content of segment `old`: renamed by the server, and not yet
    /// written to.
    pub fn recycled(mut self, old: u64) -> Disk {
        let content = self.files.get(&old).expect("a segment to recycle").clone();
        let number = self.files.keys().last().expect("a segment") + 1;
        self.files.insert(number, content);
        self
    }

    /// Appends a segment of zeros: made by the server, and not yet written to.
    pub fn preallocated(mut self) -> Disk {
        let number = self.files.keys().last().expect("a segment") + 1;
        self.files.insert(number, vec![0; self.form.segment as usize]);
        self
    }

    /// From the page of `lsn` on, the file has the content of segment `old`: it was recycled,
    /// and is written to that point.
    pub fn stale_from(mut self, lsn: Lsn, old: u64) -> Disk {
        let offset = (lsn.0 % self.form.segment) as usize;
        let content = self.files.get(&old).expect("a segment to recycle")[offset..].to_vec();
        self.from(lsn).copy_from_slice(&content);
        self
    }

    /// The file of a segment in `directory`. The last one, if it is cut off, is a `.partial`: under
    /// its full name it would promise the whole segment.
    pub fn path(&self, directory: &Path, number: u64) -> PathBuf {
        let Form { timeline, segment, .. } = self.form;
        let name = SegmentName::new(timeline, number, segment as u32).to_string();
        let last = self.files.last_key_value().filter(|(last, _)| **last == number);
        let partial = last.is_some_and(|(_, bytes)| (bytes.len() as u64) < segment);
        directory.join(if partial { format!("{name}.partial") } else { name })
    }

    /// Writes all files into a directory of its own.
    pub fn write(&self) -> TempDir {
        let directory = TempDir::new().expect("a directory");
        for number in self.files.keys() {
            self.write_segment(directory.path(), *number);
        }
        directory
    }

    /// Writes one file.
    pub fn write_segment(&self, directory: &Path, number: u64) {
        fs::write(self.path(directory, number), &self.files[&number]).expect("a file written");
    }
}
