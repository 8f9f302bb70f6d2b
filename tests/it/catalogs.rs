//! Names read from data directories of every release, held against what the servers themselves
//! said; and from directories that are spoiled: a warning that names the file, never a wrong name.

use crate::support::catalogs::{Truth, catalogs, copy_of};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use walstat_format::crc::Crc32c;
use walstat_format::version::VERSIONS;
use walstat_names::catalog::names::Names;
use walstat_names::data_directory::{Catalog, Expected, read};
use walstat_read::input::control;

/// Names and warnings of a directory that nothing else is known of.
fn names_of(directory: &Path) -> (Option<Names>, Vec<String>) {
    let mut warnings = Vec::new();
    let catalog = read(directory, &Expected::default(), &mut warnings);
    (catalog.map(|catalog| catalog.store.names()), warnings)
}

/// The same of a directory that is spoiled: no name may be wrong, and each warning names a file.
#[track_caller]
fn spoiled(directory: &Path, truth: &Truth, what: &str) -> (Names, Vec<String>) {
    let (names, warnings) = names_of(directory);
    let names = names.unwrap_or_else(|| panic!("{what}: {warnings:?}"));
    truth.none_wrong(&names, what);
    let root = directory.display().to_string();
    for warning in &warnings {
        assert!(warning.starts_with(&root) && warning.contains(": "), "{warning}");
    }
    (names, warnings)
}

#[track_caller]
fn assert_warns(warnings: &[String], file: &str, words: &str) {
    let found = warnings.iter().any(|text| text.contains(file) && text.contains(words));
    assert!(found, "no \"{words}\" of {file} in {warnings:?}");
}

#[test]
fn every_release_has_the_names_that_its_server_said() {
    let all = catalogs();
    let mut releases: Vec<&str> = Vec::new();
    for catalogs in &all {
        let mut warnings = Vec::new();
        let found = read(&catalogs.directory, &Expected::default(), &mut warnings);
        let Catalog { version, store, .. } = found.expect("a data directory");
        assert!(warnings.is_empty(), "{}: {warnings:?}", catalogs.name);
        releases.push(version.name);
        catalogs.truth.all_right(&store.names(), &catalogs.name);
    }
    for version in &VERSIONS {
        assert!(releases.contains(&version.name), "no data directory of {}", version.name);
    }
}

#[test]
fn pg_control_is_read_in_every_release() {
    for catalogs in catalogs() {
        let control = control::read(&catalogs.directory).expect(&catalogs.name);
        assert_eq!(control.state, control::State::ShutDown, "{}", catalogs.name);
        assert_eq!(control.checkpoint.redo, control.checkpoint_lsn, "{}", catalogs.name);
        assert_eq!((control.checkpoint.timeline, control.wal_page_bytes), (1, 8192));
        assert_eq!((control.wal_segment_bytes, control.name_bytes), (1 << 20, 64));
        let sizes = (control.page_bytes, control.file_pages, control.slru_pages);
        assert_eq!(sizes, (8192, 131072, 32), "{}", catalogs.name);
        let has_checksums = ["lab", "pg18-mixed", "pg19-mixed"].contains(&&*catalogs.name);
        assert_eq!(control.data_checksums, has_checksums, "{}", catalogs.name);
    }
}

#[test]
fn another_cluster_or_release_gives_no_names() {
    let (directory, _) = copy_of("pg13-mixed");
    let root = directory.path();
    let refused = |expected: &Expected| {
        let mut warnings = Vec::new();
        assert!(read(root, expected, &mut warnings).is_none(), "{expected:?}");
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        warnings.remove(0)
    };
    let cluster = Expected { system_identifier: Some(4242), ..Expected::default() };
    let text = refused(&cluster);
    assert!(
        text.contains("/global/pg_control: found cluster 771") && text.contains("expected 4242"),
        "{text}"
    );
    let release = Expected { version: Some(&VERSIONS[7]), ..Expected::default() };
    let text = refused(&release);
    assert!(text.contains("/PG_VERSION: found release 13, expected 15"), "{text}");
    fs::write(root.join("PG_VERSION"), "12\n").expect("written");
    let text = refused(&Expected::default());
    assert!(text.contains("/global/pg_control: found catalogs of version 202007201"), "{text}");
    fs::write(root.join("PG_VERSION"), "8.4\n").expect("written");
    let text = refused(&Expected::default());
    assert!(text.contains("/PG_VERSION: found release '8.4'"), "{text}");
    fs::write(root.join("PG_VERSION"), "s3cret\n").expect("written");
    let text = refused(&Expected::default());
    assert!(text.contains("/PG_VERSION: found no release") && !text.contains("s3cret"), "{text}");
    fs::remove_file(root.join("PG_VERSION")).expect("removed");
    assert!(refused(&Expected::default()).contains("/PG_VERSION: "));
    fs::write(root.join("global/pg_control"), [0; 100]).expect("written");
    assert!(refused(&Expected::default()).contains("/global/pg_control: found "));
    fs::remove_dir_all(root).expect("removed");
    assert!(refused(&Expected::default()).contains("/global/pg_control: "));
    fs::create_dir(root).expect("made again");
}

