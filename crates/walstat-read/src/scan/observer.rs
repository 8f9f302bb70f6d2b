//! A dimension of a type that the reader does not know, so that the reader is compiled once; only the
//! loop over usual records is compiled for each type.
//!
//! Records are handed on in one of two ways. Usually some hundreds are parsed first, and each dimension
//! then goes over them in a loop of its own: their bytes are still in the cache, and dimensions do not
//! compete for registers. For a dimension that does very little for a record it is faster to get each
//! at once ([`Observer::at_once`]).

use super::fast::{Direct, UsualRecords};
use super::observe::{Observe, Shown};
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use walstat_format::lsn::Lsn;
use walstat_format::record::Record;

/// A dimension of any type. Cloning clones the dimension.
pub struct Observer(Box<dyn Counter>);

impl Observer {
    /// A dimension that gets records in batches.
    pub fn new<O: Observe>(observer: O) -> Observer {
        Observer(Box::new(Single::<O, InBatches>(observer, PhantomData)))
    }

    /// A dimension that does very little for a record, and gets each at once. The loop over usual
    /// records is compiled once more for it.
    pub fn at_once<O: Observe>(observer: O) -> Observer {
        Observer(Box::new(Single::<O, EachAtOnce>(observer, PhantomData)))
    }

    /// Two dimensions that see the same records.
    pub fn both(one: Observer, other: Observer) -> Observer {
        Observer(Box::new(Both(one, other)))
    }

    /// The two dimensions that it was made of.
    pub fn into_both(self) -> Option<(Observer, Observer)> {
        let both: Box<Both> = self.0.into_any().downcast().ok()?;
        Some((both.0, both.1))
    }

    /// The dimension itself, if it is of this type.
    ///
    /// # Errors
    ///
    /// The same observer, if the dimension is of another type.
    pub fn into_inner<O: Observe>(self) -> Result<O, Observer> {
        let Observer(counter) = self;
        let any = counter.as_any();
        if !any.is::<Single<O, InBatches>>() && !any.is::<Single<O, EachAtOnce>>() {
            return Err(Observer(counter));
        }
        let any = match counter.into_any().downcast::<Single<O, InBatches>>() {
            Ok(single) => return Ok(single.0),
            Err(any) => any,
        };
        any.downcast::<Single<O, EachAtOnce>>()
            .map(|single| single.0)
            .map_err(|_| Observer::default())
    }

    /// Whether it needs all bytes of every record.
    pub(super) fn needs_whole(&self) -> bool {
        self.0.needs_whole()
    }

    /// Whether it stores records until everything before them was counted.
    pub(super) fn keeps(&self) -> bool {
        self.0.keeps()
    }

    /// Takes note of one record.
    pub(super) fn observe(&mut self, record: &Record<'_>, selected: bool) {
        self.0.observe_all(&[Shown { record: *record, selected }]);
    }

    /// Reads usual records and takes note of them.
    pub(super) fn read_usual(&mut self, records: &mut UsualRecords<'_, '_>) {
        self.0.read_usual(records);
    }

    /// Takes note that records are missing here.
    pub(super) fn lost(&mut self, range: Range<Lsn>) {
        self.0.lost(range);
    }

    /// Takes note that nothing was written here.
    pub(super) fn unused(&mut self, range: Range<Lsn>) {
        self.0.unused(range);
    }

    /// Adds what a copy of the same dimension has seen in the run after this one.
    pub(super) fn merge(&mut self, later: Observer) {
        self.0.merge(later);
    }

    /// Says that nothing earlier can come any more.
    pub(super) fn settle(&mut self) {
        self.0.settle();
    }

    /// Takes as little memory as it can.
    pub(super) fn shrink(&mut self) {
        self.0.shrink();
    }
}

/// Counts nothing.
impl Default for Observer {
    fn default() -> Observer {
        Observer::new(())
    }
}

impl Clone for Observer {
    fn clone(&self) -> Observer {
        Observer(self.0.copy())
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Observer")
    }
}

