//! Counts and bytes by record type, in a dense table: no hashing, no allocation a record.

use super::sums::Sums;
use serde::{Deserialize, Serialize};
use walstat_format::block::{Image, walk};
use walstat_format::image::HAS_HOLE;
use walstat_format::record::Record;
use walstat_format::rmgr::RecordType;
use walstat_format::version::{FIRST_CUSTOM_RMGR, Version};
use walstat_read::scan::observe::Observe;

sums! {
    /// What is added up a record; bytes where not said otherwise. [`Sums`] follow from it.
    #[derive(Serialize, Deserialize)]
    pub struct Totals {
        /// Records.
        count,
        /// Total length, images included.
        total_bytes,
        /// Stored images.
        fpi_bytes,
        /// Main data.
        main_data_bytes,
        /// Block data.
        block_data_bytes,
        /// How many images.
        fpi_count,
        /// How many records with at least one.
        fpi_records,
        /// How many images are stored for consistency checking only.
        fpi_check_count,
        /// Their bytes.
        fpi_check_bytes,
        /// Stored bytes of images that are not compressed.
        raw_fpi_bytes,
        /// How many images are compressed.
        compressed_count,
        /// Holes of the compressed images.
        compressed_hole_bytes,
    }
}

impl Totals {
    /// Total length without images: what the record itself takes.
    pub fn record_bytes(&self) -> u64 {
        self.total_bytes - self.fpi_bytes
    }

    /// The sums of the contract, with data pages of `page_bytes`.
    pub fn sums(&self, page_bytes: u32) -> Sums {
        let record_bytes = self.record_bytes();
        let compressed_pages = self.compressed_count * u64::from(page_bytes);
        Sums {
            count: self.count,
            record_bytes,
            fpi_bytes: self.fpi_bytes,
            total_bytes: self.total_bytes,
            main_data_bytes: self.main_data_bytes,
            block_data_bytes: self.block_data_bytes,
            header_bytes: record_bytes - self.main_data_bytes - self.block_data_bytes,
            fpi_count: self.fpi_count,
            fpi_records: self.fpi_records,
            fpi_apply_count: self.fpi_count - self.fpi_check_count,
            fpi_check_count: self.fpi_check_count,
            uncompressed_fpi_bytes: self.raw_fpi_bytes
                + compressed_pages.saturating_sub(self.compressed_hole_bytes),
        }
    }

    #[inline(always)]
    fn count_record(&mut self, record: &Record<'_>) {
        self.count += 1;
        self.total_bytes += u64::from(record.header.total_bytes);
        self.main_data_bytes += u64::from(record.parts.main_data_bytes);
        self.block_data_bytes += u64::from(record.parts.block_data_bytes);
    }

    /// Counts the images of a record. A call of its own: an image is worth one, and the loop over
    /// all records keeps its registers. Returns the size of data pages if an image tells it
    /// (it has neither a hole nor compression), else 0.
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
}

/// Rows of the built-in resource managers: more ids than any release has.
const BUILT_IN: usize = 32;
const SLOTS: usize = 16;
const FIRST_CUSTOM: usize = FIRST_CUSTOM_RMGR as usize;

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
