//! Hard links in a tar. Unpacked, such a link is the file that an earlier member was; so it is read as that,
//! under its own name. Bytes that went by as those of another name are read again, where the tar is a file.

use super::{Item, Visit};
use crate::input::names::{FileName, file_name};
use crate::input::tar::{Kind, Member};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// The hard links of a stream.
#[derive(Default)]
pub(super) struct HardLinks {
    /// Segments and histories so far, which were read under their own names.
    files: BTreeSet<PathBuf>,
    /// Links that have to be read, by the member that they link to.
    wanted: BTreeMap<PathBuf, PathBuf>,
    /// Only those are read now.
    reads_again: bool,
}

/// What is to be done with a member.
pub(super) enum Taken<'m> {
    /// It is read, under the name that it has here.
    Read(Member<'m>),
    /// It is a link that is nothing new, or is read later.
    Passed,
    /// It is a link to what is read under yet another name.
    Refused(PathBuf),
}

impl HardLinks {
    /// Decides what a member is read as.
    pub(super) fn take<'m>(&mut self, member: Member<'m>) -> Taken<'m> {
        if self.reads_again {
            let is_file = member.kind == Kind::File;
            let link = is_file.then(|| self.wanted.remove(&plain(&member.path))).flatten();
            return link.map_or(Taken::Passed, |path| Taken::Read(Member { path, ..member }));
        }
        let name = FileName::parse(&file_name(&member.path));
        if let Kind::HardLink(target) = &member.kind {
            return if name == FileName::Other {
                Taken::Passed
            } else {
                self.link(plain(target), member.path, &name)
            };
        }
        if name != FileName::Other {
            self.files.insert(plain(&member.path));
        }
        Taken::Read(member)
    }

    fn link<'m>(&mut self, target: PathBuf, link: PathBuf, name: &FileName) -> Taken<'m> {
        let is_called_so = |path: &Path| FileName::parse(&file_name(path)) == *name;
        if is_called_so(&target) && self.files.contains(&target) {
            return Taken::Passed;
        }
        match self.wanted.get(&target) {
            Some(other) if is_called_so(other) => Taken::Passed,
            // Two links give the same member two segment names, and one must be wrong. Following each would
            // mean reading the tar once more, so the second is refused.
            Some(_) => Taken::Refused(link),
            None => {
                self.wanted.insert(target, link);
                Taken::Passed
            }
        }
    }

    /// What is still to be read, where something is.
    pub(super) fn again(self) -> Option<HardLinks> {
        (!self.wanted.is_empty()).then_some(HardLinks { reads_again: true, ..self })
    }

    /// Says which links lead to nothing that can be read.
    pub(super) fn tell_rest(self, visit: &mut Visit<'_>) {
        for link in self.wanted.into_values() {
            if refuse(link, visit).is_break() {
                return;
            }
        }
    }
}

/// Says that a link cannot be read.
pub(super) fn refuse(link: PathBuf, visit: &mut Visit<'_>) -> ControlFlow<()> {
    visit(Item::NoFile(
        link,
        "hard link to a member that is not read under this name, or that has already passed in a pipe",
    ))
}

/// A path without single dots: `./pg_wal` is `pg_wal`.
fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| part.as_os_str() != ".").collect()
}