/// The directory of the database "postgres".
fn postgres(root: &Path, truth: &Truth) -> PathBuf {
    let found = truth.databases.iter().find(|(_, name)| *name == "postgres");
    root.join("base").join(found.expect("postgres").0.to_string())
}

#[test]
fn files_that_are_missing_or_cut_off_are_named() {
    for file in ["1259", "2615", "2610", "pg_filenode.map"] {
        for cut in [None, Some(100), Some(8192 + 100)] {
            let (directory, truth) = copy_of("pg15-mixed");
            let path = postgres(directory.path(), &truth).join(file);
            match cut {
                None => fs::remove_file(&path).expect("removed"),
                Some(bytes) => {
                    let bytes = bytes.min(fs::metadata(&path).expect("a file").len() - 1);
                    let opened = OpenOptions::new().write(true).open(&path);
                    opened.and_then(|file| file.set_len(bytes)).expect("cut off");
                }
            }
            let what = format!("{file} cut to {cut:?}");
            let (_, warnings) = spoiled(directory.path(), &truth, &what);
            assert_warns(&warnings, &format!("/{file}: "), "");
        }
    }
}

#[test]
fn torn_and_zeroed_pages_are_left_out() {
    for (name, file) in [("pg15-mixed", "1259"), ("pg19-mixed", "1259"), ("pg9.5-mixed", "2610")] {
        let (directory, truth) = copy_of(name);
        let path = postgres(directory.path(), &truth).join(file);
        let opened = OpenOptions::new().write(true).read(true).open(&path).expect("a file");
        let pages = opened.metadata().expect("a length").len() / 8192;
        assert!(pages > 2, "{name}/{file}: {pages} pages");
        opened.write_all_at(&[0; 8192], 8192).expect("written");
        let (_, warnings) = spoiled(directory.path(), &truth, "a page of zeros");
        assert_warns(&warnings, &format!("/{file}: "), "1 pages of zeros, the first is block 1;");
        opened.write_all_at(&[0xEE; 24], 8192).expect("written");
        let (names, warnings) = spoiled(directory.path(), &truth, "a torn page");
        assert_warns(
            &warnings,
            &format!("/{file}: "),
            "1 damaged or torn pages, the first is block 1;",
        );
        // The rest is there.
        let (named, missing) = truth.none_wrong(&names, name);
        assert!(named > missing && (missing > 0) == (file == "1259"), "{named} {missing}");
    }
}

/// With checksums, any byte may be wrong in any page, and no name is.
#[test]
fn a_page_whose_checksum_is_wrong_is_left_out() {
    let (directory, truth) = copy_of("pg19-mixed");
    let path = postgres(directory.path(), &truth).join("1259");
    let sound = fs::read(&path).expect("pg_class");
    let mut state = 88172645463325252u64;
    for _ in 0..60 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let mut bytes = sound.clone();
        let at = (state % bytes.len() as u64) as usize;
        bytes[at] ^= 1 << (state >> 40 & 7);
        fs::write(&path, bytes).expect("written");
        let what = format!("bit at {at}");
        let (_, warnings) = spoiled(directory.path(), &truth, &what);
        assert_warns(&warnings, "/1259: ", &format!("the first is block {};", at / 8192));
    }
}

/// Without them, whatever the bytes are, reading ends, and says what it can.
#[test]
fn any_bytes_are_read_to_an_end() {
    let (directory, truth) = copy_of("pg9.6-mixed");
    let root = postgres(directory.path(), &truth);
    let mut state = 362436069u64;
    for file in ["1259", "2615", "2610", "pg_filenode.map", "../../pg_clog/0000"] {
        let path = root.join(file);
        let sound = fs::read(&path).expect("a file");
        for _ in 0..20 {
            let mut bytes = sound.clone();
            for _ in 0..200 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let at = (state % bytes.len() as u64) as usize;
                bytes[at] = (state >> 32) as u8;
            }
            fs::write(&path, bytes).expect("written");
            assert!(names_of(directory.path()).0.is_some(), "{file}");
        }
        fs::write(&path, sound).expect("written");
    }
}

#[test]
fn without_a_commit_log_nothing_is_guessed() {
    let (directory, truth) = copy_of("pg12-mixed");
    let log = directory.path().join("pg_xact");
    fs::remove_dir_all(&log).expect("removed");
    let (_, warnings) = spoiled(directory.path(), &truth, "no pg_xact");
    // Where every row knows of its transactions, none is missed.
    assert!(warnings.is_empty() || warnings[0].contains("/pg_xact/0000: "), "{warnings:?}");
    // Now none does.
    let path = postgres(directory.path(), &truth).join("1259");
    without_hints(&path);
    let (names, warnings) = names_of(directory.path());
    // One that was dropped may be there, for all that is known.
    let (named, unnamed) = truth.named_right(&names.expect("names"), "no pg_xact, no hints");
    assert!(unnamed < named, "{named} {unnamed}");
    assert_warns(&warnings, "/pg_xact/0000: ", "does not say what became of transaction");
}

