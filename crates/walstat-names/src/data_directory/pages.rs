//! The pages of a relation's main fork, in files of 1 GB or what the server was built with: whole
//! pages only; torn, zeroed and missing ones are counted.

use super::{open, warning};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use walstat_format::data_page::DataPage;
use walstat_format::data_page::checksum::page_checksum;
use walstat_input::control::{Control, PAUSE, State, TRIES};

/// A relation's pages.
pub(super) struct Pages<'c> {
    path: PathBuf,
    control: &'c Control,
}

/// What became of reading them.
#[derive(Debug, Default)]
pub(super) struct PagesRead {
    /// Pages that were given out.
    pub pages: u32,
    /// Whether that is all there is.
    pub is_whole: bool,
    /// What is wrong, each with its file.
    pub warnings: Vec<String>,
}

/// What is wrong with pages of one file.
#[derive(Default)]
struct Faults {
    torn: u32,
    first_torn: u32,
    zero: u32,
    first_zero: u32,
    /// Whether one with content came after the first zero page.
    is_zero_inside: bool,
}

impl<'c> Pages<'c> {
    pub(super) fn new(path: &Path, control: &'c Control) -> Pages<'c> {
        Pages { path: path.to_owned(), control }
    }

    /// Gives every sound page to `visit`.
    pub(super) fn read(&self, mut visit: impl FnMut(u32, &DataPage<'_>)) -> PagesRead {
        let mut outcome = PagesRead { is_whole: true, ..PagesRead::default() };
        for number in 0.. {
            let path = self.file(number);
            match self.read_file(&path, number, &mut visit, &mut outcome) {
                Ok(true) => {}
                Ok(false) => {
                    let bytes =
                        u64::from(self.control.file_pages) * u64::from(self.control.page_bytes);
                    let what = format!("shorter than {bytes} bytes");
                    self.look_beyond(number, &what, &mut outcome);
                    break;
                }
                // A file that is full need not have another one after it.
                Err(error) if error.kind() == ErrorKind::NotFound && number > 0 => {
                    self.look_beyond(number, "missing", &mut outcome);
                    break;
                }
                Err(error) => {
                    outcome.is_whole = false;
                    outcome.warnings.push(warning(&path, error));
                    break;
                }
            }
        }
        outcome
    }

    fn file(&self, number: u32) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        if number > 0 {
            path.push(format!(".{number}"));
        }
        path.into()
    }

    /// There must be no file after one that is not full, or not there.
    fn look_beyond(&self, number: u32, what: &str, outcome: &mut PagesRead) {
        let Some(next) = number.checked_add(1) else { return };
        if self.file(next).exists() {
            outcome.is_whole = false;
            let text = format!("{what}, though the relation goes on after it");
            outcome.warnings.push(warning(&self.file(number), text));
        }
    }

    /// Whether the file is full, so that another one may follow.
    fn read_file(
        &self,
        path: &Path,
        number: u32,
        visit: &mut impl FnMut(u32, &DataPage<'_>),
        outcome: &mut PagesRead,
    ) -> io::Result<bool> {
        let mut file = open(path)?;
        let mut page = vec![0; self.control.page_bytes as usize];
        let mut faults = Faults::default();
        let mut index = 0;
        while index < self.control.file_pages {
            let bytes = read_up_to(&mut file, &mut page)?;
            if bytes < page.len() {
                if bytes > 0 {
                    let text = format!(
                        "found {bytes} bytes at its end, expected whole pages of {}",
                        page.len()
                    );
                    outcome.warnings.push(warning(path, text));
                    outcome.is_whole = false;
                }
                break;
            }
            let Some(block) = self.block(number, index) else { break };
            self.judge(&mut file, &mut page, block, index, &mut faults)?;
            if let Some(sound) = self.sound(&page, block) {
                outcome.pages += 1;
                visit(block, &sound);
            }
            index += 1;
        }
        outcome.is_whole &= faults.torn == 0 && faults.zero == 0;
        outcome.warnings.extend(self.texts(&faults).map(|text| warning(path, text)));
        Ok(index == self.control.file_pages)
    }

    fn block(&self, number: u32, index: u32) -> Option<u32> {
        number.checked_mul(self.control.file_pages)?.checked_add(index)
    }

    /// The page, if it is one and its checksum fits.
    fn sound<'p>(&self, page: &'p [u8], block: u32) -> Option<DataPage<'p>> {
        let sound = DataPage::new(page)?;
        let fits =
            !self.control.data_checksums || page_checksum(page, block) == sound.header().checksum;
        fits.then_some(sound)
    }

    /// Counts a page that is none; reads it again before, where a server may be at work.
    fn judge(
        &self,
        file: &mut File,
        page: &mut [u8],
        block: u32,
        index: u32,
        faults: &mut Faults,
    ) -> io::Result<()> {
        if DataPage::is_zero(page) {
            faults.zero += 1;
            faults.first_zero = if faults.zero == 1 { block } else { faults.first_zero };
            return Ok(());
        }
        faults.is_zero_inside |= faults.zero > 0;
        let place = u64::from(index) * page.len() as u64;
        for _ in 1..TRIES {
            if self.is_stopped() || self.sound(page, block).is_some() {
                break;
            }
            std::thread::sleep(PAUSE);
            file.seek(SeekFrom::Start(place))?;
            read_up_to(file, page)?;
        }
        if self.sound(page, block).is_none() {
            faults.torn += 1;
            faults.first_torn = if faults.torn == 1 { block } else { faults.first_torn };
        }
        Ok(())
    }

    /// Whether all of the cluster is in its files.
    fn is_stopped(&self) -> bool {
        matches!(self.control.state, State::ShutDown | State::ShutDownInRecovery)
    }

    /// What is to be said of the pages of a file. Zeros at the end of a running server's file are
    /// pages that it has not written yet.
    fn texts(&self, faults: &Faults) -> impl Iterator<Item = String> {
        let Faults { torn, first_torn, zero, first_zero, is_zero_inside } = *faults;
        let zeros = zero > 0 && (is_zero_inside || self.is_stopped());
        let torn = (torn > 0).then(|| {
            format!("{torn} damaged or torn pages, the first is block {first_torn}; left out")
        });
        let zeros = zeros
            .then(|| format!("{zero} pages of zeros, the first is block {first_zero}; left out"));
        torn.into_iter().chain(zeros)
    }
}

/// Fills `buffer` as far as the file goes.
fn read_up_to(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
