//! Links in a tar. Unpacked, a hard link is what an earlier member was, and a symbolic one leads to a member
//! somewhere in the tar, or out of it; so a link is read as that member, under its own name and in its own
//! directory, and nothing outside is. Those bytes went by as the member's own: the tar is read once more for
//! them, where it is a file.

use super::{Item, Visit};
use crate::names::{FileName, file_name};
use crate::storage::LINKS_MAX;
use crate::tar::{Kind, Member};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use walstat_format::ordered::OrderBy;

/// No path that a server's system takes is longer (`PATH_MAX`), so none has more parts.
const PATH_MAX: usize = 4096;

/// A member is read as so many links at most: for each the tar is read once more.
pub(super) const READ_AS_MAX: usize = 3;

/// The links of a stream.
#[derive(Default)]
pub(super) struct Links {
    names: Names,
    /// Links under names of segments and histories.
    links: Vec<Link>,
    /// Those that have to be read, by the file that they are.
    wanted: BTreeMap<Copied, Vec<Link>>,
    /// Those that lead to nothing that can be read, with what is told of them.
    refused: Vec<(PathBuf, Cow<'static, str>)>,
    /// Only wanted ones are read now.
    reads_again: bool,
}

/// What is unpacked so far under each name.
#[derive(Default)]
struct Names {
    /// How often a file has come by: the last one of a name is what is there.
    copies: HashMap<PathBuf, u64>,
    /// The links that are there.
    links: HashMap<PathBuf, Leads>,
}

/// One of the files that a tar has under a name, and which of them, counted from 1.
type Copied = (PathBuf, u64);

/// What a link leads to.
#[derive(Clone)]
enum Leads {
    /// A hard link is the file that was there when it was made.
    Hard(Copied),
    /// What a symbolic link says. A hard link to it says the same in its own place.
    Symbolic(PathBuf),
}

/// A link that is read as a member with another name.
struct Link {
    path: PathBuf,
    /// The directory that it is unpacked into.
    directory: PathBuf,
    leads: Leads,
}

/// What is to be done with a member.
pub(super) enum Taken<'m> {
    /// It is read, under the name that it has here.
    Read(Member<'m>),
    /// It is a link, which is read later, or nothing new.
    Passed,
    /// It is a link that `tar -x` does not make; what it is called.
    Refused(PathBuf, Cow<'static, str>),
}

impl Links {
    /// Decides what a member is read as.
    pub(super) fn take<'m>(&mut self, member: Member<'m>) -> Taken<'m> {
        let place = self.names.place(&member.path);
        if self.reads_again {
            return self.take_again(member, place);
        }
        let is_asked_for = name_of(&member.path) != FileName::Other;
        let leads = match &member.kind {
            Kind::HardLink(target) => match self.names.hard_link(target) {
                None if is_asked_for => return no_hard_link(&member.path, target),
                // A file that was packed twice is a link to itself.
                Some(Leads::Hard((to, _))) if to == place => return Taken::Passed,
                leads => leads,
            },
            Kind::Symlink(target) => Some(Leads::Symbolic(target.clone())),
            _ => {
                self.names.unpack(place, &member.kind);
                return Taken::Read(member);
            }
        };
        if let Some(leads) = leads {
            if is_asked_for {
                let directory = place.parent().unwrap_or(Path::new("")).to_owned();
                self.links.push(Link { path: member.path, directory, leads: leads.clone() });
            }
            self.names.links.insert(place, leads);
        }
        Taken::Passed
    }

