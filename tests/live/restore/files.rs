//! Cases of files as such: missing, partial, more than expected, special, named otherwise, twice.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use super::case::Table;
use super::origin::{HISTORY, SEGMENT};
use super::tree::{Layout, State, Tree, gzip, xz, zeros};

use Layout::{Barman, Gzip, PgBackRest, PgBackRestZstd, Raw, Zstd};

/// Adds them.
pub fn add(table: &mut Table) {
    missing(table);
    partial(table);
    after_the_end(table);
    special(table);
    named_otherwise(table);
    twice(table);
    harmless(table);
}

fn missing(table: &mut Table) {
    table.red(&[Raw, Zstd, PgBackRestZstd], "middle segment missing", |tree| {
        tree.remove(&tree.middle());
    });
    table.red(&[Raw, Barman], "last segment but one missing", |tree| tree.remove(&tree.on_new(1)));
    table.red(&[Raw, Gzip], "timeline 2's first segment missing", |tree| {
        tree.remove(&tree.on_new(0))
    });
    table.red(&[Raw], "the last segment of timeline 1 missing that timeline 2 needs", |tree| {
        let name = super::origin::segment(1, tree.origin.before_switch);
        tree.remove(&name);
    });
    table.red(&[Raw], "timeline 1's segment missing that only timeline 1 needs", |tree| {
        tree.remove(&tree.left());
    });
    table.in_state(State::Both);
    table.green(&[Raw, Gzip, Zstd, Barman], "last segment not archived yet", |tree| {
        tree.remove(&tree.last());
    });
    table.green(&[Raw, PgBackRest], "last two segments not archived yet", |tree| {
        tree.remove(&tree.last());
        tree.remove(&tree.on_new(1));
    });
}

fn partial(table: &mut Table) {
    let renamed =
        |tree: &mut Tree<'_>, name: &str| tree.rename(name, |old| format!("{old}.partial"));
    table.red(&[Raw, Gzip], "middle segment only as .partial", move |tree| {
        renamed(tree, &tree.middle());
    });
    table.red(
        &[PgBackRestZstd, Zstd],
        "middle segment only as .partial before its suffix",
        |tree| {
            tree.rename(&tree.middle(), |old| format!("{}.partial{}", &old[..24], &old[24..]));
        },
    );
    table.red(&[Raw], "timeline 2's first segment only as .partial", move |tree| {
        renamed(tree, &tree.on_new(0));
    });
    table.green(&[Raw, Gzip, Barman], "last segment is a .partial", move |tree| {
        renamed(tree, &tree.last());
    });
    table.green(&[Raw], "last segment is a .partial, cut off", move |tree| {
        tree.edit(&tree.last(), |plain| plain.truncate(20_000));
        renamed(tree, &tree.last());
    });
    table.green(
        &[Raw, Zstd, PgBackRest, Barman],
        "history and .partial of a promotion alone",
        |_| {},
    );
    table.cases.iter_mut().rev().take(4).for_each(|case| case.state = State::Fresh);
    table.green(&[Raw], "a .partial beside its full segment", |tree| {
        let plain = tree.plain(&tree.last());
        tree.add_beside(&tree.last(), |name| format!("{name}.partial"), &plain[..300_000]);
    });
}

fn after_the_end(table: &mut Table) {
    table.red(&[Raw, Gzip], "an empty file follows", |tree| {
        let name = tree.after_last(1);
        tree.store(&name, b"");
    });
    table.red(&[Raw, Zstd], "several empty files follow", |tree| {
        for steps in 1..=3 {
            tree.store(&tree.after_last(steps), b"");
        }
    });
    table.red(&[Raw, Gzip], "a segment of zeros follows", |tree| {
        tree.store(&tree.after_last(1), &zeros());
    });
    table.red(&[Raw, Barman], "a recycled segment follows", |tree| {
        tree.store(&tree.after_last(1), &tree.plain(&tree.other()));
    });
    table.red(&[Raw], "broken segments beside a folder named pg_wal with good ones", |tree| {
        tree.add(&format!("pg_wal/{}", tree.last()), &tree.plain(&tree.last()));
        tree.store(&tree.last(), &zeros());
    });
    table.red(&[Raw], "a hole, then a segment of zeros", |tree| {
        tree.store(&tree.after_last(2), &zeros());
    });
}

/// What stands in place of a segment's file.
fn in_place(tree: &mut Tree<'_>, name: &str, make: impl FnOnce(&std::path::Path)) {
    let path = tree.path(name);
    tree.remove(name);
    make(&path);
}

