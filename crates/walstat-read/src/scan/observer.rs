//! A dimension of a type that the reader does not know, so that the reader is compiled once; only the
//! loop over usual records is compiled for each type.
//!
//! Records are handed on in one of two ways. Usually up to 128 records (`BATCH_RECORDS` in `fast.rs`) are
//! parsed first, and each dimension then goes over them in a loop of its own: their bytes are still in the
//! cache, and dimensions do not compete for registers. For a dimension that does very little for a record it
//! is faster to get each at once ([`Observer::at_once`]).

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

    /// Reads usual records and takes note of them.
    pub(super) fn read_usual(&mut self, records: &mut UsualRecords<'_, '_>) {
        self.0.read_usual(records);
    }
}

/// So that two of them make a pair, as dimensions of known types do.
impl Observe for Observer {
    fn observe(&mut self, record: &Record<'_>) {
        self.0.observe_all(&[Shown { record: *record, selected: true }]);
    }

    fn passed_over(&mut self, record: &Record<'_>) {
        self.0.observe_all(&[Shown { record: *record, selected: false }]);
    }

    fn observe_all(&mut self, records: &[Shown<'_>]) {
        self.0.observe_all(records);
    }

    fn needs_whole(&self) -> bool {
        self.0.needs_whole()
    }

    fn keeps(&self) -> bool {
        self.0.keeps()
    }

    fn share(&mut self) {
        self.0.share();
    }

    fn lost(&mut self, range: Range<Lsn>) {
        self.0.lost(range);
    }

    fn unused(&mut self, range: Range<Lsn>) {
        self.0.unused(range);
    }

    fn merge(&mut self, later: Observer) {
        self.0.merge(later);
    }

    fn settle(&mut self) {
        self.0.settle();
    }

    fn shrink(&mut self) {
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
    fn share(&mut self);
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
        self.0.keeps()
    }

    fn observe_all(&mut self, records: &[Shown<'_>]) {
        self.0.observe_all(records);
    }

    fn read_usual(&mut self, records: &mut UsualRecords<'_, '_>) {
        W::read_usual(&mut self.0, records);
    }

    fn share(&mut self) {
        self.0.share();
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
