//! Settings of a server, as the model has them.

use super::model::settings::{SettingValues, Settings};
use walstat_analyse::checkpoint::server::KnownPace;
use walstat_names::server_settings::ServerSettings;

/// The same in the model.
pub(crate) fn told(found: &ServerSettings) -> Settings {
    Settings {
        source: found.directory.clone(),
        values: SettingValues {
            checkpoint_timeout: found.checkpoint_timeout,
            max_wal_size: found.max_wal_size,
            checkpoint_completion_target: found.checkpoint_completion_target,
            wal_compression: found.wal_compression.clone(),
            full_page_writes: found.full_page_writes,
            archive_timeout: found.archive_timeout,
            synchronous_commit: found.synchronous_commit,
            autovacuum: found.autovacuum,
            wal_segment_size: found.wal_segment_size,
            wal_level: found.wal_level.clone(),
            wal_log_hints: found.wal_log_hints,
            data_checksums: found.data_checksums,
            checkpoint_segments: found.checkpoint_segments(),
        },
    }
}

/// When such a server begins checkpoints, if all is known that it depends on.
pub(crate) fn pace(found: &ServerSettings) -> Option<KnownPace> {
    let timeout = i64::try_from(found.checkpoint_timeout?).ok()?;
    Some(KnownPace { timeout, segments: found.checkpoint_segments()? })
}
