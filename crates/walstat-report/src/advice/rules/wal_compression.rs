//! What it looks at: how much shorter full page images would be with a codec that the release has.
//!
//! Why it matters: pages of tables and indexes are mostly compressible, and images are the larger part
//! of the WAL of most servers. What is not written is not flushed, archived and sent to standbys either.
//!
//! What to do: `wal_compression`. From 15 on lz4 costs little, and zstd is advised where it saves 5 % of all
//! bytes more; what lz4 and pglz would save stands beside it, since lz4 and zstd have to be built in
//! (packages of PGDG and Debian have both). pglz (`on`) is always there and costs most; before 15 there is no
//! other.
//!
//! It speaks where a codec tried on a sample of this WAL's images would save a tenth of all bytes. Where none
//! was tried, it speaks where images are 30 % of the bytes and are stored at more than 95 % of their size.
//!
//! When to ignore it: where the processors are busy and the disks are not.
//!
//! Reference: Chen 2017; `wal_compression` in the PostgreSQL manual.

use super::{CHEN_2017, Line, evidence, is_for_checking, plain_finding, says_little};
use crate::advice::Rule;
use crate::model::Report;
use crate::model::estimate::{EstimateRow, WORTH_A_WORD};
use crate::model::finding::{AdvisedSetting, Finding, SettingChange, Severity};
use crate::model::percent::percent;
use crate::model::threshold::Threshold;
use walstat_format::image::Compression;
use walstat_format::version::VERSIONS;

/// The setting.
const WAL_COMPRESSION: &str = "wal_compression";
/// Images stored at more than this share of their size are hardly compressed.
pub(super) const HARDLY_COMPRESSED: f64 = 0.95;
/// Where nothing was tried: so much of the bytes has to be images.
const IMAGES: f64 = 0.3;
/// A codec has to save so much of all bytes.
const WORTH_IT: Threshold = Threshold::from_share(0.1, 0.05, 0.2);
/// A codec that costs more has to save so much more of all bytes.
const WORTH_MORE: f64 = 0.05;
/// From this share on it is worth a change.
const MUCH: f64 = 0.3;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    id: "wal-compression",
    summary: "another codec for page images would save 10 % of the bytes",
    text: include_str!("wal_compression.rs"),
    threshold: WORTH_IT,
    check,
};

fn check(report: &Report) -> Option<Finding> {
    if says_little(report) || is_for_checking(report) {
        return None;
    }
    let (codec, row) = better_codec(report)?;
    let stored = report.ratios.compression_ratio;
    let share = row.map(|row| -row.predicted.change_ratio);
    let advice = [advised(codec)].into_iter().chain(others(report, codec).map(Line::from));
    let finding = Finding {
        severity: match share {
            Some(share) if share >= MUCH => Severity::Warning,
            _ => Severity::Info,
        },
        evidence: evidence([
            ("compression_ratio", stored.into()),
            ("fpi_bytes", report.totals.fpi_bytes.into()),
            ("saved_ratio", share.into()),
            ("threshold", RULE.limit(report).into()),
        ]),
        side_effects: vec!["compression takes CPU time of the writing sessions".into()],
        source: CHEN_2017.into(),
        ..plain_finding(
            &RULE,
            match stored {
                Some(stored) if stored > HARDLY_COMPRESSED && stored < 1.0 => {
                    "images are hardly compressed".to_owned()
                }
                Some(stored) if stored < 1.0 => {
                    format!(
                        "images are compressed to {} of their size, and could be smaller",
                        percent(stored, 0)
                    )
                }
                _ => "images are not compressed".to_owned(),
            },
        )
    };
    Some(finding.advising(advice).quoting(report, row))
}

/// What to set. A server has pglz always; of the others a report does not tell whether they are built in.
fn advised(codec: &str) -> Line {
    let built =
        if codec == Compression::Pglz.name() { "" } else { ", if the server is built with it" };
    Line::set(AdvisedSetting::to(SettingChange::Set, WAL_COMPRESSION, setting(codec)), built)
}

/// What the setting is called: before 15 it is on or off.
fn setting(codec: &str) -> &str {
    if codec == Compression::Pglz.name() { "on" } else { codec }
}

/// The codec to take, if one is worth it, and what it comes to where that was tried.
pub(crate) fn better_codec(report: &Report) -> Option<(&'static str, Option<&EstimateRow>)> {
    let has_lz4 = VERSIONS
        .iter()
        .any(|version| version.name == report.input.postgres && version.image_flags.has_lz4());
    let usual = if has_lz4 { Compression::Lz4 } else { Compression::Pglz }.name();
    let Some(estimates) = &report.estimates else {
        let is_raw = report.ratios.compression_ratio.is_some_and(|ratio| ratio > HARDLY_COMPRESSED);
        let is_much = report.ratios.fpi_ratio.is_none_or(|ratio| ratio == 0.0 || ratio >= IMAGES);
        return (is_raw && is_much).then_some((usual, None));
    };
    let threshold = RULE.limit(report);
    let worth = |row: &&EstimateRow| -row.predicted.change_ratio >= threshold;
    let tried =
        |codec: &'static str| Some((codec, estimates.of(Some(1), Some(codec)).filter(worth)?));
    let dearer = tried(Compression::Zstd.name()).filter(|_| has_lz4);
    let best = match (tried(usual), dearer) {
        (Some(usual), Some(dearer)) => {
            let more = usual.1.predicted.change_ratio - dearer.1.predicted.change_ratio;
            if more >= WORTH_MORE { dearer } else { usual }
        }
        (usual, dearer) => usual.or(dearer)?,
    };
    Some((best.0, Some(best.1)))
}

