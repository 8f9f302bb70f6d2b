//! What other settings would have written, estimated from a sample: `walstat whatif` is exact.

use serde::{Deserialize, Serialize};

/// A change by less than this share of all bytes is none.
pub(crate) const WORTH_A_WORD: f64 = 0.01;

/// A range of more than so many points is wide.
const WIDE: f64 = 0.10;

/// Bytes of records that a scenario comes to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Predicted {
    /// The best guess, to be held against the total bytes of the report.
    pub predicted_bytes: u64,
    /// (predicted − total) / total.
    pub change_ratio: f64,
    /// Two standard errors of the sample below it; the guess itself where everything was looked at.
    pub low_bytes: u64,
    /// Two standard errors above it.
    pub high_bytes: u64,
}

impl Predicted {
    /// What there is now.
    pub fn base_bytes(&self) -> u64 {
        (self.predicted_bytes as f64 / (1.0 + self.change_ratio)).round() as u64
    }

    /// Whether the range includes saving nothing worth mentioning. The figure to show is then the low end, as
    /// the most that may be saved.
    pub fn may_save_nothing(&self) -> bool {
        self.high_bytes as f64 >= self.base_bytes() as f64 * (1.0 - WORTH_A_WORD)
    }

    /// The change at the low end of the range.
    pub fn best_change_ratio(&self) -> f64 {
        let base = self.base_bytes().max(1) as f64;
        (self.low_bytes as f64 - base) / base
    }

    /// The changes at the high end and at the low end of the range, where these are not as far from the guess
    /// as each other: by a quarter, and by more than a point.
    pub fn uneven_range(&self) -> Option<(f64, f64)> {
        let base = self.base_bytes().max(1) as f64;
        let up = self.high_bytes.saturating_sub(self.predicted_bytes) as f64 / base;
        let down = self.predicted_bytes.saturating_sub(self.low_bytes) as f64 / base;
        let is_uneven = (up - down).abs() > (up.max(down) / 4.0).max(0.01);
        is_uneven.then(|| ((self.high_bytes as f64 - base) / base, self.best_change_ratio()))
    }

    /// What it saves for certain, bytes, where the range is too wide to go by the guess.
    pub(crate) fn saved_at_least(&self) -> Option<u64> {
        let base = self.base_bytes();
        let width = self.high_bytes.saturating_sub(self.low_bytes) as f64 / base.max(1) as f64;
        (width > WIDE).then(|| base.saturating_sub(self.high_bytes))
    }

    /// The same where it may also come to what `other` says.
    pub(crate) fn or(self, other: &Predicted) -> Predicted {
        Predicted {
            low_bytes: self.low_bytes.min(other.low_bytes),
            high_bytes: self.high_bytes.max(other.high_bytes),
            ..self
        }
    }
}

/// One combination of settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EstimateRow {
    /// Checkpoints that volume or clock begin so many times as far apart; null: none of those in the range.
    /// Those that somebody asked for stay.
    pub checkpoints_apart: Option<u32>,
    /// `wal_compression`; null: images are stored as they are now.
    pub wal_compression: Option<String>,
    /// What it comes to.
    #[serde(flatten)]
    pub predicted: Predicted,
}

/// What less WAL spares beside what makes it less, since fewer checkpoints by volume come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spared {
    /// Where there was so many times as much WAL as would be.
    pub times: f64,
    /// The share of all bytes that is likely to be spared.
    pub likely: f64,
    /// The most that may be.
    pub most: f64,
}

/// What was looked at, and every combination of settings that was tried.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimates {
    /// Images that were looked at.
    pub sampled_images: u64,
    /// Those of them that were compressed.
    pub compressed_images: u64,
    /// Redo points in the range.
    pub redo_points: u64,
    /// Those of them that volume or clock brought, which other settings move.
    pub moving_redo_points: u64,
    /// Redo points in the range that somebody asked for, base backups left out.
    #[serde(default)]
    pub asked_redo_points: u64,
    /// What it comes to without them; null where there is none.
    #[serde(default)]
    pub unasked: Option<Predicted>,
    /// What it comes to without those of base backups; null where there is none.
    #[serde(default)]
    pub without_backups: Option<Predicted>,
    /// Whether those were all, so that no sampling error is left.
    pub is_whole: bool,
    /// What less WAL spares, by how much less it is; empty where volume began no checkpoint. For the rules.
    #[serde(skip)]
    pub spared: Vec<Spared>,
    /// The combinations; the first is the WAL as it is.
    pub scenarios: Vec<EstimateRow>,
}

impl Estimates {
    /// The combination of checkpoints so many times as far apart, or none, and a codec, if it was tried.
    pub(crate) fn of(&self, apart: Option<u32>, codec: Option<&str>) -> Option<&EstimateRow> {
        self.scenarios
            .iter()
            .find(|row| row.checkpoints_apart == apart && row.wal_compression.as_deref() == codec)
    }

    /// The widest distance that was tried and is not wider than `times` that of now; none at all where
    /// settings move no more redo points than that.
    pub(crate) fn widest(&self, times: u64) -> Option<u32> {
        if times > self.moving_redo_points {
            return None;
        }
        let tried = self.scenarios.iter().filter_map(|row| row.checkpoints_apart);
        Some(tried.filter(|tried| u64::from(*tried) <= times).max().unwrap_or(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_told_as_it_is() {
        let of = |low_bytes, high_bytes| Predicted {
            predicted_bytes: 600,
            change_ratio: -0.4,
            low_bytes,
            high_bytes,
        };
        assert_eq!(of(560, 640).uneven_range(), None);
        assert_eq!(of(460, 745).uneven_range(), None);
        let (least, most) = of(590, 750).uneven_range().expect("a range");
        assert!((least + 0.25).abs() < 1e-9 && (most + 0.41).abs() < 1e-9);
        assert_eq!(of(590, 750).saved_at_least(), Some(250));
        assert_eq!(of(560, 640).saved_at_least(), None);
    }
}
