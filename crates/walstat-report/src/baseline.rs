//! An earlier report, read back: only what a comparison needs.

use super::model::{Ratios, SCHEMA, shown_schema};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// What an earlier report says.
#[derive(Debug, Clone, PartialEq)]
pub struct Baseline {
    /// The report's file.
    pub(crate) path: PathBuf,
    /// Bytes of records per commit; `None` if nothing was committed.
    pub(crate) bytes_per_commit: Option<f64>,
}

/// Why a file is no baseline.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// No JSON, or not a report's.
    #[error("no walstat report, expected the output of 'walstat --format json'")]
    NoReport,
    /// A report, of another major version.
    #[error("a report of schema {}, expected {SCHEMA}", shown_schema(found))]
    Schema {
        /// The report's schema.
        found: String,
    },
}

/// The keys of a report that are used. Others may be added to reports later.
#[derive(Deserialize)]
struct Keys {
    #[serde(rename = "walstat")]
    _walstat: String,
    schema: String,
    ratios: Ratios,
}

/// Reads the JSON of the report at `path`.
pub fn parse(path: &Path, json: &[u8]) -> Result<Baseline, BaselineError> {
    // The library's own text would quote what it found, in whatever file that is.
    let keys: Keys = serde_json::from_slice(json).map_err(|_| BaselineError::NoReport)?;
    let major = |schema: &str| schema.split('.').next().map(str::to_owned);
    if major(&keys.schema) != major(SCHEMA) {
        return Err(BaselineError::Schema { found: keys.schema });
    }
    let bytes_per_commit = keys.ratios.bytes_per_commit;
    // No report has a commit without bytes.
    if bytes_per_commit.is_some_and(|bytes| !bytes.is_finite() || bytes <= 0.0) {
        return Err(BaselineError::NoReport);
    }
    Ok(Baseline { path: path.to_owned(), bytes_per_commit })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample;

    fn per_commit(json: &[u8]) -> Result<Option<f64>, BaselineError> {
        parse(Path::new("before.json"), json).map(|baseline| baseline.bytes_per_commit)
    }

    #[test]
    fn our_own_report_is_one() {
        let mut report = sample::report(1, 2);
        report.ratios.bytes_per_commit = Some(1234.5);
        let json = serde_json::to_vec(&report).unwrap_or_default();
        assert_eq!(per_commit(&json).ok(), Some(Some(1234.5)));
    }

    #[test]
    fn anything_else_is_refused() {
        for json in [
            "",
            "[]",
            "{}",
            r#"{"walstat": "1", "schema": "1.0"}"#,
            r#"{"walstat": "1", "schema": "1.0", "ratios": {}}"#,
            r#"{"schema": "1.0", "ratios": {"bytes_per_commit": 1}}"#,
            r#"{"walstat": "1", "schema": "1.0", "ratios": {"bytes_per_commit": 0}}"#,
            r#"{"walstat": "1", "schema": "1.0", "ratios": {"bytes_per_commit": -3.5}}"#,
            r#"{"walstat": "1", "schema": "1.0", "ratios": {"bytes_per_commit": 1e400}}"#,
        ] {
            assert!(matches!(per_commit(json.as_bytes()), Err(BaselineError::NoReport)), "{json}");
        }
        let newer = br#"{"walstat": "9", "schema": "2.0", "ratios": {"bytes_per_commit": 1}}"#;
        assert!(matches!(per_commit(newer), Err(BaselineError::Schema { .. })));
        let later = br#"{"walstat": "9", "schema": "1.7", "ratios": {"bytes_per_commit": null}}"#;
        assert_eq!(per_commit(later).ok(), Some(None));
    }
}
