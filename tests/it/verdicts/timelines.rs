//! Two timelines: the file that is wrong is blamed, and not the history that is right.

use super::recovered::{SEGMENT, history, promoted, store, timeline_1, write};
use super::{
    archive, check, gzip, in_tar, is_green, is_noted, is_red, put, restore, segment, three, told,
};
use crate::common::builder::Wal;
use crate::common::record::Rec;
use crate::support::fixtures::fixtures;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Two timelines, of which the older one was left in segment 8.
pub(super) fn timelines(directory: &Path) {
    let stored = fs::File::open(fixtures().join("timeline/wal.tar.zst")).expect("the fixture");
    let tar = zstd::Decoder::new(stored).expect("zstd");
    for entry in tar::Archive::new(tar).entries().expect("a tar") {
        let mut entry = entry.expect("a member");
        let path = entry.path().expect("a path").into_owned();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let is_later = name.ends_with("0A") || name == "000000010000000000000009";
        if entry.header().entry_type().is_file() && name.len() >= 16 && !is_later {
            entry.unpack(directory.join(name)).expect("unpacked");
        }
    }
}

/// Timeline 1 of three segments, and one that leaves it in the third, with a history: all is sound.
pub(super) fn two_timelines(folder: &Path) {
    let early = timeline_1(2, true);
    let mut first = early.clone();
    first.switch();
    store(&first, 0, folder);
    store(&promoted(&early, 1, 2), early.at(), folder);
    history(folder, 2, &[(1, early.at())]);
}

const SWITCHED: &str = "000000020000000000000008";

/// What is told where the first segment of timeline 2 was changed, but for the one that timeline 1 left open.
fn with(change: impl FnOnce(&mut Vec<u8>)) -> Vec<(String, String)> {
    let directory: TempDir = tempfile::tempdir().expect("a directory");
    timelines(directory.path());
    let mut bytes = fs::read(directory.path().join(SWITCHED)).expect("the segment");
    change(&mut bytes);
    put(directory.path(), SWITCHED, &bytes);
    let mut told = told(&check(&["--as", "archive"], directory.path()));
    told.retain(|(kind, _)| kind != "open_segment");
    told
}

#[test]
fn where_the_switch_is_cut_off_the_history_is_not_blamed() {
    assert_eq!(with(|_| {}), []);
    let truncated = [("truncated".to_owned(), SWITCHED.to_owned())];
    for bytes in [8192, 100_000, 0x92000] {
        assert_eq!(with(|segment| segment.truncate(bytes)), truncated, "{bytes}");
    }
}

/// `unexpected timeline ID 1 in WAL segment`.
#[test]
fn a_file_of_the_new_timeline_with_pages_of_the_old_one_is_blamed() {
    let old = with(|bytes| {
        bytes.chunks_mut(8192).for_each(|page| page[4..8].copy_from_slice(&1_u32.to_le_bytes()))
    });
    assert_eq!(old, [("page_timeline".to_owned(), SWITCHED.to_owned())]);
}

/// A server reads the older timeline's records to the end of the file: `there is no contrecord flag`, or
/// `contrecord is requested`, in the next one, which is intact. So it is where the new timeline begins with
/// the segment, and where there is no other file of it.
#[test]
fn a_first_file_of_the_new_timeline_with_all_of_the_old_one_alone_is_blamed() {
    for is_into in [true, false] {
        let early = timeline_1(2, is_into);
        let number = early.at() / SEGMENT;
        let edge = (number + 1) * SEGMENT;
        let new = promoted(&early, 1, 2);
        let old = |records: usize, is_closed: bool| {
            let mut wal = early.clone();
            wal.add(&Rec::begins(1, 1));
            write(&mut wal, records);
            if is_closed {
                wal.switch();
            }
            let last = wal.records.iter().rfind(|(lsn, _)| lsn.0 < edge).map(|(lsn, _)| lsn.0);
            write(&mut wal, 20);
            wal.switch();
            (wal, if is_closed { edge } else { last.expect("a record that goes on") })
        };
        for (what, (wal, end)) in [("goes on", old(140, false)), ("closed", old(20, true))] {
            let directory: TempDir = tempfile::tempdir().expect("a directory");
            store(&wal, 0, directory.path());
            store(&new, early.at(), directory.path());
            history(directory.path(), 2, &[(1, early.at())]);
            is_green(what, directory.path());
            let file = |timeline: u32, number: u64| {
                directory.path().join(format!("{timeline:08X}{number:016X}"))
            };
            fs::copy(file(1, number), file(2, number)).expect("a copy");
            for is_alone in [false, true] {
                if is_alone {
                    let newer = (number + 1..).map(|number| file(2, number));
                    newer.take_while(|file| file.exists()).for_each(|file| {
                        fs::remove_file(file).expect("a file");
                    });
                }
                let what = format!("{what}, into a segment: {is_into}, alone: {is_alone}");
                let name = format!("00000002{number:016X}");
                is_red(&what, directory.path(), "page_timeline", &name);
                let arguments = ["--as", "archive", "--from", "0/500028"];
                let said = super::restore(&check(&arguments, directory.path()).exits(4));
                let restored = format!("restorable to LSN {}", walstat_format::lsn::Lsn(end));
                assert!(said.contains(&restored), "{what}: {restored}: {said}");
                assert!(said.contains("a server reads timeline 1"), "{what}: {said}");
            }
        }
    }
}

