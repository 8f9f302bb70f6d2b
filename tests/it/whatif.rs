//! `walstat whatif`, from outside: what a server wrote under other settings is what is predicted,
//! every sample replays to itself, and nonsense is refused.

use crate::common::builder::{Form, Wal};
use crate::common::record::{Block, Image, Rec, XLOG};
use crate::support::fixtures::{fixtures, sample, samples, unpacked};
use crate::support::walstat;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use walstat_format::rmgr::{BRIN, BTREE, GIN, HEAP2};

/// The range of the load in `tests/fixtures/whatif`.
const RANGE: [&str; 4] = ["-s", "0/1F5F960", "-e", "0/22F4108"];

fn wal() -> PathBuf {
    unpacked("whatif/wal.tar.zst").join("whatif")
}

fn predict_in(wal: &Path, options: &[&str]) -> Value {
    let path = wal.to_str().expect("UTF-8");
    let ran = walstat(&[&["whatif", "-f", "json"], options, &[path]].concat());
    assert!([Some(0), Some(4)].contains(&ran.code), "{}: {}", ran.call, ran.stderr);
    ran.json()["whatif"].take()
}

fn predict(options: &[&str]) -> Value {
    predict_in(&wal(), options)
}

fn bytes(scenario: &Value, key: &str) -> i64 {
    scenario[key].as_i64().unwrap_or_else(|| panic!("{key} of {scenario}"))
}

/// Codecs are told to 0.01 %, everything else to the byte.
#[test]
fn predictions_are_what_a_server_wrote() {
    let text = std::fs::read_to_string(fixtures().join("whatif/real.tsv")).expect("the truth");
    for line in text.lines().skip(1) {
        let (options, real) = line.split_once('\t').expect("two columns");
        let real: i64 = real.parse().expect("bytes");
        let options: Vec<&str> = options.split_whitespace().chain(RANGE).collect();
        let whatif = predict(&options);
        let scenarios = whatif["scenarios"].as_array().expect("scenarios");
        let is_base = options.len() == RANGE.len();
        let scenario = if is_base { &scenarios[0] } else { &scenarios[1] };
        assert!(is_base || scenarios.len() == 2, "{line}");
        let allowed = if line.contains("compression") { real / 10_000 } else { 0 };
        let error = bytes(scenario, "predicted_bytes") - real;
        assert!(error.abs() <= allowed, "{line}: {error}");
        let (low, high) = (bytes(scenario, "low_bytes"), bytes(scenario, "high_bytes"));
        assert!(low <= real && real <= high, "{line}: {low} to {high}");
        let parts = ["exact_bytes", "estimated_bytes", "unknown_bytes"];
        let sum: i64 = parts.iter().map(|part| bytes(scenario, part)).sum();
        assert_eq!(sum, bytes(scenario, "predicted_bytes"), "{line}");
    }
}

/// All releases, all access methods, ends and accidents.
#[test]
fn every_sample_replays_to_itself() {
    for sample in samples() {
        let whatif = predict_in(&sample.wal, &["--checkpoint-every", "none"]);
        let check = &whatif["self_check"];
        assert_eq!(check["difference_bytes"], 0, "{}: {check}", sample.name);
        assert_eq!(check["by_record"], Value::Array(vec![]), "{}", sample.name);
        let base = &whatif["scenarios"][0];
        assert_eq!(base["predicted_bytes"], whatif["base_bytes"], "{}", sample.name);
        assert_eq!(base["id"], "base");
    }
}

