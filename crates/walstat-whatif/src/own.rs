//! Settings that are those of the base already: they change nothing, whatever else would be simulated.

use super::base::Base;
use super::settings::{ArchiveTimeout, Checkpoints, Settings};
use walstat_format::payload::SECOND;

/// The settings that are others than the base's.
pub(crate) fn left_out(base: &Base, asked: Settings) -> Settings {
    let mut other = asked;
    let is_steady = !base.changes_settings;
    other.full_page_writes.take_if(|on| is_steady && *on == base.full_page_writes);
    other.log_hints.take_if(|on| is_steady && *on == base.log_hints);
    other.logical.take_if(|on| *on == base.logical);
    other.compression.take_if(|codec| base.images_seen.is_one() && *codec == base.compression);
    other.segment_bytes.take_if(|bytes| *bytes == base.geometry.segment);
    let timeout = base.switches.timeout;
    other.archive_timeout.take_if(|asked| match asked {
        ArchiveTimeout::After(micros) => Some(*micros) == timeout,
        // Whoever else closes segments does not either then.
        ArchiveTimeout::Off => base.switches.is_none(),
    });
    if let Checkpoints::Timed(timed) = &mut other.checkpoints {
        let pacing = base.version.pacing;
        let segments = |bytes: u64| {
            pacing.checkpoint_segments(bytes, base.geometry.segment, pacing.completion_target)
        };
        let own_timeout =
            base.shown.timeout_seconds.map(|seconds| seconds.saturating_mul(SECOND as u64));
        timed.max_wal_size.take_if(|bytes| Some(segments(*bytes)) == base.segments);
        timed.timeout.take_if(|micros| u64::try_from(*micros).ok() == own_timeout);
        if *timed == Default::default() {
            other.checkpoints = Checkpoints::AsBase;
        }
    }
    other
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{Kind, Made, base};
    use crate::predict::runs;
    use crate::scenario::Scenario;
    use crate::settings::{Change, Timed};

    fn settings_of(base: &Base) -> Settings {
        Settings {
            checkpoints: Checkpoints::AsBase,
            full_page_writes: Some(base.full_page_writes),
            log_hints: Some(base.log_hints),
            logical: Some(base.logical),
            compression: Some(base.compression),
            archive_timeout: base.switches.timeout.map(ArchiveTimeout::After),
            segment_bytes: Some(base.geometry.segment),
        }
    }

    #[test]
    fn what_the_base_has_already_is_no_change() {
        let kinds = [Kind::Redo, Kind::CheckpointEnd, Kind::Change, Kind::Switch, Kind::Commit];
        let (_, mut base) = base(&kinds.map(|kind| Made::new(kind, 1)));
        base.switches = base.switches.of_server(Some(60));
        base.shown.timeout_seconds = Some(30);
        let timed = Timed { timeout: Some(30 * SECOND), ..Timed::default() };
        let own = Settings { checkpoints: Checkpoints::Timed(timed), ..settings_of(&base) };
        assert_eq!(left_out(&base, own), Settings::default());
        let other = Settings { full_page_writes: Some(false), ..settings_of(&base) };
        let left = left_out(&base, other);
        assert_eq!(left, Settings { full_page_writes: Some(false), ..Settings::default() });
        base.changes_settings = true;
        assert!(left_out(&base, settings_of(&base)).full_page_writes.is_some());
    }

    #[test]
    fn what_changes_nothing_is_simulated_as_the_base_alone() {
        let kinds = [Kind::Commit, Kind::Switch, Kind::Commit];
        let (_, mut base) = base(&kinds.map(|kind| Made::new(kind, 1)));
        base.switches = base.switches.of_server(Some(60));
        let same = [Change::Compression(None), Change::FullPageWrites(base.full_page_writes)];
        let runs = runs(&base, &[Scenario::of(same)]);
        let settings: Vec<&Settings> = runs.iter().map(|run| &run.settings).collect();
        assert_eq!(settings, [&Settings::default()]);
    }
}