/// A server follows it to where it leaves timeline 1, and finds no segment to go on with.
#[test]
fn a_newer_history_that_leaves_the_timeline_of_the_segments_is_the_problem() {
    let directory: TempDir = tempfile::tempdir().expect("a directory");
    timelines(directory.path());
    put(directory.path(), "00000003.history", b"1\t0/700000\tx\n");
    let told = told(&check(&["--as", "archive"], directory.path()).exits(4));
    assert!(told.contains(&("history".to_owned(), "00000003.history".to_owned())), "{told:?}");
    let told = self::told(&check(&["--as", "archive", "--timeline", "2"], directory.path()));
    assert!(told.iter().all(|(kind, _)| kind != "history"), "{told:?}");
}

/// An archive of both timelines with this history of the newer one.
fn with_history(text: &[u8]) -> TempDir {
    let directory: TempDir = tempfile::tempdir().expect("a directory");
    timelines(directory.path());
    put(directory.path(), "00000002.history", text);
    directory
}

/// What is told but for the segment that timeline 1 left open.
fn told_of(directory: &Path) -> Vec<(String, String)> {
    let mut told = told(&check(&["--as", "archive"], directory));
    told.retain(|(kind, _)| kind != "open_segment");
    told
}

/// A restore fetches a history however it is packed, and comes as far with one that is broken.
#[test]
fn a_packed_history_that_is_broken_is_told_as_a_plain_one_is() {
    let newest = format!("1\t0/{:X}\tno recovery target specified\n", 8 * SEGMENT + 0x100);
    let mut files = three();
    files.push(("00000002.history".to_owned(), b"garbage".to_vec()));
    files.push(("00000003.history".to_owned(), newest.into_bytes()));
    let as_packed = |(name, bytes): &(String, Vec<u8>)| (format!("{name}.gz"), gzip(bytes));
    let packed: Vec<_> = files.iter().map(as_packed).collect();
    let [plain, packed] = [files, packed].map(|files| {
        let directory = archive(&files);
        let report = check(&["--as", "archive"], directory.path()).json();
        ["problems", "notes"].map(|key| report[key].to_string().replace(".gz", ""))
    });
    assert!(plain[1].contains("no segment of timeline 3"), "{plain:?}");
    assert_eq!(packed, plain);
}

/// Timeline 1 was left at 0/892E18.
#[test]
fn a_history_that_names_another_place_is_blamed_and_no_segment() {
    let history = |name: &str| ("history".to_owned(), name.to_owned());
    for text in ["1\t0/892", "1\t0/4F0000\tx", "1\t0/0\tx", "1\t0/992E18\tx"] {
        let told = told_of(with_history(text.as_bytes()).path());
        assert_eq!(told, [history("00000002.history")], "{text}");
    }
    // A newer one that is right does not speak for it.
    let directory = with_history(b"1\t0/4F0000\tx\n");
    put(directory.path(), "00000003.history", b"1\t0/892E18\tx\n2\t0/9F0000\tx\n");
    assert_eq!(told_of(directory.path()), [history("00000002.history")]);
}

/// `requested timeline 2 is not a child of this server's history`: by that history the checkpoint is another
/// timeline's. Where it only leaves timeline 1 too late, a server reads that one on.
#[test]
fn a_backup_whose_checkpoint_is_another_timelines_by_a_wrong_history_is_not_restorable() {
    for (text, said) in [
        ("1\t0/12", "not restorable: by 00000002.history"),
        ("1\t0/892", "not restorable: by 00000002.history"),
        ("1\t0/578000", "not restorable: by 00000002.history"),
        ("1\t0/992E18", "the end of the backup is not in the WAL, which is good to 0/00892E18"),
    ] {
        let directory = with_history(text.as_bytes());
        let label = directory.path().join("backup_label");
        let lines = "START WAL LOCATION: 0/5796B8 (file 000000010000000000000005)\n\
                     CHECKPOINT LOCATION: 0/5796F0\nBACKUP METHOD: streamed\nBACKUP FROM: primary\n\
                     START TIME: 2026-11-21 04:45:28 UTC\nLABEL: b\nSTART TIMELINE: 1\n";
        fs::write(&label, lines).expect("a label");
        let label = label.to_str().expect("UTF-8");
        let ran = check(&["--as", "archive", "--backup-label", label], directory.path());
        let (passes, restore) = super::restore_verdict(&ran);
        assert!(!passes && restore.contains(said), "{text}: {restore}");
    }
}

/// `recovery target timeline 2 does not exist`: a server asks for the history of any timeline but 1.
#[test]
fn a_timeline_that_is_asked_for_needs_its_history() {
    let directory: TempDir = tempfile::tempdir().expect("a directory");
    timelines(directory.path());
    let restored = |code: i32, said: &str| {
        let options = ["--as", "archive", "-t", "2", "--from", "0/900028"];
        let restore = super::restore(&check(&options, directory.path()).exits(code));
        assert!(restore.contains(said), "{said} {restore}");
    };
    restored(0, "restorable to LSN 0/00A00000");
    fs::remove_file(directory.path().join("00000002.history")).expect("removed");
    restored(4, "not restorable: a server that is asked for timeline 2 does not get its history");
}

