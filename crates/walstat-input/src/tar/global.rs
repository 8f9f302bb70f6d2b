//! Global extended headers of a tar (`g`): what one says, it says of all members behind it that have no
//! such header of their own. GNU tar goes by it, so that a path there is the name of them all.

use std::collections::BTreeSet;
use std::io::{self, Read};
use tar::Entry;

/// What it may say of which file a member is, and how long.
const KEYS: [&str; 3] = ["path", "linkpath", "size"];

/// What is said of all members.
#[derive(Default)]
pub(super) struct Global {
    said: BTreeSet<&'static str>,
}

impl Global {
    /// Takes note of such a header; fails at a member of which it says what cannot be. Must come before
    /// anything of the entry is read.
    pub(super) fn look_at(&mut self, entry: &mut Entry<'_, impl Read>) -> io::Result<()> {
        let kind = entry.header().entry_type();
        if kind.is_pax_global_extensions() {
            return self.take(entry);
        }
        if self.said.is_empty() {
            return Ok(());
        }
        let mut said = self.said.clone();
        for extension in entry.pax_extensions()?.into_iter().flatten() {
            said.remove(extension?.key().unwrap_or_default());
        }
        if !kind.is_symlink() && !kind.is_hard_link() {
            said.remove("linkpath");
        }
        match said.first() {
            Some(key) => Err(io::Error::other(format!("a header gives all members one {key}"))),
            None => Ok(()),
        }
    }

    fn take(&mut self, entry: &mut Entry<'_, impl Read>) -> io::Result<()> {
        for extension in entry.pax_extensions()?.into_iter().flatten() {
            let extension = extension?;
            let Some(key) = KEYS.iter().find(|key| extension.key() == Ok(**key)) else { continue };
            // Without a value a key is taken back.
            if extension.value_bytes().is_empty() {
                self.said.remove(key);
            } else {
                self.said.insert(key);
            }
        }
        Ok(())
    }
}
