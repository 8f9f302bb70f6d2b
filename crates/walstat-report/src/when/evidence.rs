//! From what a checkpoint's cause was told, as the sentence that the model carries.

use crate::model::size::megabytes_around;
use walstat_analyse::checkpoint::evidence::{Evidence, MaxWalSize};

/// One sentence, without a full stop.
pub(crate) fn sentence(evidence: &Evidence) -> String {
    match *evidence {
        Evidence::BackupFromRedoPoint => "a base backup started from its redo point".to_owned(),
        Evidence::AfterEndOfRecovery => "the first one after an END_OF_RECOVERY record".to_owned(),
        Evidence::BeginsTimeline(timeline) => format!("timeline {timeline} begins with it"),
        Evidence::TornRecordReplaced => {
            "a record torn by a crash was replaced before it".to_owned()
        }
        Evidence::CheckpointNeverEnded => {
            "a checkpoint had begun before it and never ended, as a crash leaves it".to_owned()
        }
        Evidence::TransactionsNeverEnded(1) => {
            "a transaction before it never ended, as a crash leaves it".to_owned()
        }
        Evidence::TransactionsNeverEnded(count) => {
            format!("{count} transactions before it never ended, as a crash leaves them")
        }
        Evidence::OidsGivenBack => {
            "the server gave back oids that it had in stock, as only one that stops does".to_owned()
        }
        Evidence::OidsLost => {
            "the server lost the oids that it had in stock, as after a crash".to_owned()
        }
        Evidence::AfterSwitch => {
            "directly after a switch to the next segment, as an archiving server stops".to_owned()
        }
        Evidence::NothingAfterIt => "nothing was written after it".to_owned(),
        Evidence::ShutdownCheckpoint => {
            "a CHECKPOINT_SHUTDOWN record, as a server writes when it stops and when it has recovered"
                .to_owned()
        }
        Evidence::AfterDatabaseCopied => "directly after a database was copied".to_owned(),
        Evidence::BeforeDatabaseCopied => "directly before a database was copied".to_owned(),
        Evidence::BeforeDatabaseDropped => "directly before a database was dropped".to_owned(),
        Evidence::NeitherTimeNorVolume { seconds } => format!(
            "{seconds} s after the previous checkpoint and in the same segment, so neither \
             checkpoint_timeout nor max_wal_size began it"
        ),
        Evidence::LateInSegment { seconds } => format!(
            "its segment had begun {seconds} s earlier, and a checkpoint by max_wal_size begins as soon as a \
             segment is full"
        ),
        Evidence::SoonerThanOthers { seconds, segments } => format!(
            "{seconds} s and {segments} segments after the previous checkpoint, closer together than the \
             others"
        ),
        Evidence::NothingBefore
        | Evidence::DoneAtOnce { .. }
        | Evidence::TookItsTime { .. }
        | Evidence::SpreadLateInSegment { .. }
        | Evidence::UnderLoad { .. }
        | Evidence::TimeoutOver { .. }
        | Evidence::SegmentsFilled { .. }
        | Evidence::SettingsExclude { .. }
        | Evidence::RegularTime { .. }
        | Evidence::RegularVolume { .. } => of_distance(evidence),
    }
}

/// The same of what its distance from the previous checkpoint told.
fn of_distance(evidence: &Evidence) -> String {
    match *evidence {
        Evidence::NothingBefore => {
            "nothing was written since the previous checkpoint, and then neither time nor volume begins one"
                .to_owned()
        }
        Evidence::DoneAtOnce { bytes } => format!(
            "complete after only {bytes} bytes of other WAL: a checkpoint by time or volume is spread out \
             longer"
        ),
        Evidence::TookItsTime { seconds, segments } => format!(
            "{seconds} s and {segments} segments after the previous checkpoint; it was spread out while \
             sessions went on writing, so nobody waited for it, and it came too soon for any \
             checkpoint_timeout"
        ),
        Evidence::SpreadLateInSegment { seconds } => format!(
            "its segment had begun {seconds} s earlier, too long ago for max_wal_size, and it was spread out \
             while sessions went on writing, so nobody waited for it"
        ),
        Evidence::UnderLoad { seconds, segments, checkpoints } => format!(
            "{seconds} s and {segments} segments after the previous checkpoint while others wrote, like \
             {checkpoints} checkpoints here: too soon for any checkpoint_timeout"
        ),
        Evidence::TimeoutOver { seconds, timeout } => {
            format!("{seconds} s after the previous checkpoint, and checkpoint_timeout is {timeout} s")
        }
        Evidence::SegmentsFilled { segments, needed } => {
            format!("{segments} segments after the previous checkpoint, and max_wal_size allows {needed}")
        }
        Evidence::SettingsExclude { seconds, timeout, segments, needed } => format!(
            "{seconds} s and {segments} segments after the previous checkpoint: checkpoint_timeout is \
             {timeout} s, and max_wal_size allows {needed} segments"
        ),
        Evidence::RegularTime { seconds, checkpoints: 1 } => {
            format!("{seconds} s after the previous checkpoint, a usual checkpoint_timeout")
        }
        Evidence::RegularTime { seconds, checkpoints } => {
            format!("{seconds} s after the previous checkpoint, like {checkpoints} checkpoints here")
        }
        Evidence::RegularVolume { segments, checkpoints, max_wal_size } => {
            let how = match checkpoints {
                1 => "at the beginning of one".to_owned(),
                _ => format!("like {checkpoints} checkpoints here"),
            };
            format!("{segments} segments after the previous checkpoint, {how}: {}", between(max_wal_size))
        }
        // What is written down has its sentence above.
        _ => String::new(),
    }
}

fn between(size: MaxWalSize) -> String {
    format!("max_wal_size between {}", megabytes_around(size.least_bytes, size.most_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_many_are_alike_is_said_unless_it_is_the_only_one() {
        let time = |checkpoints| sentence(&Evidence::RegularTime { seconds: 300, checkpoints });
        assert_eq!(time(1), "300 s after the previous checkpoint, a usual checkpoint_timeout");
        assert_eq!(time(4), "300 s after the previous checkpoint, like 4 checkpoints here");
    }

    #[test]
    fn max_wal_size_is_rounded_outwards_to_megabytes() {
        let max_wal_size = MaxWalSize { least_bytes: (64 << 20) + 5, most_bytes: (96 << 20) + 1 };
        let volume = |checkpoints| {
            sentence(&Evidence::RegularVolume { segments: 3, checkpoints, max_wal_size })
        };
        let size = "max_wal_size between 64 and 97 MB";
        let one = "3 segments after the previous checkpoint, at the beginning of one";
        assert_eq!(volume(1), format!("{one}: {size}"));
        assert_eq!(
            volume(5),
            format!("3 segments after the previous checkpoint, like 5 checkpoints here: {size}")
        );
    }
}