/// A server asks for the same files, and goes by the timelines of their pages.
#[test]
fn a_history_that_names_another_place_in_the_segment_is_a_note() {
    for at in ["892E20", "892E10", "892E19", "894000", "800000", "8FFFF8"] {
        let directory = with_history(format!("1\t0/{at}\tx").as_bytes());
        assert_eq!(told_of(directory.path()), [], "{at}");
        let notes = check(&["--as", "archive"], directory.path()).json()["notes"].to_string();
        assert!(
            notes.contains("00000002.history: timeline 2 begins at 0/00892E18"),
            "{at}: {notes}"
        );
        put(directory.path(), "00000003.history", b"1\t0/892E18\tx\n2\t0/9F0000\tx\n");
        assert_eq!(told_of(directory.path()), [], "{at}, and a newer one that is right");
    }
    let newer = with_history(b"1\t0/892E18\tx");
    put(newer.path(), "00000003.history", b"1\t0/892E10\tx\n2\t0/9F0000\tx\n");
    assert_eq!(told_of(newer.path()), []);
}

/// A server takes the older timeline's segments where the newer one has none. It does not start from a backup
/// with its checkpoint between the two: `requested timeline 2 is not a child of this server's history`.
#[test]
fn a_history_that_names_an_earlier_segment_is_a_note() {
    for at in ["7FFF00", "700000", "5F0000"] {
        let directory = with_history(format!("1\t0/{at}\tx").as_bytes());
        assert_eq!(told_of(directory.path()), [], "{at}");
        let notes = check(&["--as", "archive"], directory.path()).json()["notes"].to_string();
        let note = format!("timeline 2 begins at 0/00892E18, not at 0/00{at}");
        assert!(notes.contains(&note), "{notes}");
    }
}

#[test]
fn a_history_is_read_as_a_server_reads_it() {
    for text in [
        "1\t0x0/0x892E18",
        "01 0/ 892e18",
        "+1\t00000000/000892E18zz",
        "4294967297\t100000000/892E18",
    ] {
        assert_eq!(told_of(with_history(text.as_bytes()).path()), [], "{text}");
    }
    let history = ("history".to_owned(), "00000002.history".to_owned());
    for text in ["0x1\t0/892E18", "1\t0 /892E18", "1\t892E18", "\u{a0}\n1\t0/892E18"] {
        let told = told(&check(&["--as", "archive"], with_history(text.as_bytes()).path()));
        assert!(told.contains(&history), "{text}: {told:?}");
    }
}

/// It takes the newest timeline's file that is there, and comes to what the newer timeline left.
#[test]
fn where_a_server_goes_astray_is_said() {
    let directory = with_history(b"1\t0/892E18\tx");
    fs::remove_file(directory.path().join(SWITCHED)).expect("the segment");
    let ran = check(&["--as", "archive", "--from", "0/700028"], directory.path());
    let checks = ran.json()["checks"].to_string();
    let said = "a server takes 000000010000000000000008 in its place and goes on with timeline 1, to \
                0/00900000 at most";
    assert!(checks.contains(said), "{checks} {}", ran.stderr);
}

/// So it does where the backup begins in that segment, and is not consistent where it breaks.
#[test]
fn where_a_server_goes_astray_before_the_backup_is_consistent_is_said() {
    let mut first = timeline_1(1, true);
    let start = first.next();
    let mut checkpoint = Rec::shutdown();
    checkpoint.main[..8].copy_from_slice(&start.0.to_le_bytes());
    checkpoint.main[24] = 10;
    first.add(&checkpoint);
    write(&mut first, 30);
    let stop = first.next();
    let second = promoted(&first, 1, 2);
    let mut old = first.clone();
    write(&mut old, 150);
    old.switch();
    let directory = tempfile::tempdir().expect("a directory");
    let folder = directory.path();
    store(&old, 0, folder);
    store(&second, first.at(), folder);
    history(folder, 2, &[(1, first.at())]);
    let [older, newer] = [1, 2].map(|it| format!("{it:08X}{:016X}", first.at() / SEGMENT));
    let bytes = fs::read(folder.join(&newer)).expect("a segment");
    fs::remove_file(folder.join(&newer)).expect("removed");
    let packed = gzip(&bytes[..350_000]);
    put(folder, &format!("{newer}.gz"), &packed[..packed.len() - 20]);
    let label = format!(
        "START WAL LOCATION: {start} (file {older})\nSTOP WAL LOCATION: {stop} (file {older})\nCHECKPOINT \
         LOCATION: {start}\nBACKUP METHOD: streamed\nBACKUP FROM: primary\nSTART TIME: 2026-11-30 15:00:00 \
         UTC\nLABEL: nightly\nSTART TIMELINE: 1\nSTOP TIME: 2026-11-30 15:00:01 UTC\nSTOP TIMELINE: 1\n"
    );
    let file = format!("{older}.{:08X}.backup", start.0 % SEGMENT);
    put(folder, &file, label.as_bytes());
    let path = folder.join(&file).display().to_string();
    let said = restore(&check(&["--as", "archive", "--backup-label", &path], folder));
    let instead = format!("only; a server takes {older} in its place and goes on with timeline 1");
    assert!(
        said.starts_with("not restorable: consistent from") && said.contains(&instead),
        "{said}"
    );
}

