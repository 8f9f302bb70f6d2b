//! One segment read by itself, as a run of its own: where it is not known yet what comes before it, or where
//! what it gave is kept.

use super::observe::Observe;
use super::observer::Observer;
use super::page_buffer::PageBuffer;
use super::pages::Pages;
use super::progress::Progress;
use super::reader::Reader;
use super::run::Run;
use super::scope::Scope;
use super::timeline_switches::TimelineSwitches;
use crate::input::digest::{Digest, Digesting};
use crate::input::input_kind::InputKind;
use crate::input::names::Standing;
use crate::input::piece::Piece;
use crate::input::segment::Segment;
use crate::input::source::Bytes;
use std::io::Read;
use std::sync::Arc;
use walstat_format::lsn::Lsn;
use walstat_format::page::Geometry;
use walstat_format::segment::number_of;

/// A segment that was read by itself.
#[derive(Debug)]
pub struct Passed {
    /// Its run, whose observer has noted the timeline switches in it.
    pub run: Run,
    /// What was counted in it.
    pub counted: Counted,
    /// Digest of all its bytes.
    pub digest: Digest,
}

/// What was counted in a segment.
#[derive(Debug)]
pub enum Counted {
    /// As it is.
    Plain(Observer),
    /// Packed, to be unpacked when its turn comes: of many segments that is less memory.
    Packed(PackedCount),
    /// It was as it is, and was taken.
    Taken,
}

/// What was counted, as bytes.
#[derive(Debug, Clone)]
pub struct PackedCount {
    /// The bytes.
    pub(super) bytes: Arc<[u8]>,
    /// Where they begin.
    pub(super) from: usize,
    /// How they are unpacked.
    pub(super) unpack: fn(&[u8]) -> Option<Observer>,
}

impl Counted {
    /// What was counted; `None`: the bytes are not what they should be.
    pub(super) fn into_observer(self) -> Option<Observer> {
        match self {
            Counted::Plain(observer) => Some(observer),
            Counted::Packed(packed) => (packed.unpack)(packed.bytes.get(packed.from..)?),
            Counted::Taken => None,
        }
    }
}

/// The segment that a piece is, as far as it is known before all others are; `None` if it cannot be told.
/// `taken_for`: what the user says the directories are.
pub(super) fn segment_of(
    index: usize,
    piece: &Piece,
    taken_for: Option<InputKind>,
    geometry: &Geometry,
) -> Option<Segment> {
    let page = piece.probe.first_page.as_ref().ok()?;
    let (number, timeline) = match &piece.name {
        Some(file) => (file.name.number(geometry.segment_bytes)?, file.name.timeline),
        None => {
            let number = number_of(page.header.address, geometry.segment_bytes)?;
            (number, page.header.timeline)
        }
    };
    Some(Segment {
        number,
        timeline,
        raw_bytes: None,
        modified: None,
        sha1: piece.name.as_ref().and_then(|name| name.sha1.clone()),
        named: piece.name.is_some(),
        // Whether a file with an unusual name has to be whole is known only at the end: so every
        // problem is noted.
        standing: Standing::of(piece.name.as_ref(), taken_for, false),
        taken_for: InputKind::Copy,
        first_page: piece.probe.first_page.clone(),
        compressed: piece.probe.compressed,
        source: piece.probe.source.streamed(),
        piece: index,
    })
}

/// How segments are read by themselves.
pub(super) struct Alone<'a> {
    /// What they have in common.
    pub scope: &'a Scope,
    /// Bytes read.
    pub progress: &'a Progress,
    /// What counts.
    pub prototype: &'a Observer,
}

impl Alone<'_> {
    /// Reads a segment whose bytes come from `bytes`, through `window`.
    pub(super) fn read(
        &self,
        segment: &Segment,
        bytes: &mut dyn Read,
        window: &mut PageBuffer,
    ) -> Passed {
        let segment_bytes = self.scope.geometry.segment_bytes;
        let long = u64::from(segment_bytes);
        let (start, end) = (Lsn(segment.number * long), Lsn((segment.number + 1) * long));
        let observer = Observer::new((self.prototype.clone(), TimelineSwitches::default()));
        let mut reader = Reader::new(self.scope, start, end, observer);
        let mut pages = Pages::through(std::mem::take(window), self.scope, self.progress);
        let from = pages.first_page_in_range(segment);
        let mut digesting = Digesting::new(bytes, segment_bytes);
        let mut bytes = Bytes::Read(Box::new(&mut digesting));
        if bytes.skip(from).is_ok() {
            pages.push_bytes(segment, from, &mut bytes, &mut reader);
        }
        drop(bytes);
        *window = pages.into_window();
        let mut run = reader.finish();
        let (mut counted, switches): (Observer, TimelineSwitches) =
            std::mem::take(&mut run.observer).into_inner().unwrap_or_default();
        run.observer = Observer::new(switches);
        counted.shrink();
        Passed { run, counted: Counted::Plain(counted), digest: digesting.finish() }
    }
}