    /// The same where the tar is read once more: a file as a link to it, if there is one.
    fn take_again<'m>(&mut self, member: Member<'m>, place: PathBuf) -> Taken<'m> {
        match &member.kind {
            Kind::Symlink(target) => {
                self.names.links.insert(place, Leads::Symbolic(target.clone()));
            }
            Kind::HardLink(target) => {
                let leads = self.names.hard_link(target);
                self.names.links.extend(leads.map(|leads| (place, leads)));
            }
            kind => {
                let copy = self.names.unpack(place.clone(), kind);
                let link = copy.and_then(|copy| self.wanted.get_mut(&(place, copy))?.pop());
                return link.map_or(Taken::Passed, |Link { path, .. }| {
                    Taken::Read(Member { path, ..member })
                });
            }
        }
        Taken::Passed
    }

    /// Looks, at the end of the tar, what its links lead to.
    pub(super) fn resolve(&mut self) {
        let mut found = Vec::new();
        for link in std::mem::take(&mut self.links) {
            let place = match &link.leads {
                Leads::Hard(copied) => Ok(copied.clone()),
                Leads::Symbolic(target) => self.names.file(&link.directory, target),
            };
            match place {
                Ok(copied) => found.push((copied, link)),
                Err(kind) => self.refused.push((link.path, kind)),
            }
        }
        // Those with the name of the member itself come first: that name is right.
        found.order_by_key(|((target, _), link)| name_of(target) != name_of(&link.path));
        found.into_iter().for_each(|(copied, link)| self.want(copied, link));
        // The last one is read first.
        self.wanted.values_mut().for_each(|links| links.reverse());
    }

    fn want(&mut self, copied: Copied, link: Link) {
        let links = self.wanted.entry(copied.clone()).or_default();
        // Two links give the same member two segment names, and one must be wrong: the second is refused.
        if links.first().is_some_and(|other| name_of(&other.path) != name_of(&link.path)) {
            self.refused.push((link.path, unread(&link.leads, &copied.0)));
        } else if links.len() < READ_AS_MAX {
            links.push(link);
        }
    }

    /// Prepares to read the tar once more; `false` if that gives nothing new.
    pub(super) fn reads_again(&mut self) -> bool {
        self.wanted.retain(|_, links| !links.is_empty());
        self.names = Names::default();
        self.reads_again = true;
        !self.wanted.is_empty()
    }

    /// Says which links lead to nothing that can be read.
    pub(super) fn tell_rest(self, visit: &mut Visit<'_>) {
        let wanted = self.wanted.into_iter().flat_map(|((target, _), links)| {
            // Where the member has the link's name, it was read under that.
            let name = name_of(&target);
            let links = links.into_iter().filter(move |link| name_of(&link.path) != name);
            links.map(move |link| (unread(&link.leads, &target), link.path))
        });
        let refused = self.refused.into_iter().map(|(path, kind)| (kind, path));
        for (kind, path) in refused.chain(wanted) {
            if visit(Item::NoFile(path, kind)).is_break() {
                return;
            }
        }
    }
}

impl Names {
    /// Where a member is unpacked: below links to directories that are there by then.
    fn place(&self, path: &Path) -> PathBuf {
        let path = path.strip_prefix("/").unwrap_or(path);
        let plain = || path.components().filter(|part| part.as_os_str() != ".").collect();
        if self.links.is_empty() || path.as_os_str().len() > PATH_MAX {
            return plain();
        }
        self.follow(Path::new(""), path, false).unwrap_or_else(plain)
    }

    /// Takes note of what is no link; of a file, which one of its name it is.
    fn unpack(&mut self, place: PathBuf, kind: &Kind) -> Option<u64> {
        self.links.remove(&place);
        if *kind != Kind::File {
            return None;
        }
        let copies = self.copies.entry(place).or_default();
        *copies += 1;
        Some(*copies)
    }

    /// What a hard link to this member is; `None`: `tar -x` makes none.
    fn hard_link(&self, target: &Path) -> Option<Leads> {
        let place = self.place(target);
        if let Some(leads) = self.links.get(&place) {
            return Some(leads.clone());
        }
        let copy = *self.copies.get(&place)?;
        Some(Leads::Hard((place, copy)))
    }