fn special(table: &mut Table) {
    table.red(&[Raw, Gzip], "last segment is a link to nothing", |tree| {
        in_place(tree, &tree.last(), |path| symlink("/nowhere/at/all", path).expect("a link"));
    });
    table.red(&[Raw], "middle segment is a link to nothing", |tree| {
        in_place(tree, &tree.middle(), |path| symlink("nothing", path).expect("a link"));
    });
    table.red(&[Raw], "last segment is a link to itself", |tree| {
        in_place(tree, &tree.last(), |path| symlink(path, path).expect("a link"));
    });
    table.red(&[Raw, Zstd], "last segment is a named pipe", |tree| {
        in_place(tree, &tree.last(), |path| {
            let made = Command::new("mkfifo").arg(path).status().expect("mkfifo runs");
            assert!(made.success(), "mkfifo");
        });
    });
    table.red(&[Raw, Barman], "last segment is a folder", |tree| {
        in_place(tree, &tree.last(), |path| fs::create_dir(path).expect("a folder"));
    });
    table.red(&[Raw, Gzip], "last segment may not be read", |tree| forbid(tree, &tree.last()));
    table.red(&[Raw], "middle segment may not be read", |tree| forbid(tree, &tree.middle()));
    table.red(&[Raw], "the history may not be read", |tree| forbid(tree, HISTORY));
    table.green(&[Raw, Gzip], "a segment is a link to where it lies", |tree| {
        let (path, away) = (tree.path(&tree.middle()), tree.folder.with_file_name("away"));
        fs::rename(&path, &away).expect("a new place");
        symlink(&away, &path).expect("a link");
    });
}

fn forbid(tree: &Tree<'_>, name: &str) {
    let nothing = fs::Permissions::from_mode(0o000);
    fs::set_permissions(tree.path(name), nothing).expect("permissions");
}

fn named_otherwise(table: &mut Table) {
    table.red(&[Raw], "middle segment under .bak", |tree| {
        tree.rename(&tree.middle(), |old| format!("{old}.bak"));
    });
    table.red(&[Raw, Gzip], "a segment's name in lower case", |tree| {
        tree.rename(&tree.on_new(1), |old| {
            let lower = old.to_lowercase();
            assert_ne!(lower, old, "there is a letter in this number");
            lower
        });
    });
    table.red(&[Raw], "middle segment under .old", |tree| {
        tree.rename(&tree.middle(), |old| format!("{old}.old"));
    });
    table.red(&[Raw], "middle segment with a date behind", |tree| {
        tree.rename(&tree.middle(), |old| format!("{old}.20240101"));
    });
    table.green(&[PgBackRest, PgBackRestZstd], "SHA-1 in the name of another content", |tree| {
        let mut wrong = tree.plain(&tree.middle());
        wrong[SEGMENT - 1] ^= 1;
        tree.spoil(&tree.middle(), &wrong);
    });
    table.green(&[PgBackRestZstd], "last segment changed after it was named", |tree| {
        let mut wrong = tree.plain(&tree.last());
        wrong[SEGMENT - 1] ^= 1;
        tree.spoil(&tree.last(), &wrong);
    });
    table.red(&[PgBackRest], "last segment cut off after it was named", |tree| {
        let plain = tree.plain(&tree.last());
        tree.spoil(&tree.last(), &plain[..400_000]);
    });
}

fn twice(table: &mut Table) {
    let copies = [Raw, Gzip];
    let beside = |tree: &Tree<'_>, name: &str, plain: &[u8]| {
        tree.add_beside(name, |name| format!("{name}.gz"), &gzip(plain));
    };
    table.green(&[Raw], "a second copy, compressed, of the middle segment", move |tree| {
        beside(tree, &tree.middle(), &tree.plain(&tree.middle()));
    });
    table.red(&[Raw], "last segment broken, a good copy beside it", move |tree| {
        let good = tree.plain(&tree.last());
        zeros_in_front(tree, &tree.last());
        beside(tree, &tree.last(), &good);
    });
    table.red(
        &[Raw],
        "middle segment with a bit turned over, a good copy beside it",
        move |tree| {
            let good = tree.plain(&tree.middle());
            tree.edit(&tree.middle(), |plain| plain[500_000] ^= 8);
            beside(tree, &tree.middle(), &good);
        },
    );
    table.red(&[Raw], "middle segment cut off, a good copy beside it", move |tree| {
        let good = tree.plain(&tree.middle());
        tree.edit(&tree.middle(), |plain| plain.truncate(SEGMENT / 4));
        beside(tree, &tree.middle(), &good);
    });
    table.red(&[Raw], "middle segment of another place, a good copy beside it", move |tree| {
        let good = tree.plain(&tree.middle());
        tree.store(&tree.middle(), &tree.plain(&tree.other()));
        beside(tree, &tree.middle(), &good);
    });
    table.red(&[Raw], "middle segment good, a compressed copy cut off beside it", move |tree| {
        let mut packed = gzip(&tree.plain(&tree.middle()));
        packed.truncate(packed.len() / 2);
        tree.add_beside(&tree.middle(), |name| format!("{name}.gz"), &packed);
        every_segment_as_gz(tree, &tree.middle());
    });
    table.fetched_as(&copies);
    table.red(
        &[Raw],
        "last segment good, a compressed copy of an older one beside it",
        move |tree| {
            beside(tree, &tree.last(), &tree.plain(&tree.other()));
            every_segment_as_gz(tree, &tree.last());
        },
    );
    table.fetched_as(&copies);
    table.green(&[Raw], "every file in two forms", |tree| every_segment_as_gz(tree, ""));
    table.fetched_as(&copies);
}