/// The methods of [`Observe`], without its type.
trait Counter: Send {
    fn copy(&self) -> Box<dyn Counter>;
    fn as_any(&self) -> &dyn Any;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
    fn needs_whole(&self) -> bool;
    fn keeps(&self) -> bool;
    fn observe_all(&mut self, records: &[Shown<'_>]);
    fn read_usual(&mut self, records: &mut UsualRecords<'_, '_>);
    fn lost(&mut self, range: Range<Lsn>);
    fn unused(&mut self, range: Range<Lsn>);
    fn merge(&mut self, later: Observer);
    fn settle(&mut self);
    fn shrink(&mut self);
}

/// How usual records are handed on.
trait Way: Send + 'static {
    fn read_usual<O: Observe>(observer: &mut O, records: &mut UsualRecords<'_, '_>);
}

/// A batch at a time.
struct InBatches;

/// Each at once.
struct EachAtOnce;

impl Way for InBatches {
    fn read_usual<O: Observe>(observer: &mut O, records: &mut UsualRecords<'_, '_>) {
        records.read_batches(&mut |batch: &[Shown<'_>]| observer.observe_all(batch));
    }
}

impl Way for EachAtOnce {
    fn read_usual<O: Observe>(observer: &mut O, records: &mut UsualRecords<'_, '_>) {
        records.read(Direct(observer));
    }
}

/// A dimension of a known type.
struct Single<O, W>(O, PhantomData<W>);

impl<O: Observe, W: Way> Counter for Single<O, W> {
    fn copy(&self) -> Box<dyn Counter> {
        Box::new(Single::<O, W>(self.0.clone(), PhantomData))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }

    fn needs_whole(&self) -> bool {
        self.0.needs_whole()
    }

    fn keeps(&self) -> bool {
        O::KEEPS
    }

    fn observe_all(&mut self, records: &[Shown<'_>]) {
        self.0.observe_all(records);
    }

    fn read_usual(&mut self, records: &mut UsualRecords<'_, '_>) {
        W::read_usual(&mut self.0, records);
    }

    fn lost(&mut self, range: Range<Lsn>) {
        self.0.lost(range);
    }

    fn unused(&mut self, range: Range<Lsn>) {
        self.0.unused(range);
    }

    fn merge(&mut self, later: Observer) {
        let later = later.into_inner();
        debug_assert!(later.is_ok(), "runs of one scan are counted by copies of one dimension");
        if let Ok(later) = later {
            self.0.merge(later);
        }
    }

    fn settle(&mut self) {
        self.0.settle();
    }

    fn shrink(&mut self) {
        self.0.shrink();
    }
}

/// Two dimensions of any types.
struct Both(Observer, Observer);

impl Counter for Both {
    fn copy(&self) -> Box<dyn Counter> {
        Box::new(Both(self.0.clone(), self.1.clone()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }

    fn needs_whole(&self) -> bool {
        self.0.needs_whole() || self.1.needs_whole()
    }

    fn keeps(&self) -> bool {
        self.0.keeps() || self.1.keeps()
    }

    fn observe_all(&mut self, records: &[Shown<'_>]) {
        self.0.0.observe_all(records);
        self.1.0.observe_all(records);
    }

    fn read_usual(&mut self, records: &mut UsualRecords<'_, '_>) {
        records.read_batches(&mut |batch: &[Shown<'_>]| self.observe_all(batch));
    }

    fn lost(&mut self, range: Range<Lsn>) {
        self.0.lost(range.clone());
        self.1.lost(range);
    }

    fn unused(&mut self, range: Range<Lsn>) {
        self.0.unused(range.clone());
        self.1.unused(range);
    }

    fn merge(&mut self, later: Observer) {
        let later = later.into_both();
        debug_assert!(later.is_some(), "runs of one scan are counted by copies of one dimension");
        if let Some((one, other)) = later {
            self.0.merge(one);
            self.1.merge(other);
        }
    }

    fn settle(&mut self) {
        self.0.settle();
        self.1.settle();
    }

    fn shrink(&mut self) {
        self.0.shrink();
        self.1.shrink();
    }
}