#[test]
fn names_of_wrong_length_and_marks_of_newer_segments_are_notes() {
    for name in
        ["00000001000000000000000", "0000000100000000000000101", "000000010000000000000010.ready"]
    {
        let mut files = three();
        files.push((name.to_owned(), Vec::new()));
        let ran = check(&["--as", "archive"], archive(&files).path());
        let notes = ran.json()["notes"].to_string();
        assert!(ran.code == Some(0) && notes.contains(&format!("{name}: not read")), "{notes}");
    }
}

#[test]
fn a_file_for_a_segment_before_its_timeline_began_is_blamed() {
    let directory = with_history(b"1\t0/892E18\tx\n");
    let old = fs::read(directory.path().join("000000010000000000000007")).expect("a segment");
    put(directory.path(), "000000020000000000000007", &old);
    let stray = ("page_timeline".to_owned(), "000000020000000000000007".to_owned());
    assert_eq!(told_of(directory.path()), [stray]);
}

/// Timelines are numbered one by one: a name far from all others is a wrong name, and the histories up to it
/// are none that somebody lost.
#[test]
fn a_name_of_a_timeline_that_never_was_is_the_problem() {
    let mut files = three();
    files.push(("FFFFFFFF0000000000000008".to_owned(), segment(1)));
    is_red("misnamed", archive(&files).path(), "page_timeline", "FFFFFFFF0000000000000008");
}

/// An archive of a timeline that ends where timeline 2 leaves it, and of that one, some segments long; and
/// where that is.
fn left_for_good(early: &Wal) -> (TempDir, u64) {
    let mut newer = promoted(early, 1, 2);
    write(&mut newer, 500);
    newer.switch();
    let directory = tempfile::tempdir().expect("a directory");
    store(early, 0, directory.path());
    store(&newer, early.at(), directory.path());
    history(directory.path(), 2, &[(1, early.at())]);
    (directory, early.at())
}

/// It is missing where it belongs, and under its wrong name it is one of the newer timeline: the older one
/// never came so far.
#[test]
fn a_segment_under_an_older_timelines_name_has_none_missing_before_it() {
    let (directory, begin) = left_for_good(&timeline_1(2, true));
    let folder = directory.path();
    let number = begin / SEGMENT + 3;
    let [right, wrong] = [2, 1].map(|timeline| format!("{timeline:08X}00000000{number:08X}"));
    fs::rename(folder.join(&right), folder.join(&wrong)).expect("renamed");
    let mut told = told(&check(&["--as", "archive"], folder));
    told.retain(|(kind, _)| kind != "open_segment");
    told.sort();
    assert_eq!(told, [("missing_segment".to_owned(), right), ("page_timeline".to_owned(), wrong)]);
}

/// The timeline begins with the segment, of which only the header of the first page is left.
#[test]
fn where_the_first_segment_is_cut_to_its_header_the_history_is_not_blamed() {
    let (directory, begin) = left_for_good(&timeline_1(2, false));
    let folder = directory.path();
    let first = format!("00000002{:016X}", begin / SEGMENT);
    let whole = fs::read(folder.join(&first)).expect("the segment");
    assert!(begin.is_multiple_of(SEGMENT) && told(&check(&["--as", "archive"], folder)).is_empty());
    for bytes in [40, 41, 64, 200] {
        put(folder, &first, &whole[..bytes]);
        let told = told(&check(&["--as", "archive"], folder));
        assert_eq!(told, [("truncated".to_owned(), first.clone())], "{bytes}");
    }
}

/// The record with which the timeline begins goes on in the next segment: its first one has only pages of the
/// older timeline.
#[test]
fn of_a_timeline_that_begins_in_a_segments_last_bytes_the_history_alone_is_blamed() {
    let mut early = timeline_1(4, true);
    early.leave_in_segment(40);
    let (directory, begin) = left_for_good(&early);
    let folder = directory.path();
    assert_eq!(begin % SEGMENT, SEGMENT - 40);
    assert_eq!(told_of(folder), [], "as it is");
    let blamed = |to: u64| {
        history(folder, 2, &[(1, to)]);
        told_of(folder)
    };
    for back in [1, 2] {
        assert_eq!(blamed(begin - back * SEGMENT), [], "{back} segments earlier: a note");
    }
    let alone = [("history".to_owned(), "00000002.history".to_owned())];
    for on in [1, 2, 3, 5] {
        assert_eq!(blamed(begin + on * SEGMENT), alone, "{on} segments later");
    }
}

/// It is whole with the other timeline's file: the one in which it begins is right.
#[test]
fn of_two_files_in_which_a_record_goes_on_the_broken_one_is_blamed() {
    for bytes in [3000, 2 << 20] {
        broken_where_a_timeline_begins(bytes);
    }
}

