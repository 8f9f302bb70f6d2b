//! Timeline histories among what is found: those that no server gets as they are packed, or at all.

use super::{Found, directory_of};
use crate::input::layout::WALS;
use crate::input::names::{FileName, compression_suffix, file_name};
use crate::input::packing;
use crate::input::piece::Piece;
use crate::input::probe::Text;
use crate::input::storage::{Kind, Metadata};
use std::io;
use std::path::Path;

impl Found {
    /// Adds a history, unless its name does not say how it is packed: then no server can follow it.
    pub(super) fn add_history(&mut self, timeline: u32, path: &Path, read: io::Result<Text>) {
        let file = file_name(path);
        self.histories.note_file(timeline, path);
        match read {
            Ok(Text { bytes, codec: Some(_) }) if compression_suffix(&file).is_none() => {
                self.packed_histories.push((timeline, path.to_owned(), bytes));
            }
            Ok(Text { bytes, codec }) => match packing::misnamed_history(&file, codec) {
                Some(misnamed) => {
                    self.histories.add_unfetched(timeline, format!("only {file}: {misnamed}"));
                }
                None => self.histories.add(timeline, Ok(bytes), &file),
            },
            Err(error) => self.histories.add_unread(timeline, &error, &file),
        }
    }

    /// Judges histories that are packed under plain names. Where most segments beside them are too, the
    /// `restore_command` unpacks them all; and Barman's `get-wal` looks at the content.
    pub(super) fn settle_histories(&mut self) {
        for (timeline, path, bytes) in std::mem::take(&mut self.packed_histories) {
            let parent = directory_of(&path);
            let beside = self.pieces.iter().filter(|piece| piece.path().parent() == Some(parent));
            let plain = beside.filter(|piece| compression_suffix(&piece.file()).is_none());
            let (packed, plain): (Vec<&Piece>, Vec<&Piece>) =
                plain.partition(|piece| piece.probe.compressed);
            let is_unpacked = packed.len() > plain.len() || file_name(parent) == WALS;
            let found = "text that is packed, under a name without a suffix".to_owned();
            let read = if is_unpacked { Ok(bytes) } else { Err(found) };
            self.histories.add(timeline, read, &file_name(&path));
        }
        self.histories.mend_cut();
    }

    /// Reports what has the name of a history and is no file; whether it is that.
    pub(super) fn is_no_history(&mut self, path: &Path, metadata: &io::Result<Metadata>) -> bool {
        let Ok(Metadata { kind: Kind::Other(kind), .. }) = metadata else { return false };
        let FileName::History(timeline) = FileName::parse(&file_name(path)) else { return false };
        let found = Err::<&[u8], _>(format!("a {kind}, for which restore_command may wait"));
        self.histories.add(timeline, found, &file_name(path));
        true
    }
}
