//! Links in a tar. Unpacked, a hard link is the file that an earlier member was, and a symbolic one leads to
//! a member somewhere in the tar, or out of it; so it is read as that member, under its own name, and nothing
//! outside is. Bytes that went by as those of another name are read again, where the tar is a file.

use super::{Item, Visit};
use crate::input::names::{FileName, file_name};
use crate::input::tar::{Kind, Member};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Component, Path, PathBuf};

/// The links of a stream.
#[derive(Default)]
pub(super) struct Links {
    /// Segments and histories so far, which were read under their own names.
    files: BTreeSet<PathBuf>,
    /// Links that have to be read, by the member that they link to.
    wanted: BTreeMap<PathBuf, Link>,
    /// How often each file has come by: unpacked, the last one of a name is what is there.
    copies: HashMap<PathBuf, u64>,
    /// Only those are read now.
    reads_again: bool,
}

/// A link that is read as a member with another name.
struct Link {
    path: PathBuf,
    is_symbolic: bool,
    /// Which of the files of the target's name it is. A hard link is the last one before it; a symbolic one
    /// is the last of all.
    copy: u64,
}

/// What is to be done with a member.
pub(super) enum Taken<'m> {
    /// It is read, under the name that it has here.
    Read(Member<'m>),
    /// It is a link that is nothing new, or is read later.
    Passed,
    /// It is a link that leads out of the tar, or to what is read under yet another name; what it is called.
    Refused(PathBuf, Cow<'static, str>),
}

impl Links {
    /// Decides what a member is read as.
    pub(super) fn take<'m>(&mut self, member: Member<'m>) -> Taken<'m> {
        if self.reads_again {
            let link = (member.kind == Kind::File).then(|| self.wanted_now(plain(&member.path)));
            let read = |Link { path, .. }| Taken::Read(Member { path, ..member });
            return link.flatten().map_or(Taken::Passed, read);
        }
        let name = FileName::parse(&file_name(&member.path));
        let (target, is_symbolic) = match &member.kind {
            Kind::HardLink(target) => (Some(plain(target)), false),
            Kind::Symlink(target) => (member_at(&member.path, target), true),
            kind => {
                let path = plain(&member.path);
                if *kind == Kind::File {
                    *self.copies.entry(path.clone()).or_default() += 1;
                }
                if name != FileName::Other {
                    self.files.insert(path);
                }
                return Taken::Read(member);
            }
        };
        if name == FileName::Other {
            return Taken::Passed;
        }
        let copy = target.as_ref().and_then(|target| self.copies.get(target)).copied().unwrap_or(0);
        let link = Link { path: member.path, is_symbolic, copy };
        match target {
            Some(target) if copy == 0 && !is_symbolic => {
                let kind =
                    format!("hard link to {}, which is not before it in the tar", target.display());
                Taken::Refused(link.path, kind.into())
            }
            Some(target) => self.link(target, link, &name),
            None => Taken::Refused(link.path, "symbolic link that leads out of the tar".into()),
        }
    }

    fn link<'m>(&mut self, target: PathBuf, link: Link, name: &FileName) -> Taken<'m> {
        let is_called_so = |path: &Path| FileName::parse(&file_name(path)) == *name;
        if is_called_so(&target) && self.files.contains(&target) {
            return Taken::Passed;
        }
        match self.wanted.get(&target) {
            Some(other) if is_called_so(&other.path) => Taken::Passed,
            // Two links give the same member two segment names, and one must be wrong. Following each would
            // mean reading the tar once more, so the second is refused.
            Some(_) => {
                let kind = link.refused(&target);
                Taken::Refused(link.path, kind)
            }
            None => {
                self.wanted.insert(target, link);
                Taken::Passed
            }
        }
    }

    /// The link that a file is read as, if it is the one of its name that the link is.
    fn wanted_now(&mut self, path: PathBuf) -> Option<Link> {
        let copy = self.wanted.get(&path)?.copy;
        let copies = self.copies.entry(path.clone()).or_default();
        *copies += 1;
        (*copies == copy).then(|| self.wanted.remove(&path)).flatten()
    }

    /// What is still to be read, where something is.
    pub(super) fn again(mut self) -> Option<Links> {
        for (target, link) in self.wanted.iter_mut().filter(|(_, link)| link.is_symbolic) {
            link.copy = self.copies.get(target).copied().unwrap_or(0);
        }
        self.copies.clear();
        (!self.wanted.is_empty()).then_some(Links { reads_again: true, ..self })
    }

    /// Says which links lead to nothing that can be read.
    pub(super) fn tell_rest(self, visit: &mut Visit<'_>) {
        for (target, link) in self.wanted {
            let kind = link.refused(&target);
            if visit(Item::NoFile(link.path, kind)).is_break() {
                return;
            }
        }
    }
}

impl Link {
    /// What is told of a link that cannot be read as what it links to.
    fn refused(&self, target: &Path) -> Cow<'static, str> {
        let kind = if self.is_symbolic { "symbolic" } else { "hard" };
        let target = target.display();
        format!(
            "{kind} link to {target}, which is not in the tar, is read under another name, or has already \
             passed in a pipe"
        )
        .into()
    }
}

/// The member to which a symbolic link leads; `None`: it leads out of the tar.
fn member_at(link: &Path, target: &Path) -> Option<PathBuf> {
    let mut place = plain(link.parent().unwrap_or_else(|| Path::new("")));
    for part in target.components() {
        match part {
            Component::Normal(name) => place.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                place.pop().then_some(())?;
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(place)
}

/// A path without single dots: `./pg_wal` is `pg_wal`.
fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| part.as_os_str() != ".").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbolic_links_stay_in_the_tar() {
        let at = |link: &str, target: &str| member_at(Path::new(link), Path::new(target));
        assert_eq!(at("./wal/1", "2"), Some("wal/2".into()));
        assert_eq!(at("wal/1", "../other/./2"), Some("other/2".into()));
        for outside in ["/etc/passwd", "../../2", "/wal/2"] {
            assert_eq!(at("wal/1", outside), None, "{outside}");
        }
    }
}