fn broken_where_a_timeline_begins(bytes: usize) {
    let directory = tempfile::tempdir().expect("a directory");
    let folder = directory.path();
    let mut early = timeline_1(2, true);
    early.leave_in_segment(200);
    early.add(&Rec::data(bytes));
    let begin = early.at() / SEGMENT - 1 - (bytes >> 20) as u64;
    write(&mut early, 5);
    let mut first = early.clone();
    write(&mut first, 350);
    first.switch();
    store(&first, 0, folder);
    store(&promoted(&early, 1, 2), early.at(), folder);
    history(folder, 2, &[(1, early.at())]);
    is_green("as it is", folder);
    let name = |timeline: u32| format!("{timeline:08X}{:016X}", early.at() / SEGMENT);
    let sound = [1, 2].map(|timeline| fs::read(folder.join(name(timeline))).expect("a segment"));
    let break_them = |timelines: &[u32]| {
        for (timeline, mut bytes) in (1..).zip(sound.clone()) {
            if timelines.contains(&timeline) {
                bytes[512..1024].fill(0);
            }
            put(folder, &name(timeline), &bytes);
        }
    };
    for wrong in [1, 2] {
        break_them(&[wrong]);
        let expected = [("checksum".to_owned(), name(wrong))];
        for followed in ["1", "2"] {
            let ran = check(&["--as", "archive", "-t", followed], folder);
            assert_eq!(told(&ran), expected, "{wrong} is wrong, {followed} is followed");
        }
    }
    break_them(&[1, 2]);
    let before = format!("00000001{begin:016X}");
    is_red("both are", folder, "checksum", &before);
}

/// The older timeline's is a `.partial`, as after a failover: with that the record is broken as well.
#[test]
fn of_a_record_that_goes_on_in_two_files_the_one_in_which_it_begins_may_be_broken() {
    let directory = tempfile::tempdir().expect("a directory");
    let folder = directory.path();
    let mut early = timeline_1(2, true);
    early.leave_in_segment(1000);
    let number = early.at() / SEGMENT;
    early.add(&Rec::data(3000));
    write(&mut early, 5);
    store(&early, 0, folder);
    store(&promoted(&early, 1, 2), early.at(), folder);
    history(folder, 2, &[(1, early.at())]);
    let last = folder.join(format!("00000001{:016X}", number + 1));
    fs::rename(&last, last.with_extension("partial")).expect("a file renamed");
    is_green("as it is", folder);
    let name = format!("00000001{number:016X}");
    let mut bytes = fs::read(folder.join(&name)).expect("the segment before");
    bytes[(SEGMENT - 500) as usize..][..20].fill(b'Q');
    put(folder, &name, &bytes);
    is_red("bytes of the record", folder, "checksum", &name);
}

/// Stored under the newer timeline's name: "unexpected timeline ID". It ends where that one begins.
#[test]
fn an_older_timelines_file_with_a_switch_at_the_fork_is_blamed_alone() {
    for is_newest in [false, true] {
        let directory = tempfile::tempdir().expect("a directory");
        let folder = directory.path();
        let early = timeline_1(2, true);
        let mut first = early.clone();
        first.switch();
        store(&first, 0, folder);
        let mut second = early.clone();
        second.form.timeline = 2;
        second.add(&Rec::begins(2, 1));
        write(&mut second, if is_newest { 10 } else { 150 });
        second.switch();
        store(&second, early.at(), folder);
        history(folder, 2, &[(1, early.at())]);
        is_green("as it is", folder);
        let name = |timeline: u32| format!("{timeline:08X}{:016X}", early.at() / SEGMENT);
        fs::copy(folder.join(name(1)), folder.join(name(2))).expect("a copy");
        let told = told_of(folder);
        assert!(told.iter().all(|(_, file)| *file == name(2)) && !told.is_empty(), "{told:?}");
    }
}

/// The older timeline's record at the place goes on in its next segment; the newer one's next file is right.
#[test]
fn a_file_with_the_older_timelines_record_at_the_fork_is_blamed_though_that_goes_on() {
    for bytes in [1 << 20, 2 << 20] {
        let directory = tempfile::tempdir().expect("a directory");
        let folder = directory.path();
        let early = timeline_1(2, true);
        let mut first = early.clone();
        first.add(&Rec::data(bytes));
        write(&mut first, 5);
        first.switch();
        store(&first, 0, folder);
        store(&promoted(&early, 1, 2), early.at(), folder);
        history(folder, 2, &[(1, early.at())]);
        is_green("as it is", folder);
        let name = |timeline: u32| format!("{timeline:08X}{:016X}", early.at() / SEGMENT);
        let [old, new] =
            [1, 2].map(|timeline| fs::read(folder.join(name(timeline))).expect("a segment"));
        let page = (early.at() % SEGMENT / 8192 * 8192) as usize;
        let mut mixed = new.clone();
        mixed[page..page + 8192].copy_from_slice(&old[page..page + 8192]);
        for (wrong, kind) in [(old, "page_timeline"), (mixed, "continuation")] {
            put(folder, &name(2), &wrong);
            is_red("with a record of timeline 1", folder, kind, &name(2));
        }
    }
}

