//! Timeline histories among what is found: those that no server gets as they are packed, or at all.

use super::{Found, directory_of};
use crate::codec::Codec;
use crate::history::{self, PlainHistory};
use crate::layout::WALS;
use crate::names::{FileName, compression_suffix, file_name};
use crate::neighbours::is_asked_for;
use crate::packing;
use crate::piece::Piece;
use crate::probe::Text;
use crate::problem::Fetched;
use crate::storage::{Kind, Metadata};
use crate::suffixes::{self, Suffix};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

impl Found {
    /// Adds a history, unless the tool of its suffix does not unpack it: then no server can follow it.
    pub fn add_history(&mut self, timeline: u32, path: &Path, read: io::Result<Text>) {
        let file = file_name(path);
        self.histories.note_file(timeline, path);
        match read {
            Ok(Text { bytes, codec }) if compression_suffix(&file).is_none() => {
                let path = PathBuf::from(path.to_string_lossy().into_owned());
                let ancestors = history::parse(timeline, &bytes);
                self.histories.add_plain(PlainHistory { timeline, path, ancestors, codec });
            }
            Ok(text) => match packing::misnamed_history(&file, &text) {
                Some(misnamed) => {
                    self.histories.add_unfetched(timeline, format!("only {file}: {misnamed}"));
                }
                None => self.histories.add(timeline, Ok(text.bytes), &file),
            },
            Err(error) => {
                // Where the system refuses it, or its tool fails on it, a server does not get it either.
                let is_lost = error.raw_os_error().is_some() || compression_suffix(&file).is_some();
                let fetched = is_lost.then_some(Fetched::NotAtAll);
                self.histories.add_unread(timeline, &error, fetched, &file);
            }
        }
    }

    /// Judges histories under plain names, when all segments are known: the same `restore_command` fetches
    /// those beside them, and copies all as they are, or unpacks all. Archivers with directories for groups
    /// of segments look at the content.
    pub fn judge_plain_histories(&mut self) {
        let mut directories: BTreeMap<PathBuf, Vec<PlainHistory>> = BTreeMap::new();
        for history in self.histories.take_plain() {
            let parent = directory_of(&history.path).to_owned();
            directories.entry(parent).or_default().push(history);
        }
        for (directory, histories) in directories {
            self.judge_beside(&directory, histories);
        }
        self.histories.mend_cut();
    }

    /// The same of those in one directory.
    fn judge_beside(&mut self, directory: &Path, histories: Vec<PlainHistory>) {
        let asked_for = || self.pieces.iter().filter(|piece| is_asked_for(piece));
        let is_beside = |piece: &&Piece| piece.path().parent() == Some(directory);
        let beside: Vec<&Piece> = asked_for().filter(is_beside).collect();
        // Whoever keeps histories apart has one way for all of them.
        let beside = if beside.is_empty() { asked_for().collect() } else { beside };
        let is_looked_at = file_name(directory) == WALS
            || beside.iter().any(|piece| self.directories.is_group(piece.directory));
        let tool = tool_for(&beside).filter(|_| !is_looked_at);
        let suffix = suffix_of_most(&beside);
        for PlainHistory { timeline, path, ancestors, codec } in histories {
            let file = file_name(&path);
            let apart = tool.and_then(|tool| packing::not_unpacked(codec, tool, tool.usual));
            if let Some(apart) = apart {
                self.histories.add_unfetched(timeline, format!("only {file}: {apart}"));
            } else if tool.is_none() && !is_looked_at && codec.is_some() {
                let found = "text that is packed, under a name without a suffix".to_owned();
                self.histories.add(timeline, Err::<&[u8], _>(found), &file);
            } else {
                // pg_receivewal packs segments alone.
                let suffix = suffix.filter(|_| codec.is_none() && !is_looked_at);
                self.notes.extend(suffix.map(|suffix| {
                    format!(
                        "{file} among files under .{suffix}: a restore_command has to fetch both kinds, and \
                         unpack one"
                    )
                }));
                self.histories.add_parsed(timeline, ancestors, &file);
            }
        }
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

/// The tool that unpacks the segments under plain names, if most of them are packed.
fn tool_for(beside: &[&Piece]) -> Option<&'static Suffix> {
    let plain = beside.iter().filter(|piece| compression_suffix(&piece.file()).is_none());
    let codecs: Vec<Option<Codec>> = plain.map(|piece| piece.probe.source.codec()).collect();
    let packed: Vec<Codec> = codecs.iter().copied().flatten().collect();
    // Where there are as many of both, they are copied as they are.
    let are_unpacked = packed.len() * 2 > codecs.len();
    are_unpacked.then(|| suffixes::best_for(&packed)).flatten()
}

/// The suffix of a compression that most segments have.
fn suffix_of_most(beside: &[&Piece]) -> Option<&'static str> {
    let suffixes = beside.iter().filter_map(|piece| packing::usual_suffix(&piece.file()));
    let suffixes: Vec<&str> = suffixes.collect();
    suffixes.first().copied().filter(|_| suffixes.len() * 2 > beside.len())
}
