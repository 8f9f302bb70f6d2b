//! Cases of archives: every kind of damage in every container, at every position; and archives that
//! look odd and are well.

use std::path::{Path, PathBuf};

use super::archive::{Archive, Node, Packing, Store, write};
use super::case::{Case, Container, Put};
use super::chain::{Chain, PAGE, SEGMENT};
use super::damage::{self, Damage, STORED, Target};
use super::form::{Codec, Form};
use super::verdict::{Input, InputKind, Verdict};
use crate::common::xorshift::Xorshift;

/// The positions of segments, for messages.
const POSITIONS: [&str; 3] = ["first", "middle", "last"];

/// Everything that is no plain folder; raw segments in it.
const PACKINGS: [Packing; 5] = [
    Packing::Tar,
    Packing::PackedTar(Codec::Gzip),
    Packing::PackedTar(Codec::Zstd),
    Packing::PipedTar,
    Packing::Piped,
];

/// Forms in turn: raw files most often, slow codecs seldom.
const TURN: [Form; 16] = [
    Form::RAW,
    Form::Suffixed(Codec::Gzip),
    Form::PgBackRest(Codec::BareZstd),
    Form::RAW,
    Form::Suffixed(Codec::Lz4),
    Form::PgBackRest(Codec::None),
    Form::RAW,
    Form::Suffixed(Codec::Zstd),
    Form::Barman(Codec::Gzip),
    Form::RAW,
    Form::PgBackRest(Codec::Lz4),
    Form::Suffixed(Codec::Zstd),
    Form::RAW,
    Form::Barman(Codec::None),
    Form::Suffixed(Codec::Xz),
    Form::Suffixed(Codec::Bzip2),
];

fn form_in_turn(number: usize) -> Form {
    TURN[number % TURN.len()]
}

/// Made chains compress in no time; of the real ones, the quick codecs do.
fn is_quick(chain: &Chain, form: Form) -> bool {
    !chain.name.starts_with("real") || !matches!(form.codec(), Codec::Bzip2 | Codec::Xz)
}

fn seed(number: usize) -> Xorshift {
    Xorshift::new(0x9E37_79B9_7F4A_7C15 ^ (number as u64 + 1))
}

/// All cases.
pub fn all(chains: &[Chain]) -> Vec<Case<'_>> {
    let mut cases = Vec::new();
    damaged(chains, &mut cases);
    packed(chains, &mut cases);
    stored(chains, &mut cases);
    whole_packings(chains, &mut cases);
    files(chains, &mut cases);
    sound(chains, &mut cases);
    cases
}

/// Damages of plain bytes: each kind at each position in a quarter of the chains, so that all releases
/// and all forms have their turn.
fn damaged<'c>(chains: &'c [Chain], cases: &mut Vec<Case<'c>>) {
    for (kind, damage) in damage::all().into_iter().enumerate() {
        let damage = std::sync::Arc::new(damage);
        for position in 0..3 {
            for (nth, chain) in chains.iter().enumerate() {
                let number = kind * 7 + position * 5 + nth;
                let form = form_in_turn(number);
                if number.is_multiple_of(4) && is_quick(chain, form) {
                    let container = Container::folder(form);
                    cases.push(of_damage(damage.clone(), position, chain, container, number));
                }
            }
        }
    }
}

/// The same in tars and pipes, fewer of them.
fn packed<'c>(chains: &'c [Chain], cases: &mut Vec<Case<'c>>) {
    // Without names nothing tells of a segment that is not there.
    let content = ["the content of the segment before", "the content of the segment after"];
    let needs_a_name = |damage: &Damage| {
        let name = damage.name.as_str();
        ["all zeros", "no bytes", "text", "a segment more"].contains(&name)
            || content.contains(&name)
    };
    for (kind, damage) in damage::all().into_iter().enumerate() {
        let damage = std::sync::Arc::new(damage);
        for position in 0..3 {
            for (nth, packing) in PACKINGS.into_iter().enumerate() {
                let number = kind * 11 + position * 3 + nth;
                if number % 2 == 0 || packing == Packing::Piped && needs_a_name(&damage) {
                    continue;
                }
                let chain = &chains[number % chains.len()];
                let container = Container { form: Form::RAW, packing };
                cases.push(of_damage(damage.clone(), position, chain, container, number));
            }
        }
    }
}