/// All records of timeline 2 lie in a page that timeline 1 began, so that its header names that one.
#[test]
fn without_its_history_a_timeline_in_one_page_of_the_older_one_is_not_blamed() {
    let directory = tempfile::tempdir().expect("a directory");
    let folder = directory.path();
    let early = timeline_1(2, true);
    let mut first = early.clone();
    first.switch();
    store(&first, 0, folder);
    let mut second = early.clone();
    second.form.timeline = 2;
    second.add(&Rec::begins(2, 1));
    second.switch();
    store(&second, early.at(), folder);
    let third = promoted(&second, 2, 3);
    store(&third, second.at(), folder);
    history(folder, 2, &[(1, early.at())]);
    history(folder, 3, &[(1, early.at()), (2, second.at())]);
    is_green("as it is", folder);
    fs::remove_file(folder.join("00000002.history")).expect("removed");
    is_red("without its history", folder, "missing_history", "00000002.history");
}

/// Retention by age takes the history of a timeline before its first segment, which is archived when it is
/// full and begins with what the older timeline wrote. A server that is restored then knows of no older one.
#[test]
fn the_first_segment_of_the_oldest_timeline_known_may_begin_with_any_older_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let folder = directory.path();
    let mut first = timeline_1(2, true);
    first.add(&Rec::shutdown());
    let second = promoted(&first, 1, 2);
    store(&second, first.at(), folder);
    is_green("without histories", folder);
    let third = promoted(&second, 2, 3);
    store(&third, second.at(), folder);
    history(folder, 3, &[(2, second.at())]);
    is_green("restored since", folder);
    // Not in a later one.
    let mut wrong = second.clone();
    wrong.form.timeline = 2;
    wrong.add(&Rec::shutdown());
    write(&mut wrong, 150);
    wrong.switch();
    store(&wrong, second.at(), folder);
    let ran = check(&["--as", "archive", "-t", "2"], folder);
    let kinds: Vec<String> = told(&ran).into_iter().map(|(kind, _)| kind).collect();
    assert!(kinds.contains(&"record_body".to_owned()), "{kinds:?}");
}

/// A server archives the `.partial` when it is promoted, after what the old primary had archived by then. Of
/// that, retention by age takes the oldest first.
#[test]
fn a_partial_that_outlives_older_segments_of_its_timeline_is_none_of_it() {
    let first = timeline_1(2, true);
    let fork = first.at() / SEGMENT;
    let second = promoted(&first, 1, 2);
    let mut old = first.clone();
    write(&mut old, 400);
    old.switch();
    let name = |number: u64| format!("00000001{number:016X}");
    for left in [fork + 1, fork + 2] {
        let directory = tempfile::tempdir().expect("a directory");
        let folder = directory.path();
        store(&old, fork * SEGMENT, folder);
        store(&second, first.at(), folder);
        history(folder, 2, &[(1, first.at())]);
        is_green("as it is", folder);
        let partial = folder.join(format!("{}.partial", name(fork)));
        fs::rename(folder.join(name(fork)), partial).expect("renamed");
        for number in fork + 1..left {
            fs::remove_file(folder.join(name(number))).expect("removed");
        }
        is_green("the oldest ones are gone", folder);
        // Not behind others of its timeline.
        store(&old, (fork - 1) * SEGMENT, folder);
        for number in fork..left {
            fs::remove_file(folder.join(name(number))).expect("removed");
        }
        is_red("a hole", folder, "missing_segment", &name(fork));
    }
}

/// Whoever removes what a recovery to a moment has left behind removes segments, and forgets the histories of
/// the backups that begin in them.
#[test]
fn the_history_of_a_backup_behind_the_place_where_its_timeline_was_left_is_a_note() {
    let directory = tempfile::tempdir().expect("a directory");
    let folder = directory.path();
    let first = timeline_1(2, true);
    let second = promoted(&first, 1, 2);
    store(&first, 0, folder);
    store(&second, first.at(), folder);
    history(folder, 2, &[(1, first.at())]);
    let fork = first.at() / SEGMENT;
    fs::remove_file(folder.join(format!("00000001{fork:016X}"))).expect("removed");
    put(folder, &format!("00000001{:016X}.00000028.backup", fork + 2), b"");
    is_noted("behind it", folder, "the WAL of this backup is not there any more");
    let start = (fork + 2) * SEGMENT + 40;
    let label = format!(
        "START WAL LOCATION: 0/{start:X} (file 00000001{:016X})\nCHECKPOINT LOCATION: 0/{start:X}\nBACKUP \
         METHOD: streamed\nBACKUP FROM: primary\nSTART TIME: 2026-11-30 15:00:00 UTC\nLABEL: x\n",
        fork + 2
    );
    let backup = tempfile::tempdir().expect("a directory");
    put(backup.path(), "data/backup_label", label.as_bytes());
    let path = backup.path().display().to_string();
    let said = restore(&check(&["--as", "archive", "--backup-label", &path], folder));
    assert!(said.starts_with("not restorable: timeline 2 left timeline 1 at"), "{said}");
    put(folder, &format!("00000002{:016X}.00000028.backup", fork + 2), b"");
    assert_eq!(check(&["--as", "archive"], folder).code, Some(4), "of the one that is followed");
}

