//! What pgBackRest puts beside segments: their SHA-1 in names, and its list of archive ids.

use sha1::{Digest, Sha1};

/// archive.info with archive ids of a cluster, as pgBackRest writes it.
pub fn archive_info(ids: &[&str], system_identifier: u64) -> Vec<u8> {
    let entry = |id: &&str| {
        let (version, number) = id.split_once('-').expect("an archive id");
        (
            number.to_owned(),
            format!("{{\"db-id\":{system_identifier},\"db-version\":\"{version}\"}}"),
        )
    };
    let entries: Vec<(String, String)> = ids.iter().map(entry).collect();
    let join = |join: &dyn Fn(&(String, String)) -> String, between: &str| {
        entries.iter().map(join).collect::<Vec<_>>().join(between)
    };
    let hashed = join(&|(number, value)| format!("\"{number}\":{value}"), ",");
    let checksum =
        sha1_of(format!("{{\"db\":{{\"db-id\":1}},\"db:history\":{{{hashed}}}}}").as_bytes());
    let written = join(&|(number, value)| format!("{number}={value}"), "\n");
    let text = format!(
        "[db]\ndb-id=1\n\n[db:history]\n{written}\n\n[backrest]\nbackrest-checksum=\"{checksum}\"\n"
    );
    text.into()
}

/// SHA-1 in hexadecimal digits.
pub fn sha1_of(plain: &[u8]) -> String {
    Sha1::digest(plain).iter().map(|byte| format!("{byte:02x}")).collect()
}