fn of_damage<'c>(
    damage: std::sync::Arc<Damage>,
    index: usize,
    chain: &'c Chain,
    container: Container,
    number: usize,
) -> Case<'c> {
    let group = format!("{}: {}", POSITIONS[index], damage.name);
    Case::of(group, chain, container, move |archive| {
        let mut target = Target { chain, index, random: seed(number) };
        let plain = (damage.make)(&mut target)?;
        archive.store(index, plain);
        Some(())
    })
}

/// Damages of compressed files.
fn stored<'c>(chains: &'c [Chain], cases: &mut Vec<Case<'c>>) {
    let forms = Form::ALL.into_iter().filter(|form| form.codec() != Codec::None);
    for (which, form) in forms.enumerate() {
        for (kind, (name, spoil)) in STORED.into_iter().enumerate() {
            for index in 0..3 {
                let chain = &chains[(which * 5 + kind * 3 + index) % chains.len()];
                if !is_quick(chain, form) {
                    continue;
                }
                let group = format!("{} compressed file: {name}", POSITIONS[index]);
                cases.push(Case::of(group, chain, Container::folder(form), move |archive| {
                    let mut stored = archive.stored(index);
                    spoil(&mut stored);
                    archive.overwrite(index, stored);
                    Some(())
                }));
            }
        }
    }
    kept_names(chains, cases);
}

/// Content that changed after pgBackRest had put its SHA-1 into the name, where no record shows it.
fn kept_names<'c>(chains: &'c [Chain], cases: &mut Vec<Case<'c>>) {
    for (nth, chain) in chains.iter().enumerate() {
        let codecs = [Codec::None, Codec::Gzip, Codec::Lz4, Codec::BareZstd];
        let (index, form) = (nth % 3, Form::PgBackRest(codecs[nth % 4]));
        let group = format!("{} segment's SHA-1 is of other bytes", POSITIONS[index]);
        cases.push(Case::of(group, chain, Container::folder(form), move |archive| {
            let mut plain = chain.segments[index].plain.clone();
            let byte = free_byte(chain, index)?;
            plain[byte] ^= 1;
            archive.overwrite(index, form.codec().encode(&plain));
            Some(())
        }));
    }
}

/// A byte between records, or after a switch, that nobody looks at.
fn free_byte(chain: &Chain, index: usize) -> Option<usize> {
    let segment = &chain.segments[index];
    let begin = segment.records.get(5)?.end;
    (begin..SEGMENT).find(|&at| !segment.matters[at] && at % PAGE > 40)
}

/// Damages of a tar as such.
fn whole_packings<'c>(chains: &'c [Chain], cases: &mut Vec<Case<'c>>) {
    let kinds: [(&str, damage::Spoil); 5] = [
        ("ends inside of the last member", |b| b.truncate(SEGMENT * 2 + 300_000)),
        ("ends after the second member", |b| b.truncate(SEGMENT * 2 + 1024)),
        ("ends inside of the third member's header", |b| b.truncate(SEGMENT * 2 + 1024 + 200)),
        ("has a bit turned over in the second member's name", |b| b[SEGMENT + 512 + 20] ^= 1),
        ("has a bit turned over in the last member's size", |b| b[SEGMENT * 2 + 1024 + 126] ^= 1),
    ];
    for (kind, (name, spoil)) in kinds.into_iter().enumerate() {
        for (nth, chain) in chains.iter().enumerate().filter(|(nth, _)| nth % 4 == kind % 4) {
            let piped = nth % 2 == 0;
            let lay = move |store: &Store, folder: &Path| {
                let mut tar = Archive::of(store, chain, Form::RAW).tar();
                spoil(&mut tar);
                let path = folder.join("in.tar");
                let input = match piped {
                    true => Input::Pipe(tar),
                    false => {
                        write(&path, &tar);
                        Input::Path(path)
                    }
                };
                let expected = Verdict::Red;
                Some(Put { input, expected, says_open: None, taken_for: Some("archive") })
            };
            cases.push(Case {
                group: format!("tar {name}"),
                subject: format!("{}, {}", chain.name, if piped { "piped" } else { "file" }),
                taken_for: InputKind::Archive,
                codec: Codec::None,
                lay: Box::new(lay),
            });
        }
    }
}