/// Nothing can be found there.
#[test]
fn where_the_first_segment_is_empty_and_the_one_before_lost_the_history_is_not_blamed() {
    let directory = tempfile::tempdir().expect("a directory");
    let folder = directory.path();
    two_timelines(folder);
    let [before, begin] = [6, 7].map(|number| format!("0000000{}{number:016X}", number - 5));
    for bytes in [0, 5000] {
        let whole = fs::read(folder.join(&begin)).expect("a segment");
        put(folder, &begin, &whole[..bytes]);
        is_red("cut", folder, "truncated", &begin);
        let lost = fs::read(folder.join(&before)).expect("a segment");
        fs::remove_file(folder.join(&before)).expect("removed");
        let expected = [("missing_segment", &before), ("truncated", &begin)];
        let expected = expected.map(|(kind, file)| (kind.to_owned(), file.clone()));
        assert_eq!(told_of(folder), expected, "cut to {bytes}, and one lost");
        put(folder, &before, &lost);
        put(folder, &begin, &whole);
    }
}

/// Timelines 2 and 3 begin in one segment, and that of 3 has what timeline 1 wrote there.
#[test]
fn the_oldest_timelines_file_under_the_newest_ones_name_is_blamed_alone() {
    // It ends before the place where the newest one begins, or behind it.
    for records in [0, 1, 2, 10] {
        let directory = tempfile::tempdir().expect("a directory");
        let folder = directory.path();
        let early = timeline_1(2, true);
        let mut first = early.clone();
        write(&mut first, records);
        first.switch();
        store(&first, 0, folder);
        let mut second = early.clone();
        second.form.timeline = 2;
        second.add(&Rec::begins(2, 1));
        write(&mut second, 3);
        let mut all = second.clone();
        all.switch();
        store(&all, early.at(), folder);
        store(&promoted(&second, 2, 3), second.at(), folder);
        history(folder, 2, &[(1, early.at())]);
        history(folder, 3, &[(1, early.at()), (2, second.at())]);
        is_green("as it is", folder);
        let name = |timeline: u32| format!("{timeline:08X}{:016X}", early.at() / SEGMENT);
        fs::copy(folder.join(name(1)), folder.join(name(3))).expect("a copy");
        let told = told_of(folder);
        let is_blamed = told.iter().all(|(_, file)| *file == name(3));
        assert!(is_blamed && !told.is_empty(), "{records}: {told:?}");
    }
}

/// The next segment is of the newer timeline.
#[test]
fn a_partial_left_over_where_a_timeline_ends_is_part_of_an_accepted_gap() {
    let directory = tempfile::tempdir().expect("a directory");
    let folder = directory.path();
    let early = timeline_1(4, false);
    store(&early, 0, folder);
    store(&promoted(&early, 1, 2), early.at(), folder);
    history(folder, 2, &[(1, early.at())]);
    is_green("as it is", folder);
    let last = early.at() / SEGMENT - 1;
    let name = format!("00000001{last:016X}");
    let gap = format!("0/{:X}..0/{:X}", last * SEGMENT, early.at());
    let accept = ["--as", "archive", "--accept-gap", &gap, "--because", "lost"];
    let whole = fs::read(folder.join(&name)).expect("a segment");
    fs::remove_file(folder.join(&name)).expect("removed");
    check(&accept, folder).exits(0);
    put(folder, &format!("{name}.partial"), &whole);
    check(&accept, folder).exits(0);
    check(&["--as", "archive"], folder).exits(4);
}

/// Records of both timelines go on from it: which of the files is wrong is the same however they come.
#[test]
fn a_broken_record_that_goes_on_where_a_timeline_begins_is_told_alike_of_a_tar() {
    let mut first = timeline_1(1, true);
    first.leave_in_segment(8192);
    let record = first.add(&Rec::sized(50_000));
    write(&mut first, 5);
    let second = promoted(&first, 1, 2);
    let fork = first.at();
    write(&mut first, 150);
    first.switch();
    let directory = tempfile::tempdir().expect("a directory");
    let folder = directory.path();
    store(&first, 0, folder);
    store(&second, fork, folder);
    history(folder, 2, &[(1, fork)]);
    is_green("as it is", folder);
    let name = format!("00000001{:016X}", record.0 / SEGMENT);
    let mut bytes = fs::read(folder.join(&name)).expect("a segment");
    bytes[(record.0 % SEGMENT) as usize + 64..][..512].fill(0);
    put(folder, &name, &bytes);
    let names =
        fs::read_dir(folder).expect("a directory").map(|entry| entry.expect("a file").file_name());
    let files = names.map(|name| {
        let bytes = fs::read(folder.join(&name)).expect("a file");
        (name.to_string_lossy().into_owned(), bytes)
    });
    let files: Vec<(String, Vec<u8>)> = files.collect();
    let of_tar = told_of(in_tar(&files).path());
    assert_eq!((told_of(folder), of_tar.len()), (of_tar, 1));
}