    /// The file that a symbolic link in a directory leads to; or what is told of the link.
    fn file(&self, directory: &Path, target: &Path) -> Result<Copied, Cow<'static, str>> {
        let place = self.follow(directory, target, true);
        let place = place.ok_or("symbolic link that leads out of the tar")?;
        match self.links.get(&place) {
            Some(Leads::Hard(copied)) => return Ok(copied.clone()),
            // It goes in a circle.
            Some(Leads::Symbolic(_)) => {}
            None => {
                if let Some(&copy) = self.copies.get(&place) {
                    return Ok((place, copy));
                }
            }
        }
        Err(unread(&Leads::Symbolic(PathBuf::new()), &place))
    }

    /// Where a path leads that begins in a directory; `None`: out of the tar. In a circle it ends at a link.
    fn follow(&self, directory: &Path, path: &Path, follows_last: bool) -> Option<PathBuf> {
        let mut place = directory.to_owned();
        let mut left: Vec<OsString> = reversed(path);
        let (mut followed, mut parts) = (0, 0);
        while let Some(part) = left.pop() {
            parts += 1;
            if place.as_os_str().len().max(parts) > PATH_MAX {
                return Some(place);
            }
            match Path::new(&part).components().next() {
                Some(Component::Normal(name)) => place.push(name),
                Some(Component::ParentDir) => place.pop().then_some(())?,
                Some(Component::RootDir | Component::Prefix(_)) => return None,
                Some(Component::CurDir) | None => continue,
            }
            let Some(Leads::Symbolic(target)) = self.links.get(&place) else { continue };
            let is_endless = followed == LINKS_MAX || target.as_os_str().len() > PATH_MAX;
            if is_endless || left.is_empty() && !follows_last {
                return Some(place);
            }
            followed += 1;
            place.pop();
            left.extend(reversed(target));
        }
        Some(place)
    }
}

fn reversed(path: &Path) -> Vec<OsString> {
    path.components().rev().map(|part| part.as_os_str().to_owned()).collect()
}

fn name_of(path: &Path) -> FileName {
    FileName::parse(&file_name(path))
}

fn no_hard_link<'m>(path: &Path, target: &Path) -> Taken<'m> {
    let kind = format!("hard link to {}, which is not before it in the tar", target.display());
    Taken::Refused(path.to_owned(), kind.into())
}

/// What is told of a link that cannot be read as what it links to.
fn unread(leads: &Leads, target: &Path) -> Cow<'static, str> {
    let kind = match leads {
        Leads::Hard(_) => "hard",
        Leads::Symbolic(_) => "symbolic",
    };
    let target = target.display();
    format!(
        "{kind} link to {target}, which is not in the tar, is read under another name, or has already passed \
         in a pipe"
    )
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names with these symbolic links, and a file under each of the others.
    fn names(links: &[(&str, &str)], files: &[&str]) -> Names {
        let mut names = Names::default();
        for file in files {
            names.unpack(PathBuf::from(file), &Kind::File);
        }
        for (link, target) in links {
            names.links.insert(PathBuf::from(link), Leads::Symbolic(PathBuf::from(target)));
        }
        names
    }

    #[test]
    fn symbolic_links_stay_in_the_tar() {
        let names = names(
            &[("al", "real"), ("wal/up", ".."), ("a", "b"), ("b", "a"), ("out", "/etc")],
            &["wal/2", "other/2", "real/sub/2", "2"],
        );
        let file = |target: &str| names.file(Path::new("wal"), Path::new(target));
        for (target, place) in [
            ("2", "wal/2"),
            ("../other/./2", "other/2"),
            ("../al/sub/2", "real/sub/2"),
            ("../al/sub/../sub//2", "real/sub/2"),
            ("up/2", "2"),
            ("up/al/../2", "2"),
        ] {
            assert_eq!(file(target), Ok((place.into(), 1)), "{target}");
        }
        for target in ["/etc/passwd", "../../2", "/wal/2", "up/../2", "../out/passwd"] {
            let error = file(target).expect_err(target);
            assert!(error.contains("leads out of the tar"), "{target}: {error}");
        }
        for target in ["../a", "3", "../real", &"up/wal/".repeat(50), &"a/".repeat(9000)] {
            let error = file(target).expect_err(target);
            assert!(error.contains("is not in the tar"), "{target}: {error}");
        }
    }
}
