//! Counts and bytes by record type, in a dense table: no hashing, no allocation a record.

use crate::scan::record::{Observe, Record};
use crate::wal::block::{Image, walk};
use crate::wal::image::HAS_HOLE;
use crate::wal::rmgr::RecordType;
use crate::wal::version::Version;
use serde::{Deserialize, Serialize};

/// Sums over a set of records; bytes where not said otherwise. Definitions are the contract's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Records.
    pub count: u64,
    /// Total length, images included.
    pub total_bytes: u64,
    /// Stored images.
    pub fpi_bytes: u64,
    /// Main data.
    pub main_data_bytes: u64,
    /// Block data.
    pub block_data_bytes: u64,
    /// How many images.
    pub fpi_count: u64,
    /// How many records with at least one.
    pub fpi_records: u64,
    /// How many images are stored for consistency checking only.
    pub fpi_check_count: u64,
    /// Their bytes.
    pub fpi_check_bytes: u64,
    /// Stored bytes of images that are not compressed.
    pub raw_fpi_bytes: u64,
    /// How many images are compressed.
    pub compressed_count: u64,
    /// Holes of the compressed images.
    pub compressed_hole_bytes: u64,
}

impl Totals {
    /// Total length without images: what the record itself takes.
    pub fn record_bytes(&self) -> u64 {
        self.total_bytes - self.fpi_bytes
    }

    /// Record headers, block headers, image headers.
    pub fn header_bytes(&self) -> u64 {
        self.record_bytes() - self.main_data_bytes - self.block_data_bytes
    }

    /// How many images are replayed.
    pub fn fpi_apply_count(&self) -> u64 {
        self.fpi_count - self.fpi_check_count
    }

    /// What the images would be uncompressed, with data pages of `page_bytes`.
    pub fn uncompressed_fpi_bytes(&self, page_bytes: u32) -> u64 {
        let whole = self.compressed_count * u64::from(page_bytes);
        self.raw_fpi_bytes + whole.saturating_sub(self.compressed_hole_bytes)
    }

    #[inline(always)]
    fn count_record(&mut self, record: &Record<'_>) {
        self.count += 1;
        self.total_bytes += u64::from(record.header.total_bytes);
        self.main_data_bytes += u64::from(record.parts.main_data_bytes);
        self.block_data_bytes += u64::from(record.parts.block_data_bytes);
    }

    /// Counts the images of a record. A call of its own: an image is worth one, and the loop over
    /// all records keeps its registers. Returns the size of data pages if an image tells it (it
    /// has neither a hole nor compression), else 0.
    #[inline(never)]
    fn count_images(&mut self, head: &[u8], total_bytes: u32, version: &Version) -> u32 {
        self.fpi_records += 1;
        let mut page_bytes = 0;
        // Whoever has a record has walked over it before: it cannot fail.
        let walked = walk(head, total_bytes, version, |block| {
            if let Some(image) = &block.image {
                page_bytes = page_bytes.max(self.count_image(image, version));
            }
        });
        debug_assert!(walked.is_ok());
        page_bytes
    }

    #[inline(always)]
    fn count_image(&mut self, image: &Image, version: &Version) -> u32 {
        let bytes = u64::from(image.bytes);
        self.fpi_count += 1;
        self.fpi_bytes += bytes;
        if !version.image_flags.is_applied(image.info) {
            self.fpi_check_count += 1;
            self.fpi_check_bytes += bytes;
        }
        if version.image_flags.is_compressed(image.info) {
            self.compressed_count += 1;
            self.compressed_hole_bytes += u64::from(image.hole_bytes);
            return 0;
        }
        self.raw_fpi_bytes += bytes;
        if image.info & HAS_HOLE == 0 { u32::from(image.bytes) } else { 0 }
    }

    /// Adds `other`.
    pub fn add(&mut self, other: &Totals) {
        self.count += other.count;
        self.total_bytes += other.total_bytes;
        self.fpi_bytes += other.fpi_bytes;
        self.main_data_bytes += other.main_data_bytes;
        self.block_data_bytes += other.block_data_bytes;
        self.fpi_count += other.fpi_count;
        self.fpi_records += other.fpi_records;
        self.fpi_check_count += other.fpi_check_count;
        self.fpi_check_bytes += other.fpi_check_bytes;
        self.raw_fpi_bytes += other.raw_fpi_bytes;
        self.compressed_count += other.compressed_count;
        self.compressed_hole_bytes += other.compressed_hole_bytes;
    }
}