/// A change of an archive's files around one segment.
type Change = fn(&mut Archive<'_>, usize) -> Option<()>;

/// Kinds of damage to files as such.
const FILES: [(&str, Change); 14] = [
    ("missing", |a, index| {
        a.remove(index);
        Some(())
    }),
    ("only as .partial", |a, index| {
        a.rename(index, |place| format!("{place}.partial"));
        Some(())
    }),
    ("only as .partial, suffix behind", |a, index| {
        let segment = a.chain.segments[index].name.clone();
        a.rename(index, |place| place.replace(&segment, &format!("{segment}.partial")));
        Some(())
    }),
    ("under .bak", |a, index| {
        a.rename(index, |place| format!("{place}.bak"));
        Some(())
    }),
    ("a folder", |a, index| replace(a, index, Node::Folder)),
    ("a link to nothing", |a, index| replace(a, index, Node::Link(PathBuf::from("nowhere")))),
    ("a named pipe", |a, index| replace(a, index, Node::Pipe)),
    ("cut off, a good copy beside it", |a, index| {
        beside(a, index)?;
        let stored = a.stored(index);
        a.overwrite(index, stored[..stored.len() / 2].to_vec());
        Some(())
    }),
    ("all zeros, a good copy beside it", |a, index| {
        beside(a, index)?;
        a.overwrite(index, vec![0; SEGMENT]);
        Some(())
    }),
    ("with a bit turned over, a good copy beside it", |a, index| {
        beside(a, index)?;
        let mut plain = a.chain.segments[index].plain.clone();
        plain[a.chain.segments[index].record(2).start + 24] ^= 1;
        a.overwrite(index, a.form.codec().encode(&plain));
        Some(())
    }),
    ("good, a copy of another segment beside it", |a, index| {
        copy_beside(a, index, &a.chain.segments[(index + 1) % 3].plain)
    }),
    ("followed by an empty file", |a, index| after(a, index, 1, Vec::new())),
    ("followed by zeros", |a, index| after(a, index, 1, vec![0; SEGMENT])),
    ("followed by a hole and an older segment", |a, index| {
        let older = a.chain.segments[0].plain.clone();
        after(a, index, 2, older)
    }),
];

fn replace(archive: &mut Archive<'_>, index: usize, node: Node) -> Option<()> {
    archive.put(archive.place(index).to_owned(), node);
    Some(())
}

/// A good copy of a segment in another form.
fn beside(archive: &mut Archive<'_>, index: usize) -> Option<()> {
    let segment = &archive.chain.segments[index];
    copy_beside(archive, index, &segment.plain)
}

/// A file of another form in the same folder and under the same segment's name.
fn copy_beside(archive: &mut Archive<'_>, index: usize, plain: &[u8]) -> Option<()> {
    let segment = &archive.chain.segments[index];
    let codec = if archive.form.codec() == Codec::Zstd { Codec::Gzip } else { Codec::Zstd };
    let folder = archive.place(index).rsplit_once('/').map_or("", |(folder, _)| folder);
    let slash = if folder.is_empty() { "" } else { "/" };
    let place = format!("{folder}{slash}{}{}", segment.name, codec.suffix());
    let (stored, plain) = (codec.encode(plain), Some(plain.to_vec()));
    archive.put(place, Node::File { stored, plain });
    Some(())
}

/// Something under a name that no server has given; it is the last one whatever `index` is.
fn after(archive: &mut Archive<'_>, index: usize, steps: u64, plain: Vec<u8>) -> Option<()> {
    (index == 2).then_some(())?;
    archive.add_segment(&archive.chain.name_after(steps), plain);
    Some(())
}

fn files<'c>(chains: &'c [Chain], cases: &mut Vec<Case<'c>>) {
    for (which, form) in Form::ALL.into_iter().enumerate() {
        for (kind, (name, change)) in FILES.into_iter().enumerate() {
            for (index, position) in POSITIONS.into_iter().enumerate() {
                let chain = &chains[(which * 7 + kind * 3 + index) % chains.len()];
                if is_quick(chain, form) {
                    let container = Container::folder(form);
                    cases.push(Case::of(format!("{position} segment {name}"), chain, container, {
                        move |archive| change(archive, index)
                    }));
                }
            }
        }
    }
}