#[test]
fn the_base_comes_first_and_lists_make_a_scenario_a_value() {
    let ids = |options: &[&str]| {
        let whatif = predict(options);
        let scenarios = whatif["scenarios"].as_array().expect("scenarios").clone();
        scenarios.iter().map(|s| s["id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
    };
    let both = ["--checkpoint-every", "2x,none", "--wal-compression", "lz4"];
    assert_eq!(
        ids(&both),
        [
            "base",
            "checkpoint-every=2x,wal-compression=lz4",
            "checkpoint-every=none,wal-compression=lz4"
        ]
    );
    assert_eq!(ids(&["--redo-at", "0/2000000,0/2100000"]).len(), 2);
    assert_eq!(ids(&["--checkpoint-every", "2x,none,2x"]).len(), 3);
    let usual = ids(&[]);
    assert_eq!(usual.len(), 1 + 5 + 3, "{usual:?}");
}

/// The curve falls, and codecs are better than none.
#[test]
fn the_usual_scenarios_make_sense() {
    let whatif = predict(&RANGE);
    let scenarios = whatif["scenarios"].as_array().expect("scenarios");
    let of = |id: &str| {
        let found = scenarios.iter().find(|s| s["id"] == id);
        bytes(found.unwrap_or_else(|| panic!("no {id}")), "predicted_bytes")
    };
    let curve = ["0.5x", "2x", "4x", "8x", "16x"].map(|x| of(&format!("checkpoint-every={x}")));
    assert!(curve.is_sorted_by(|a, b| a >= b), "{curve:?}");
    assert!(of("wal-compression=zstd") < of("wal-compression=lz4"));
    assert!(of("wal-compression=lz4") < of("base"));
}

/// All of the WAL begins in the middle of a cycle: what was touched before is not taken for new.
#[test]
fn wal_that_begins_anywhere_replays_to_itself() {
    let whole = predict(&["--checkpoint-every", "none"]);
    assert_eq!(whole["self_check"]["difference_bytes"], 0, "{}", whole["self_check"]);
}

/// Records before the range say when blocks were touched, those after it where checkpoints began.
#[test]
fn the_range_is_seen_with_what_lies_around_it() {
    let alone = predict(&RANGE);
    assert_eq!(alone["scenarios"][0]["redo_points"].as_array().map(Vec::len), Some(2));
    let later = ["-s", "0/2100000", "-e", "0/2200000", "--checkpoint-every", "none"];
    let whatif = predict(&later);
    assert_eq!(whatif["self_check"]["difference_bytes"], 0);
    assert_eq!(whatif["scenarios"][1]["unknown_bytes"], 0);
}

#[test]
fn threads_make_no_difference() {
    let with = |threads: &str| {
        let mut whatif =
            predict(&["-j", threads, "--max-wal-size", "4MB", "--wal-compression", "lz4"]);
        whatif["scenarios"].as_array_mut().expect("scenarios").iter_mut().for_each(|scenario| {
            // The time of the codec is measured.
            scenario["cpu_seconds"].take();
            scenario["side_effects"].take();
        });
        whatif
    };
    assert_eq!(with("1"), with("3"));
}

/// The codec was changed while this WAL was written: what stays as it was has to come out as it was.
#[test]
fn images_keep_the_codec_of_their_time() {
    let sample = sample("pg15-mixed");
    let codecs = predict_in(&sample.wal, &["--wal-compression", "off,pglz,lz4"]);
    let whatif = predict_in(&sample.wal, &["--full-page-writes", "on", "--checkpoint-every", "1x"]);
    let predicted =
        |whatif: &Value, index: usize| bytes(&whatif["scenarios"][index], "predicted_bytes");
    let base = predicted(&whatif, 0);
    assert!((predicted(&whatif, 1) - base).abs() <= base / 10_000, "{whatif}");
    for index in 1..=3 {
        let other = predicted(&codecs, index);
        assert!((other - base).abs() > base / 20, "one codec made most of it: {other}");
    }
}

/// Checkpoints that come and those that go are told together.
#[test]
fn records_that_stay_as_many_do_not_differ() {
    let sample = sample("pg15-mixed");
    let whatif = predict_in(&sample.wal, &["--checkpoint-every", "1x,2x"]);
    let of = |scenario: usize, record: &str| {
        let rows = whatif["scenarios"][scenario]["by_record"].as_array().expect("rows");
        rows.iter().find(|row| row["record"] == record).map(|row| bytes(row, "difference_bytes"))
    };
    let online = |scenario| of(scenario, "XLOG/CHECKPOINT_ONLINE").unwrap_or(0);
    assert!(online(1) >= 0, "none is lost: {whatif}");
    let points =
        |scenario: usize| whatif["scenarios"][scenario]["redo_points"].as_array().map(Vec::len);
    assert!(points(2) < points(1) && online(2) < online(1), "{whatif}");
}

/// A server that is stopped leaves a redo point, whatever the codec: which pages have images does not
/// depend on it, nor on the number of threads.
#[test]
fn the_codec_does_not_choose_the_images() {
    for name in ["pg15-mixed", "pg17-mixed", "pg12-mixed"] {
        let sample = sample(name);
        let count = |options: &[&str]| {
            let options = [&["--checkpoint-every", "none"], options].concat();
            bytes(&predict_in(&sample.wal, &options)["scenarios"][1], "fpi_count")
        };
        let plain = count(&["--wal-compression", "off"]);
        for threads in ["1", "4"] {
            let packed = count(&["--wal-compression", "pglz", "-j", threads]);
            assert_eq!(packed, plain, "{name} on {threads} threads");
        }
    }
}

/// What is noted of the records goes to a file, and pages are given up: what does not need pages stays
/// the same.
#[test]
fn little_memory_changes_only_what_needs_pages() {
    for name in ["pg13-mixed", "pg17-mixed"] {
        let sample = sample(name);
        let checkpoints = ["--checkpoint-every", "none", "--full-page-writes", "off"];
        // For another wal_level pages are kept whole; so little holds all that is kept of them otherwise.
        let options = [&checkpoints[..], &["--wal-level", "logical"]].concat();
        let with =
            |memory: &str| predict_in(&sample.wal, &[&options[..], &["--memory", memory]].concat());
        let (little, plenty) = (with("1MB"), with("1GB"));
        assert_eq!(little["self_check"], plenty["self_check"], "{name}");
        let estimated = |whatif: &Value| bytes(&whatif["scenarios"][1], "estimated_bytes");
        assert!(estimated(&little) > estimated(&plenty), "{name}: nothing was given up");
        let (little, plenty) = (&little["scenarios"][1], &plenty["scenarios"][1]);
        assert_eq!(little["fpi_count"], plenty["fpi_count"], "{name}");
        let truth = bytes(plenty, "predicted_bytes");
        let (low, high) = (bytes(little, "low_bytes"), bytes(little, "high_bytes"));
        assert!(low <= truth && truth <= high, "{name}: {truth} of {low} to {high}");
    }
}

/// Fewer images are compressed, and the range has what all of them come to.
#[test]
fn a_sample_of_images_holds_the_truth() {
    for name in ["pg14-mixed", "pg15-mixed"] {
        let sample = sample(name);
        for codec in ["pglz", "lz4", "zstd"] {
            if codec != "pglz" && name == "pg14-mixed" {
                continue;
            }
            let predict = |more: &[&str]| {
                let options = [&["--wal-compression", codec], more].concat();
                predict_in(&sample.wal, &options)["scenarios"][1].take()
            };
            let truth = bytes(&predict(&[]), "predicted_bytes");
            for share in ["2%", "10%", "40%"] {
                let sampled = predict(&["--sample", share]);
                let (low, high) = (bytes(&sampled, "low_bytes"), bytes(&sampled, "high_bytes"));
                assert!(
                    low <= truth && truth <= high,
                    "{name} {codec} {share}: {truth} of {sampled}"
                );
                assert!(bytes(&sampled, "estimated_bytes") > 0, "{sampled}");
                let notes = sampled["notes"].to_string();
                assert!(notes.contains("images were compressed"), "{notes}");
            }
            assert_eq!(bytes(&predict(&["--sample", "100%"]), "predicted_bytes"), truth);
        }
    }
}

/// Images that are compressed again tell where their pages were stamped, in whatever batches that is done.
#[test]
fn company_and_threads_make_no_difference_to_a_codec() {
    let sample = sample("pg15-mixed");
    let of = |options: &[&str]| {
        let scenario = predict_in(&sample.wal, options)["scenarios"][1].take();
        (bytes(&scenario, "predicted_bytes"), bytes(&scenario, "exact_bytes"))
    };
    let alone = of(&["-j1", "--checkpoint-every", "2x"]);
    assert_eq!(alone, of(&["-j1", "--checkpoint-every", "2x,none"]));
    assert_eq!(alone, of(&["-j3", "--checkpoint-every", "2x"]));
    let logical = ["1", "2", "8"].map(|threads| of(&["-j", threads, "--wal-level", "logical"]));
    assert!(logical.iter().all(|one| *one == logical[0]), "{logical:?}");
}

#[test]
fn a_record_that_goes_on_after_the_end_is_left_out() {
    let sample = sample("pg15-mixed");
    let whatif = predict_in(&sample.wal, &["-s", "0/0060AC88", "-e", "0/017544C1"]);
    assert_eq!(whatif["self_check"]["difference_bytes"], 0, "{whatif}");
}

/// A pipe can be read once only, and the WAL is read several times.
#[test]
fn a_pipe_is_kept_whatever_its_name() {
    let wal = wal();
    let run = |script: &str| {
        let command = Command::new("bash")
            .args(["-c", script])
            .env("BIN", env!("CARGO_BIN_EXE_walstat"))
            .env("WAL", &wal)
            .output()
            .expect("bash runs");
        (command.status.code(), String::from_utf8(command.stdout).expect("UTF-8"))
    };
    // With a range, it is read twice without a codec, too, whose time would differ.
    let asked = format!("whatif -f csv --checkpoint-every none {}", RANGE.join(" "));
    let piped = run(&format!("tar -C \"$WAL\" -cf - . | \"$BIN\" {asked} -"));
    assert!(piped.1.lines().count() == 3, "{piped:?}");
    for name in ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"] {
        assert_eq!(
            run(&format!("tar -C \"$WAL\" -cf - . | \"$BIN\" {asked} {name}")),
            piped,
            "{name}"
        );
    }
    assert_eq!(run(&format!("\"$BIN\" {asked} <(tar -C \"$WAL\" -cf - .)")), piped);
    // As zsh calls it.
    let of_zsh = format!("\"$BIN\" {asked} /proc/self/fd/5 5< <(tar -C \"$WAL\" -cf - .)");
    assert_eq!(run(&of_zsh), piped);
}

#[test]
fn a_sample_of_nothing_says_so() {
    let wal = wal();
    let notes = |options: &[&str]| {
        let path = wal.to_str().expect("UTF-8");
        let words = [&["whatif", "-f", "json", "--sample", "50%"], options, &[path]].concat();
        walstat(&words).json()["notes"].to_string()
    };
    assert!(notes(&["--checkpoint-every", "2x"]).contains("no scenario compresses"));
    assert!(!notes(&["--wal-compression", "lz4"]).contains("no scenario compresses"));
}

#[test]
fn nonsense_is_refused() {
    let wal = wal();
    let wal = wal.to_str().expect("UTF-8");
    for options in [
        &["--checkpoint-every", "0x"][..],
        &["--checkpoint-every", "1e-9x"],
        &["--checkpoint-every", "often"],
        &["--checkpoint-every", "2x", "--redo-at", "0/2000000"],
        &["--checkpoint-every", "2x", "--max-wal-size", "1GB"],
        &["--redo-at", "0/1"],
        &["--redo-at", "here"],
        &["--max-wal-size", "1kB"],
        &["--checkpoint-timeout", "1s"],
        &["--wal-compression", "gzip"],
        &["--full-page-writes", "maybe"],
        &["--data-checksums", "on"],
        &["--wal-level", "minimal"],
        &["--archive-timeout", "soon"],
        &["--wal-segment-size", "3MB"],
        &["--limit", "5"],
        &["--sample", "5"],
        &["--sample", "0%"],
        &["--sample", "101%"],
        &["--checkpiont-every", "2x"],
    ] {
        let arguments = [&["whatif"], options, &[wal]].concat();
        let ran = walstat(&arguments).exits(2);
        assert!(ran.stdout.is_empty() && !ran.stderr.is_empty(), "{options:?}");
    }
    let old = sample("pg12-mixed");
    let old = old.wal.to_str().expect("UTF-8");
    walstat(&["whatif", "--wal-compression", "lz4", old]).exits(2);
    let nothing = walstat(&["whatif", "-f", "json", "tests/no such directory"]).exits(3);
    assert!(nothing.json()["error"].is_string());
}

/// "max_wal_size" must be at least twice "wal_segment_size", says a server of 15; one of 10 starts.
#[test]
fn a_max_wal_size_that_no_server_starts_with_is_refused() {
    let said = |sample_name: &str, options: &[&str]| {
        let wal = sample(sample_name).wal;
        let ran = walstat(&[&["whatif"], options, &[wal.to_str().expect("UTF-8")]].concat());
        (ran.code, ran.stderr)
    };
    let two = ["--max-wal-size", "2MB,64MB"];
    assert_eq!(said("pg15-mixed", &two).0, Some(0));
    let (code, told) = said("pg15-mixed", &[&two[..], &["--wal-segment-size", "1MB,2MB"]].concat());
    assert_eq!(code, Some(2));
    let expected = "walstat: --max-wal-size 2MB: PostgreSQL 15 does not start with less than two \
                    segments, expected 4MB or more\n";
    assert_eq!(told, expected);
    let segments = ["--wal-segment-size", "16MB"];
    assert_eq!(said("pg10-mixed", &[&two[..], &segments].concat()).0, Some(0));
    // What the base has of its own is no setting that was asked for.
    assert_eq!(said("pg15-mixed", &["--wal-segment-size", "1GB"]).0, Some(0));
}

#[test]
fn people_see_a_line_a_scenario() {
    let wal = wal();
    let wal = wal.to_str().expect("UTF-8");
    let mut arguments = vec!["whatif", "--checkpoint-every", "2x,none", wal];
    arguments.extend(RANGE);
    let ran = walstat(&arguments).exits(0);
    for text in ["checkpoint-every=2x", "checkpoint-every=none", "3650560", "byte for byte"] {
        assert!(ran.stdout.contains(text), "no {text} in\n{}", ran.stdout);
    }
}

/// The table has 80 columns, however many settings a scenario changes.
#[test]
fn the_table_fits_a_terminal() {
    let sample = sample("pg15-mixed");
    let settings = ["--max-wal-size=4GB", "--checkpoint-timeout=15min", "--wal-compression=lz4"];
    let wal = sample.wal.to_str().expect("UTF-8");
    let text = walstat(&[&["whatif", wal], &settings[..]].concat()).stdout;
    let table = text.lines().skip_while(|line| !line.contains("WHAT IF"));
    let table: Vec<&str> = table.take_while(|line| !line.is_empty()).collect();
    assert!(table.len() >= 4, "{text}");
    assert!(table.iter().all(|line| line.chars().count() <= 80), "{}", table.join("\n"));
}

/// A page of 8 kB with this header, line pointers and last bytes.
fn page([lower, upper, special]: [u16; 3], pointers: &[(u32, u32)], end: &[u8]) -> Vec<u8> {
    let mut page = vec![0; 8192];
    let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
    put(12, [lower, upper, special, 8192 | 4].map(u16::to_le_bytes).as_flattened());
    for (at, (offset, bytes)) in (24..).step_by(4).zip(pointers) {
        put(at, &(offset | 1 << 15 | bytes << 17).to_le_bytes());
    }
    put(8192 - end.len(), end);
    page
}

/// A server logs the pages that it has, corrupt ones too, under checksums that are right.
#[test]
fn corrupt_pages_are_not_known_and_stop_nothing() {
    let entry = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 7, 7, 7, 7];
    // What is wrong, the page, and a record that changes it: resource manager, opcode, data, main data.
    type Case<'a> = (&'a str, Vec<u8>, u8, u8, &'a [u8], &'a [u8]);
    let cases: [Case<'_>; 6] = [
        ("pd_lower", page([60_000, 65_000, 8176], &[], &[]), BTREE, 0x00, &[7; 16], &[1, 0]),
        (
            "half a pointer",
            page([34, 8000, 8184], &[(8064, 16), (8000, 16)], &[]),
            GIN,
            0x20,
            &[&[3, 0, 1, 0][..], &entry[..]].concat(),
            &[2, 0],
        ),
        (
            "pd_special",
            page([32, 8000, 65_535], &[(8000, 96), (8096, 96)], &[]),
            HEAP2,
            0x10,
            &[2, 0],
            &[0; 8],
        ),
        ("an offset", page([28, 8000, 8184], &[(30_000, 8)], &[]), BRIN, 0x30, &[7; 16], &[1, 0]),
        ("no room", page([8100, 8000, 8184], &[(8000, 8)], &[]), BRIN, 0x30, &[7; 16], &[1, 0]),
        (
            "a count",
            page([32, 8184, 8184], &[], &[255, 255, 255, 255, 255, 255, 1, 0]),
            GIN,
            0x20,
            &[1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 1, 0],
            &[1, 0],
        ),
    ];
    for (name, page, rmgr, info, data, main) in cases {
        let mut wal = Wal::new(Form::of("15"), 3);
        let image = Block::new(0).image(Image::WHOLE);
        wal.add(&Rec { payload: page, ..Rec::new(XLOG, 0xB0, 0).block(image) });
        let change = Rec { main: main.to_vec(), payload: data.to_vec(), ..Rec::new(rmgr, info, 0) };
        wal.add(&change.block(Block::new(0).data(data.len() as u16)));
        wal.add(&Rec::data(40));
        let disk = wal.finish().write();
        let path = disk.path().to_str().expect("UTF-8");
        for level in ["replica", "logical"] {
            let options = ["whatif", "-f", "json", "--checkpoint-every", "none"];
            let ran = walstat(&[&options, &["--wal-level", level, path][..]].concat());
            assert_eq!(ran.code, Some(0), "{name}, {level}: {}", ran.stderr);
            assert_eq!(ran.json()["whatif"]["self_check"]["difference_bytes"], 0, "{name}");
        }
    }
}
