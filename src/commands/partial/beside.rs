//! What a partial result has beside the counts, so that a merge opens no file: what stands in the files that
//! options name, and what the data directory tells. A partial result may come from anybody, and no path in
//! it is followed.

use crate::args::StatsArgs;
use crate::config;
use crate::failure::Failure;
use crate::output::tell;
use crate::render::visible::visible;
use serde::{Deserialize, Serialize};
use walstat_format::crc::Crc32c;
use walstat_names::names_file;
use walstat_report::known::Directory;

/// What was read beside the WAL.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Beside {
    /// Files of names: how they are called, and their bytes.
    names: Vec<(String, Vec<u8>)>,
    /// The file of settings of walstat.
    config: Option<(String, String)>,
    /// The data directory, given or that of the WAL.
    pub directory: Option<Directory>,
}

/// How something is called in one partial result, and how in another.
pub type Difference = (String, String);

impl Beside {
    /// Reads the files that `args` name.
    pub fn of(args: &StatsArgs) -> Result<Beside, Failure> {
        let mut warnings = Vec::new();
        let named = args.names.names.iter();
        let named = named.filter_map(|path| {
            Some((path.display().to_string(), names_file::bytes_of(path, &mut warnings)?))
        });
        let names = named.collect();
        warnings.iter().for_each(|warning| tell(&format!("walstat: {}", visible(warning))));
        let config = args.config.config.as_ref().map(|path| {
            let failed = |error| Failure::Usage(format!("{}: {error}", path.display()));
            let text = config::text_of(path).map_err(failed)?;
            Ok::<_, Failure>((path.display().to_string(), text))
        });
        Ok(Beside { names, config: config.transpose()?, directory: None })
    }

    /// Without that instead of which a merge was given something.
    pub fn without_given(mut self, given: &StatsArgs) -> Beside {
        if !given.names.names.is_empty() {
            self.names.clear();
        }
        if given.config.config.is_some() {
            self.config = None;
        }
        if given.names.data_directory.is_some() {
            self.directory = None;
        }
        self
    }

    /// Adds what another partial result has: the same, where both have something.
    ///
    /// # Errors
    ///
    /// What `other` has, and what was expected.
    pub fn join(&mut self, other: Beside) -> Result<(), Difference> {
        if self.names.is_empty() {
            self.names = other.names;
        } else if !other.names.is_empty() {
            same(names_text(&other.names), names_text(&self.names))?;
        }
        self.config = match (self.config.take(), other.config) {
            (Some(ours), Some(theirs)) => {
                let text =
                    |(path, text): &(String, String)| option("config", path, text.as_bytes());
                same(text(&theirs), text(&ours))?;
                Some(ours)
            }
            (ours, theirs) => ours.or(theirs),
        };
        self.directory = match (self.directory.take(), other.directory) {
            (Some(ours), Some(theirs)) => {
                Some(ours.later(theirs).map_err(|(ours, theirs)| (theirs, ours))?)
            }
            (ours, theirs) => ours.or(theirs),
        };
        Ok(())
    }

    /// Has the arguments of a merge use it, and what was given to the merge itself before it.
    pub fn give_to(self, args: &mut StatsArgs, given: &StatsArgs) -> Option<Directory> {
        args.names.data_directory.clone_from(&given.names.data_directory);
        args.names.names.clone_from(&given.names.names);
        args.config.config.clone_from(&given.config.config);
        args.names.contents = self.names;
        args.config.content = self.config;
        self.directory
    }
}

fn same(found: String, expected: String) -> Result<(), Difference> {
    if found == expected { Ok(()) } else { Err((found, expected)) }
}

fn names_text(files: &[(String, Vec<u8>)]) -> String {
    let each: Vec<String> =
        files.iter().map(|(path, bytes)| option("names", path, bytes)).collect();
    each.join(" ")
}

/// An option that names a file, with what tells its content.
fn option(name: &str, path: &str, content: &[u8]) -> String {
    let checksum = Crc32c::finish(Crc32c::detect().update(Crc32c::START, content));
    format!("--{name}={path} (checksum 0x{checksum:08X})")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside(names: &[(&str, &str)], config: Option<&str>) -> Beside {
        let bytes = |(path, text): &(&str, &str)| ((*path).to_owned(), text.as_bytes().to_vec());
        let config = config.map(|text| ("c.toml".to_owned(), text.to_owned()));
        Beside { names: names.iter().map(bytes).collect(), config, directory: None }
    }

    #[test]
    fn what_one_has_is_that_of_all() {
        let full = || beside(&[("a.csv", "x")], Some("y"));
        for (first, second) in [(Beside::default(), full()), (full(), Beside::default())] {
            let mut joined = first;
            joined.join(second).expect("no difference");
            joined.join(full()).expect("the same");
            assert_eq!((joined.names, joined.config), (full().names, full().config));
        }
    }

    #[test]
    fn other_files_are_told_with_both() {
        let mut ours = beside(&[("a.csv", "x")], Some("y"));
        let told = ours.clone().join(beside(&[("b.csv", "x")], None)).expect_err("other names");
        assert!(told.0.starts_with("--names=b.csv (checksum"), "{told:?}");
        assert!(told.1.starts_with("--names=a.csv (checksum"), "{told:?}");
        let (found, expected) = ours.join(beside(&[], Some("z"))).expect_err("another text");
        assert!(found.starts_with("--config=c.toml (checksum 0x") && found != expected, "{found}");
    }
}