/// Changes that do no harm.
const HARMLESS: [(&str, Change); 8] = [
    ("bytes changed that nobody looks at", |a, index| {
        let mut plain = a.chain.segments[index].plain.clone();
        plain[free_byte(a.chain, index)?] ^= 0x55;
        a.store(index, plain);
        Some(())
    }),
    ("unused bytes of a page header", |a, index| {
        let mut plain = a.chain.segments[index].plain.clone();
        plain[3 * PAGE + 20..3 * PAGE + 24].fill(0xFF);
        a.store(index, plain);
        Some(())
    }),
    ("a .partial beside its full segment", |a, index| {
        let part = a.chain.segments[index].plain[..300_000].to_vec();
        let place = format!("{}.partial", a.place(index));
        (a.form.codec() == Codec::None).then_some(())?;
        a.put(place, Node::File { stored: part, plain: None });
        Some(())
    }),
    ("the last one a .partial", |a, _| {
        a.rename(2, |place| format!("{place}.partial"));
        Some(())
    }),
    ("the last one not there yet", |a, _| {
        a.remove(2);
        Some(())
    }),
    ("a good copy in another form", beside),
    ("a link to where the segment lies", |a, index| {
        let place = a.place(index).to_owned();
        a.rename(index, |place| format!("{place}.away"));
        let name = place.rsplit('/').next()?.to_owned();
        a.put(place, Node::Link(PathBuf::from(format!("{name}.away"))));
        Some(())
    }),
    ("files that are no WAL", |a, _| {
        let text = || Node::File { stored: b"{}\n".to_vec(), plain: None };
        let names = ["archive.info", "xlog.db", "README", "a.json"].map(str::to_owned);
        let backup = format!("{}.00000028.backup", a.chain.segments[0].name);
        names.into_iter().chain([backup]).for_each(|name| a.put(name, text()));
        Some(())
    }),
];

fn sound<'c>(chains: &'c [Chain], cases: &mut Vec<Case<'c>>) {
    for (nth, chain) in chains.iter().enumerate() {
        for form in Form::ALL.into_iter().filter(|form| is_quick(chain, *form)) {
            let container = Container::folder(form);
            cases.push(Case::of("as it should be", chain, container, |_| Some(())));
        }
        for packing in PACKINGS {
            let container = Container { form: Form::RAW, packing };
            cases.push(Case::of("as it should be", chain, container, |_| Some(())));
        }
        if chain.name.ends_with("switched") {
            cases.push(closed_copy(chain));
        }
        for (kind, (name, change)) in HARMLESS.into_iter().enumerate() {
            let form = form_in_turn(nth + kind * 3);
            if is_quick(chain, form) {
                let container = Container::folder(form);
                cases.push(Case::of(name, chain, container, move |a| change(a, (nth + kind) % 3)));
            }
        }
    }
}

/// Raw segments of which nothing is known, and nothing is open: there is nothing to be said.
fn closed_copy(chain: &Chain) -> Case<'_> {
    let lay = move |store: &Store, folder: &Path| {
        let input = Archive::of(store, chain, Form::RAW).write(Packing::Folder, folder);
        let (says_open, taken_for) = (Some(false), Some("copy"));
        Some(Put { input, expected: Verdict::Green, says_open, taken_for })
    };
    Case {
        group: "copy without an open end".into(),
        subject: chain.name.clone(),
        taken_for: InputKind::Whatever,
        codec: Codec::None,
        lay: Box::new(lay),
    }
}