/// The next file is of a timeline that was left in it.
#[test]
fn an_older_timelines_file_before_one_that_was_left_is_blamed_alone() {
    let early = timeline_1(2, true);
    let mut first = early.clone();
    write(&mut first, 200);
    first.switch();
    let mut second = early.clone();
    second.form.timeline = 2;
    second.add(&Rec::begins(2, 1));
    write(&mut second, 130);
    let third = promoted(&second, 2, 3);
    let fork = second.at();
    write(&mut second, 150);
    second.switch();
    let directory = tempfile::tempdir().expect("a directory");
    let folder = directory.path();
    store(&first, 0, folder);
    store(&second, early.at(), folder);
    store(&third, fork, folder);
    history(folder, 2, &[(1, early.at())]);
    history(folder, 3, &[(1, early.at()), (2, fork)]);
    is_green("as it is", folder);
    let name = |timeline: u32| format!("{timeline:08X}{:016X}", early.at() / SEGMENT);
    fs::copy(folder.join(name(1)), folder.join(name(2))).expect("a copy");
    let told = told_of(folder);
    assert_eq!(told, [("page_timeline".to_owned(), name(2))]);
}

/// A file of the older one has no record of the newer one, whatever histories say.
#[test]
fn the_newer_timelines_file_under_the_older_ones_name_is_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let folder = directory.path();
    let early = timeline_1(2, true);
    let mut first = early.clone();
    write(&mut first, 10);
    first.switch();
    store(&first, 0, folder);
    let mut second = early.clone();
    second.form.timeline = 2;
    second.add(&Rec::begins(2, 1));
    second.switch();
    let third = promoted(&second, 2, 3);
    store(&second, early.at(), folder);
    store(&third, second.at(), folder);
    history(folder, 2, &[(1, early.at())]);
    history(folder, 3, &[(1, early.at()), (2, second.at())]);
    is_green("as it is", folder);
    let name = |timeline: u32| format!("{timeline:08X}{:016X}", early.at() / SEGMENT);
    fs::copy(folder.join(name(2)), folder.join(name(1))).expect("a copy");
    is_red("of one that was left", folder, "record_body", &name(1));
    // Nobody knows of the newer ones any more.
    for timeline in [2, 3] {
        fs::remove_file(folder.join(format!("{timeline:08X}.history"))).expect("removed");
    }
    let told = told_of(folder);
    assert!(told.contains(&("record_body".to_owned(), name(1))), "{told:?}");
}

/// The one cannot be read, and the other one names too old a timeline: the oldest one is read all the same.
#[test]
fn exchanged_histories_do_not_hide_the_oldest_timeline() {
    let first = timeline_1(2, true);
    let second = promoted(&first, 1, 2);
    let third = promoted(&second, 2, 3);
    let directory = tempfile::tempdir().expect("a directory");
    let folder = directory.path();
    store(&first, 0, folder);
    store(&second, first.at(), folder);
    store(&third, second.at(), folder);
    history(folder, 2, &[(1, first.at()), (2, second.at())]);
    history(folder, 3, &[(1, first.at())]);
    let start = format!("0/{:X}", SEGMENT * 5 + 40);
    let ran = check(&["--as", "archive", "--from", &start], folder).exits(4);
    let blamed: Vec<String> = told_of(folder).into_iter().map(|(_, file)| file).collect();
    assert_eq!(blamed, ["00000002.history", "00000003.history"], "{:?}", told(&ran));
    let place = walstat_format::lsn::Lsn(first.at());
    let checks = ran.json()["checks"].to_string();
    assert!(checks.contains(&format!("restorable to LSN {place}")), "{checks}");
}

/// Two standbys were promoted, both to timeline 2, and the one that lagged archived as well: of a timeline
/// that begins later a server fetches no such segment.
#[test]
fn segments_of_another_servers_timeline_of_the_same_number_are_blamed_alone() {
    let early = timeline_1(2, true);
    let mut first = early.clone();
    write(&mut first, 400);
    let mut other = promoted(&early, 1, 2);
    write(&mut other, 300);
    other.switch();
    let mut ours = promoted(&first, 1, 2);
    let fork = first.at();
    write(&mut ours, 300);
    ours.switch();
    first.switch();
    let directory = tempfile::tempdir().expect("a directory");
    let folder = directory.path();
    store(&first, 0, folder);
    store(&ours, fork, folder);
    history(folder, 2, &[(1, fork)]);
    is_green("as it is", folder);
    let strays = tempfile::tempdir().expect("another directory");
    store(&other, early.at(), strays.path());
    let begin = early.at() / SEGMENT;
    let names: Vec<String> =
        (begin..fork / SEGMENT).map(|number| format!("00000002{number:016X}")).collect();
    assert!(names.len() > 1, "{names:?}");
    for name in &names {
        fs::copy(strays.path().join(name), folder.join(name)).expect("a copy");
    }
    let expected: Vec<_> =
        names.into_iter().map(|name| ("page_timeline".to_owned(), name)).collect();
    assert_eq!(told_of(folder), expected);
}