/// What the cheaper codecs would save, for a server that lacks the advised one, each with its own figure;
/// `None` where none of them would save a word's worth.
fn others(report: &Report, advised: &str) -> Option<String> {
    let estimates = report.estimates.as_ref()?;
    let always = ("pglz, which every server has (wal_compression = on),", Compression::Pglz.name());
    let all = [(Compression::Lz4.name(), Compression::Lz4.name()), always];
    let told = all.iter().filter(|(_, codec)| *codec != advised).filter_map(|(name, codec)| {
        let saved = -estimates.of(Some(1), Some(codec))?.predicted.change_ratio;
        let text = format!("{name} would save {} of all bytes", percent(saved, 0));
        (saved >= WORTH_A_WORD).then_some(text)
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| format!("without {advised}: {}", told.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::estimate::{Estimates, Predicted};
    use crate::model::sample;

    fn tried(codecs: &[(&str, f64)]) -> Option<Estimates> {
        let row = |(codec, change): &(&str, f64)| EstimateRow {
            checkpoints_apart: Some(1),
            wal_compression: Some((*codec).to_owned()),
            predicted: Predicted {
                predicted_bytes: ((1.0 + change) * f64::from(100 << 20)) as u64,
                change_ratio: *change,
                low_bytes: 0,
                high_bytes: 0,
            },
        };
        Some(Estimates { scenarios: codecs.iter().map(row).collect(), ..Estimates::default() })
    }

    fn found(codecs: &[(&str, f64)], total: u64) -> Option<Finding> {
        let mut report = sample::report(total / 2, total);
        report.estimates = tried(codecs);
        check(&report)
    }

    #[test]
    fn it_speaks_from_a_tenth_of_the_bytes_on_and_above_the_volume_only() {
        let finding = found(&[("lz4", -0.35), ("zstd", -0.37)], 100 << 20).expect("a finding");
        assert_eq!((finding.severity, finding.advice.len()), (Severity::Warning, 1));
        assert_eq!(finding.estimate, Some((100 << 20) - (0.65 * f64::from(100 << 20)) as u64));
        assert_eq!(finding.settings["wal_compression"], "lz4");
        let near = found(&[("lz4", -0.10), ("zstd", -0.14)], 100 << 20).expect("a finding");
        assert_eq!(
            (near.severity, &near.settings["wal_compression"]),
            (Severity::Info, &"lz4".into())
        );
        assert!(found(&[("lz4", -0.09), ("zstd", -0.09)], 100 << 20).is_none());
        assert!(found(&[("lz4", -0.35)], 15 << 20).is_none());
        // What is compressed with lz4 already may gain with zstd.
        let dearer = found(&[("lz4", 0.0), ("zstd", -0.2)], 100 << 20).expect("a finding");
        assert_eq!(dearer.advice, ["wal_compression = zstd, if the server is built with it"]);
    }

    #[test]
    fn the_best_codec_is_advised_and_others_have_their_own_figures() {
        let told = |codecs: &[(&str, f64)]| {
            let finding = found(codecs, 100 << 20).expect("a finding");
            (finding.settings["wal_compression"].clone(), finding.advice)
        };
        let built = "if the server is built with it";
        let (codec, advice) = told(&[("pglz", -0.4), ("lz4", -0.5), ("zstd", -0.6)]);
        assert_eq!(codec, "zstd");
        let pglz =
            "pglz, which every server has (wal_compression = on), would save 40 % of all bytes";
        let others = format!("without zstd: lz4 would save 50 % of all bytes; {pglz}");
        assert_eq!(advice, [format!("wal_compression = zstd, {built}"), others]);
        let (codec, advice) = told(&[("pglz", -0.4), ("lz4", -0.5), ("zstd", -0.54)]);
        assert_eq!(codec, "lz4");
        assert_eq!(
            advice,
            [format!("wal_compression = lz4, {built}"), format!("without lz4: {pglz}")]
        );
        // What saves nothing is not named.
        assert_eq!(told(&[("pglz", 0.0), ("lz4", -0.5)]).1.len(), 1);
    }

    #[test]
    fn where_nothing_was_tried_it_looks_at_how_images_are_stored() {
        for (stored, words) in
            [(1.0, Some("images are not")), (0.97, Some("images are hardly")), (0.5, None)]
        {
            let mut report = sample::report(80 << 20, 100 << 20);
            report.ratios.compression_ratio = Some(stored);
            let title = check(&report).map(|finding| finding.title);
            assert_eq!(title.is_some(), words.is_some());
            assert!(title.unwrap_or_default().starts_with(words.unwrap_or_default()));
        }
        let few_images = sample::report(20 << 20, 100 << 20);
        assert!(check(&few_images).is_none());
    }

    #[test]
    fn an_old_release_has_on_alone() {
        let mut report = sample::report(80 << 20, 100 << 20);
        report.input.postgres = "13".into();
        assert_eq!(check(&report).map(|f| f.advice), Some(vec!["wal_compression = on".into()]));
    }
}
