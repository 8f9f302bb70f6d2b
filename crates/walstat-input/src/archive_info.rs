//! archive.info of pgBackRest: the archive ids of a stanza, under a checksum of what is said.

use super::probe::read_text;
use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};
use std::collections::BTreeSet;
use std::path::Path;
use walstat_format::ordered::CollectOrdered;
use walstat_format::page::Geometry;

/// Its name, and that of its copy, which pgBackRest reads where the first is not sound.
pub(super) const NAMES: [&str; 2] = ["archive.info", "archive.info.copy"];

/// The section with all archive ids.
const HISTORY: &str = "db:history";

/// A list whose checksum is right.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ArchiveInfo {
    /// The lines `1={"db-id":...,"db-version":"15"}` of its history.
    entries: Vec<(String, String)>,
}

impl ArchiveInfo {
    /// Reads a list, or says what is wrong with it.
    pub(super) fn read(path: &Path) -> Result<ArchiveInfo, String> {
        let text = read_text(path).map_err(|error| error.to_string())?;
        ArchiveInfo::parse(&String::from_utf8_lossy(&text.bytes))
    }

    /// The checksum is the SHA-1 of `{"section":{"key":value,...},...}` in the order of the file, without
    /// itself (`infoLoadCallback` in pgBackRest's `src/info/info.c`).
    fn parse(text: &str) -> Result<ArchiveInfo, String> {
        let (mut section, mut hashed_section, mut expected) = ("", None, None);
        let (mut hash, mut entries) = (Sha1::new(), Vec::new());
        // To pgBackRest, a line ends in a line feed and nothing else.
        for line in text.split('\n').filter(|line| !line.is_empty()) {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name;
                continue;
            }
            let Some((key, value)) = line.split_once('=') else {
                return Err("a line that is neither a section nor a value".to_owned());
            };
            if (section, key) == ("backrest", "backrest-checksum") {
                let text = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
                expected = Some(text.ok_or("a checksum that is not between quotes")?);
                continue;
            }
            let before = match hashed_section.replace(section) {
                Some(same) if same == section => ",".to_owned(),
                Some(_) => format!("}},\"{section}\":{{"),
                None => format!("{{\"{section}\":{{"),
            };
            hash.update(format!("{before}\"{key}\":{value}"));
            if section == HISTORY {
                entries.push((key.to_owned(), value.to_owned()));
            }
        }
        hash.update("}}");
        let found: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        match expected {
            Some(expected) if *expected == found => Ok(ArchiveInfo { entries }),
            Some(expected) => Err(format!("a list of SHA-1 {found} that says {expected}")),
            None => Err("a list without its checksum".to_owned()),
        }
    }

    /// Whether it has an archive id (`15-1`) for the cluster.
    pub(super) fn has(&self, id: &str, geometry: &Geometry) -> bool {
        let Some((version, number)) = id.split_once('-') else { return false };
        let mut values = self.entries.iter().filter(|(key, _)| key == number);
        let value = values.next().map_or("", |(_, value)| value);
        let fields: BTreeSet<&str> = value.split(['{', ',', '}']).collect_set();
        fields.contains(&*format!("\"db-id\":{}", geometry.system_identifier))
            && fields.contains(&*format!("\"db-version\":\"{version}\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As pgBackRest 2.45 wrote it.
    const LIST: &str = r#"[backrest]
backrest-format=5
backrest-version="2.45"

[db]
db-id=1
db-system-id=7711837226208487407
db-version="15"

[db:history]
1={"db-id":7711837226208487407,"db-version":"15"}

[backrest]
backrest-checksum="c2f2deee8856fd30c3c1c6e9db6feaf039026c12"
"#;

    fn fault(text: &str) -> Option<String> {
        ArchiveInfo::parse(text).err()
    }

    #[test]
    fn a_list_of_pgbackrest_is_sound_and_any_other_digit_is_not() {
        assert_eq!(fault(LIST), None);
        assert_eq!(fault(&format!("{LIST}\n")), None);
        let other = fault(&LIST.replace("db-version=\"15\"", "db-version=\"16\""));
        assert!(other.is_some_and(|found| found.contains("that says c2f2deee")));
        assert_eq!(fault("").as_deref(), Some("a list without its checksum"));
        assert!(fault(&format!("# {LIST}")).is_some());
        assert!(fault(&LIST.replace('\n', "\r\n")).is_some(), "lines as Windows ends them");
        // The checksum is not under itself: pgBackRest reads it as JSON.
        let cut = LIST.strip_suffix("\"\n").expect("a list ends so");
        assert_eq!(fault(cut).as_deref(), Some("a checksum that is not between quotes"));
    }
}