fn zeros_in_front(tree: &mut Tree<'_>, name: &str) {
    tree.edit(name, |plain| plain[..16_384].fill(0));
}

/// Compressed copies of all files but one.
fn every_segment_as_gz(tree: &Tree<'_>, except: &str) {
    for (name, plain) in &tree.files {
        if name != except && tree.folder.join(name).exists() {
            tree.add_beside(name, |name| format!("{name}.gz"), &gzip(plain));
        }
    }
}

fn harmless(table: &mut Table) {
    table.green(&Layout::ALL, "as it should be", |_| {});
    table.green(&[Raw], "both timelines went on", |_| {});
    table.in_state(State::Both);
    table.green(&[Barman], "both timelines went on", |_| {});
    table.in_state(State::Both);
    table.green(&[Raw, PgBackRest, Barman], "a backup's history beside the segments", |tree| {
        let name = format!("{}.00000028.backup", tree.first());
        let text = format!("START WAL LOCATION: 0/2000028 (file {})\n", tree.first());
        tree.store(&name, text.as_bytes());
    });
    table.green(&[Raw], "an empty archive_status", |tree| {
        tree.folder_in("archive_status");
    });
    table.green(&[Raw], "files that are no WAL", |tree| {
        tree.add("README", b"Do not touch.\n");
        tree.add("last-run.json", b"{}\n");
        tree.add(&format!("{}.json", tree.middle()), b"{}\n");
        tree.add("lost+found/nothing", b"");
    });
    table.green(&[PgBackRestZstd], "a damaged copy of archive.info", |tree| {
        tree.add("archive/demo/archive.info.copy", b"[db]\ndb-id=1\n");
    });
    table.green(&[Barman], "xlog.db beside the segments", |tree| {
        tree.add("wals/xlog.db", b"000000010000000000000002\t16777216\t1700000000.0\tgzip\n");
    });
    table.green(&[Barman], "a segment in another compression", |tree| {
        let packed = xz(&tree.plain(&tree.middle()));
        tree.overwrite(&tree.middle(), &packed);
    });
    table.green(&[Barman], "a segment not compressed", |tree| {
        let plain = tree.plain(&tree.middle());
        tree.overwrite(&tree.middle(), &plain);
    });
    table.green(&[Raw, Gzip], "a folder named archive, empty", |tree| tree.folder_in("archive"));
    table.green(&[Raw], "a lost+found that may not be read", |tree| {
        tree.folder_in("lost+found");
        let nothing = fs::Permissions::from_mode(0o000);
        fs::set_permissions(tree.folder.join("lost+found"), nothing).expect("permissions");
    });
    table.green(&[Raw], "ten links to the folder itself", |tree| {
        for number in 0..10 {
            symlink(".", tree.folder.join(format!("link-{number}"))).expect("a link");
        }
    });
    table.green(&[Raw, Gzip], "temporary files of archivers, cut off", |tree| {
        let stored = tree.stored(&tree.last());
        let half = &stored[..stored.len() / 2];
        tree.add_beside(&tree.last(), |name| format!("{name}.tmp"), half);
        tree.add_beside(&tree.last(), |name| format!(".{name}.Qx8Yk2"), half);
        tree.add_beside(&tree.last(), |name| format!("{name}.pgbackrest.tmp"), half);
    });
    table.green(&[Raw], "an old copy named otherwise beside a good segment", |tree| {
        let plain = tree.plain(&tree.middle());
        tree.add_beside(&tree.middle(), |name| format!("{name}.bak"), &plain);
    });
}