#[test]
fn with_a_commit_log_rows_need_no_hints() {
    for name in ["pg9.5-mixed", "pg12-mixed", "pg17-mixed"] {
        let (directory, truth) = copy_of(name);
        for file in ["1259", "2615", "2610"] {
            without_hints(&postgres(directory.path(), &truth).join(file));
        }
        let (names, warnings) = names_of(directory.path());
        assert!(warnings.is_empty(), "{warnings:?}");
        truth.all_right(&names.expect("names"), name);
    }
}

/// Takes what rows know of their transactions out of a file.
fn without_hints(path: &Path) {
    let mut bytes = fs::read(path).expect("a file");
    let mut changed = 0;
    for page in bytes.chunks_mut(8192) {
        let lower = usize::from(u16::from_le_bytes([page[12], page[13]]));
        for item in (24..lower).step_by(4) {
            let bits = u32::from_le_bytes(page[item..item + 4].try_into().expect("4 bytes"));
            let (from, is_there) = ((bits & 0x7FFF) as usize, bits >> 15 & 3 == 1);
            let mask = u16::from_le_bytes([page[from + 20], page[from + 21]]);
            // Frozen rows keep that: the log need not go back so far.
            if is_there && mask & 0x0300 != 0x0300 {
                let kept = if mask & 0x0800 != 0 { mask & !0x0700 } else { mask & !0x0F00 };
                page[from + 20..from + 22].copy_from_slice(&kept.to_le_bytes());
                changed += 1;
            }
        }
    }
    assert!(changed > 0, "{}", path.display());
    fs::write(path, bytes).expect("written");
}

/// A server with files of two pages has pg_class in many parts.
#[test]
fn a_table_may_be_in_several_files() {
    let (directory, truth) = copy_of("pg14-mixed");
    let control = directory.path().join("global/pg_control");
    let mut bytes = fs::read(&control).expect("pg_control");
    bytes[220..224].copy_from_slice(&2u32.to_le_bytes());
    let crc = Crc32c::portable().update(Crc32c::START, &bytes[..288]);
    bytes[288..292].copy_from_slice(&Crc32c::finish(crc).to_le_bytes());
    fs::write(&control, bytes).expect("written");
    let mut parts = 0;
    for database in fs::read_dir(directory.path().join("base")).expect("base") {
        for table in ["1259", "2610", "2615", "2611"] {
            let path = database.as_ref().expect("a database").path().join(table);
            let whole = fs::read(&path).expect("a table");
            for (index, part) in whole.chunks(2 * 8192).enumerate() {
                let suffix = if index == 0 { String::new() } else { format!(".{index}") };
                let part_path = PathBuf::from(format!("{}{suffix}", path.display()));
                fs::write(part_path, part).expect("written");
                parts += index;
            }
        }
    }
    assert!(parts > 10, "{parts}");
    let (names, warnings) = names_of(directory.path());
    assert!(warnings.is_empty(), "{warnings:?}");
    truth.all_right(&names.expect("names"), "parts");
    // One in the middle is missing, then one is cut off.
    let part = postgres(directory.path(), &truth).join("1259.2");
    OpenOptions::new().write(true).open(&part).and_then(|f| f.set_len(8192)).expect("cut off");
    let (_, warnings) = spoiled(directory.path(), &truth, "a part is cut off");
    assert_warns(&warnings, "/1259.2: ", "shorter than 16384 bytes, though the relation goes on");
    fs::remove_file(&part).expect("removed");
    let (_, warnings) = spoiled(directory.path(), &truth, "a part is missing");
    assert_warns(&warnings, "/1259.2: ", "missing, though the relation goes on");
}

#[test]
fn directories_that_are_missing_are_named() {
    let (directory, truth) = copy_of("pg16-mixed");
    fs::remove_dir_all(directory.path().join("pg_tblspc")).expect("removed");
    let (names, warnings) = spoiled(directory.path(), &truth, "no pg_tblspc");
    assert_warns(&warnings, "/pg_tblspc: ", "missing");
    assert!(names.files().count() > 900);
    fs::remove_dir_all(directory.path().join("base")).expect("removed");
    let (names, warnings) = spoiled(directory.path(), &truth, "no base");
    assert_warns(&warnings, "/base: ", "missing");
    // What every cluster has is known all the same.
    let (file, row) = truth.rows.iter().find(|(_, row)| row.oid == 1249).expect("pg_attribute");
    assert_eq!(names.relation(*file).map(|found| &*found.name), Some(&*row.name));
}