/// Rows of the built-in resource managers: more ids than any release has.
const BUILT_IN: usize = 32;
const SLOTS: usize = 16;
const FIRST_CUSTOM: usize = 128;

/// Totals by record type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordTable {
    /// Rows of the built-in resource managers; empty while the table is shrunk.
    built_in: Vec<Totals>,
    /// Rows of extensions' resource managers, made when the first such record comes.
    custom: Vec<Totals>,
    /// The rows of a table that was shrunk, by index.
    shrunk: Vec<(usize, Totals)>,
    /// The size of data pages, as an image without hole and compression tells it; else 0.
    page_bytes: u32,
}

impl Default for RecordTable {
    fn default() -> RecordTable {
        let built_in = vec![Totals::default(); BUILT_IN * SLOTS];
        RecordTable { built_in, custom: Vec::new(), shrunk: Vec::new(), page_bytes: 0 }
    }
}

impl RecordTable {
    /// The size of data pages if an image tells it.
    pub fn page_bytes(&self) -> Option<u32> {
        (self.page_bytes > 0).then_some(self.page_bytes)
    }

    /// All types with at least one record, by resource manager and slot.
    pub fn rows(&self) -> impl Iterator<Item = (RecordType, &Totals)> {
        self.indexed().map(|(index, row)| {
            let record = RecordType { rmgr: (index / SLOTS) as u8, slot: (index % SLOTS) as u8 };
            (record, row)
        })
    }

    fn indexed(&self) -> impl Iterator<Item = (usize, &Totals)> {
        let built_in = self.built_in.iter().enumerate();
        let custom = self.custom.iter().enumerate().map(|(i, row)| (i + FIRST_CUSTOM * SLOTS, row));
        let shrunk = self.shrunk.iter().map(|(index, row)| (*index, row));
        built_in.chain(custom).chain(shrunk).filter(|(_, row)| row.count > 0)
    }

    /// The sums over all types for which `wanted` holds.
    pub fn sum(&self, wanted: impl Fn(RecordType) -> bool) -> Totals {
        let mut sum = Totals::default();
        self.rows().filter(|(record, _)| wanted(*record)).for_each(|(_, row)| sum.add(row));
        sum
    }

    /// Adds `totals` to the row of a type: for tables that do not come from WAL.
    pub fn add(&mut self, record: RecordType, totals: &Totals) {
        self.row(record).add(totals);
    }

    #[inline(always)]
    fn row(&mut self, record: RecordType) -> &mut Totals {
        let index = usize::from(record.rmgr) * SLOTS + usize::from(record.slot & 15);
        if index >= self.built_in.len() {
            return self.unusual_row(index);
        }
        &mut self.built_in[index]
    }

    /// The row of an extension's type, or of any type after the table was shrunk. Ids between
    /// the built-in ones and 128 do not exist: the reader refuses them.
    #[cold]
    fn unusual_row(&mut self, index: usize) -> &mut Totals {
        if self.built_in.is_empty() {
            self.built_in.resize(BUILT_IN * SLOTS, Totals::default());
            for (index, totals) in std::mem::take(&mut self.shrunk) {
                self.unusual_row(index).add(&totals);
            }
        }
        if index < BUILT_IN * SLOTS {
            return &mut self.built_in[index];
        }
        if self.custom.is_empty() {
            self.custom.resize((256 - FIRST_CUSTOM) * SLOTS, Totals::default());
        }
        let last = self.custom.len() - 1;
        &mut self.custom[index.saturating_sub(FIRST_CUSTOM * SLOTS).min(last)]
    }
}

impl Observe for RecordTable {
    #[inline(always)]
    fn observe(&mut self, record: &Record<'_>) {
        let row = self.row(record.record_type());
        row.count_record(record);
        if record.parts.fpi_count > 0 {
            let page_bytes =
                row.count_images(record.body.head, record.header.total_bytes, record.version);
            self.page_bytes = self.page_bytes.max(page_bytes);
        }
    }

    fn merge(&mut self, later: RecordTable) {
        self.page_bytes = self.page_bytes.max(later.page_bytes);
        for (record, totals) in later.rows() {
            self.add(record, totals);
        }
    }

    fn shrink(&mut self) {
        self.shrunk = self.indexed().map(|(index, row)| (index, *row)).collect();
        self.built_in = Vec::new();
        self.custom = Vec::new();
    }
}
