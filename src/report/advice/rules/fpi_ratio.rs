//! What it looks at: the share of full page images in all bytes of the records.
//!
//! Why it matters: an image of 8 kB is written when a page is touched for the first time after
//! a checkpoint. Above 70 % most of the WAL repeats pages rather than telling changes.
//!
//! What to do: space checkpoints out, so that a page is imaged less often; compress images.
//!
//! When to ignore it: shortly after a start, or on a server that writes little.
//!
//! Reference: Chen 2017; `full_page_writes`, `checkpoint_timeout`, `max_wal_size` and
//! `wal_compression` in the PostgreSQL manual.

use super::{CHEN_2017, VOLUME_BYTES, recovery_price};
use crate::report::advice::Rule;
use crate::report::model::{Finding, Report, Severity};
use std::collections::BTreeMap;

/// Above this share of the bytes, images are worth a look.
const THRESHOLD: f64 = 0.70;
/// Images stored at more than this share of their size are hardly compressed.
const UNCOMPRESSED: f64 = 0.95;

/// The rule.
pub const RULE: Rule = Rule {
    id: "fpi-ratio",
    summary: "full page images are more than 70 % of the bytes",
    text: include_str!("fpi_ratio.rs"),
    check,
};

fn check(report: &Report) -> Option<Finding> {
    let ratio = report.ratios.fpi_ratio?;
    if ratio <= THRESHOLD || report.totals.total_bytes < VOLUME_BYTES {
        return None;
    }
    let mut advice = vec![
        "checkpoint_timeout: raise it (30min is common), so that a page is imaged less often"
            .into(),
        "max_wal_size: raise it, so that checkpoints come by time and not by volume".into(),
    ];
    let mut side_effects = vec![recovery_price(), "pg_wal takes up to max_wal_size of disk".into()];
    if report.ratios.compression_ratio.is_some_and(|stored| stored > UNCOMPRESSED) {
        advice.push(compression_advice(report));
        side_effects.push("compression of images takes CPU time of the writing sessions".into());
    }
    Some(Finding {
        rule: RULE.id,
        severity: Severity::Warning,
        title: format!("{:.1} % of the bytes are full page images", ratio * 100.0),
        evidence: BTreeMap::from([
            ("fpi_ratio", ratio),
            ("threshold", THRESHOLD),
            ("fpi_bytes", report.totals.fpi_bytes as f64),
            ("fpi_count", report.totals.fpi_count as f64),
        ]),
        advice,
        side_effects,
        ignore_when: "the server writes little, or the range begins right behind a checkpoint",
        estimate: None,
        source: CHEN_2017,
    })
}

/// lz4 and zstd came with 15; before there is pglz only.
fn compression_advice(report: &Report) -> String {
    let lz4 = crate::wal::version::VERSIONS
        .iter()
        .any(|v| v.name == report.input.postgres && v.image_flags.has_lz4());
    match lz4 {
        true => "wal_compression = lz4: images are hardly compressed".into(),
        false => "wal_compression = on: images are hardly compressed".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::model::sample;

    #[test]
    fn it_speaks_above_the_threshold_and_the_volume_only() {
        let found = |fpi, total| check(&sample::report(fpi, total)).is_some();
        assert!(found(80 << 20, 100 << 20));
        assert!(!found(70 << 20, 100 << 20));
        assert!(!found(8 << 20, 10 << 20));
    }

    #[test]
    fn compression_is_advised_where_there_is_none() {
        let report = sample::report(80 << 20, 100 << 20);
        let advice = check(&report).map(|finding| finding.advice.join("\n")).unwrap_or_default();
        assert!(advice.contains("wal_compression = lz4"), "{advice}");
    }
}
