//! WAL of which no segment has an intact first page: release and sizes are read off the first page that is,
//! wherever it lies in a file. Only for that case; what is wrong with the WAL is told when it is read.

use super::names::SegmentFile;
use super::piece::{Piece, geometry_of};
use super::probe::FirstPage;
use super::problem::{Problem, ProblemKind};
use super::source::{KeptBytes, Source};
use std::io::Read;
use walstat_format::lsn::Lsn;
use walstat_format::page::{Geometry, LONG_HEADER, LongHeader, PageHeader};
use walstat_format::segment::{PAGE_BYTES, PAGE_BYTES_MIN, SEGMENT_BYTES, number_of};
use walstat_format::version::{Magic, Version};

/// What could be read off a file.
#[derive(Debug)]
pub(super) struct Salvaged {
    /// Release and sizes; the cluster, if a header with it is left.
    pub geometry: Geometry,
    /// Which file.
    pub piece: usize,
    /// Timeline and number of its segment.
    pub key: (u32, u64),
    /// Where its WAL begins, if that is not the first byte of a segment.
    pub begin: Option<Lsn>,
    /// Its bytes as those of that segment, if they lie elsewhere in the file; and that problem.
    pub moved: Option<(Source, Problem)>,
}

/// So many bytes of a file are looked at.
const LOOKED_AT_BYTES_MAX: u64 = 32 << 20;

/// The usual sizes, where nothing tells them.
const USUAL_WAL_PAGE_BYTES: u32 = 8192;
const USUAL_SEGMENT_BYTES: u32 = 16 << 20;

/// The first file in which there is a page.
pub(super) fn look(pieces: &[Piece]) -> Option<Salvaged> {
    pieces.iter().enumerate().find_map(|(index, piece)| look_at(index, piece))
}

fn look_at(index: usize, piece: &Piece) -> Option<Salvaged> {
    if !piece.probe.first_page.as_ref().is_err_and(|reason| !reason.is_final()) {
        return None;
    }
    let reader = piece.probe.source.open(0).ok()?.into_reader();
    let mut bytes = Vec::new();
    // What comes before an error is looked at.
    let _ = reader.take(LOOKED_AT_BYTES_MAX).read_to_end(&mut bytes);
    let page = first_whole_page(&bytes)?;
    let geometry = page.geometry(&bytes, piece);
    let WholePage { offset, header, .. } = page;
    let key = match &piece.name {
        Some(name) => (name.name.timeline, name.name.number(geometry.segment_bytes)?),
        None => (header.timeline, number_of(header.address, geometry.segment_bytes)?),
    };
    let in_segment = header.address.0 % u64::from(geometry.segment_bytes);
    let mut salvaged = Salvaged { geometry, piece: index, key, begin: None, moved: None };
    if in_segment != offset as u64 {
        let rest = bytes.split_off(offset);
        let kept = KeptBytes { zeros: in_segment, rest, error: None };
        let source = piece.probe.source.kept(kept);
        salvaged.begin = (in_segment > 0).then_some(header.address);
        salvaged.moved = Some((source, moved(piece, offset, header.address, in_segment)));
    }
    Some(salvaged)
}

/// The problem of a file whose bytes are not at the places that they have in a segment.
fn moved(piece: &Piece, offset: usize, address: Lsn, in_segment: u64) -> Problem {
    let is_begin = in_segment == 0;
    let kind = if is_begin { ProblemKind::TrailingBytes } else { ProblemKind::Truncated };
    let expected = "a segment's first page in front".to_owned();
    let found = if is_begin {
        format!("{offset} bytes before it")
    } else {
        format!("the page at {address}, {in_segment} bytes into its segment, at {offset}")
    };
    Problem::of_file(kind, &piece.file(), expected, found)
}

/// A page that is whole, as far as its header tells.
struct WholePage {
    offset: usize,
    version: &'static Version,
    header: PageHeader,
    page_bytes: u32,
}

/// The first header of a page in some bytes; pages lie at multiples of the smallest size that there is.
fn first_whole_page(bytes: &[u8]) -> Option<WholePage> {
    (0..bytes.len()).step_by(PAGE_BYTES_MIN as usize).find_map(|offset| {
        let (version, header) = header_at(bytes, offset)?;
        let page_bytes = page_bytes_after(bytes, offset, &header)?;
        Some(WholePage { offset, version, header, page_bytes })
    })
}

fn header_at(bytes: &[u8], offset: usize) -> Option<(&'static Version, PageHeader)> {
    let header = PageHeader::parse(bytes.get(offset..)?)?;
    let Magic::Known(version) = Magic::of(header.magic) else { return None };
    let is_page = header.info & !version.page_flags == 0
        && header.timeline > 0
        && header.address > Lsn(0)
        && header.address.0.is_multiple_of(PAGE_BYTES_MIN);
    is_page.then_some((version, header))
}

/// How long a page is: by where the next one begins, else as usual.
fn page_bytes_after(bytes: &[u8], offset: usize, header: &PageHeader) -> Option<u32> {
    let sizes = std::iter::successors(Some(*PAGE_BYTES.start()), |size| size.checked_mul(2));
    let mut sizes = sizes.take_while(|size| PAGE_BYTES.contains(size));
    let follows = |size: &u32| {
        let next = header_at(bytes, offset + *size as usize);
        next.is_some_and(|(_, next)| {
            next.magic == header.magic && next.address.0 == header.address.0 + u64::from(*size)
        })
    };
    let usual = header.address.0.is_multiple_of(u64::from(USUAL_WAL_PAGE_BYTES));
    sizes.find(follows).or(usual.then_some(USUAL_WAL_PAGE_BYTES))
}

impl WholePage {
    /// Release, cluster and sizes: by a segment's first page, if there is one further on; else by what
    /// the header, the file and its name tell.
    fn geometry(&self, bytes: &[u8], piece: &Piece) -> Geometry {
        self.by_long_header(bytes).unwrap_or_else(|| self.by_file(bytes, piece))
    }

    fn by_long_header(&self, bytes: &[u8]) -> Option<Geometry> {
        let offsets = (self.offset..bytes.len()).step_by(self.page_bytes as usize);
        let mut pages = offsets.filter_map(|offset| {
            let (_, header) = header_at(bytes, offset)?;
            let long = LongHeader::parse(bytes.get(offset..)?).filter(LongHeader::is_plausible)?;
            (header.info & LONG_HEADER != 0).then_some(())?;
            geometry_of(&FirstPage { header, long })
        });
        pages.next()
    }

    fn by_file(&self, bytes: &[u8], piece: &Piece) -> Geometry {
        let segment_bytes = self.segment_bytes(bytes.len(), piece.name.as_ref());
        // Of a first page with a wrong magic or address the rest may be right.
        let left = LongHeader::parse(bytes).filter(|long| {
            (long.segment_bytes, long.page_bytes) == (segment_bytes, self.page_bytes)
        });
        let system_identifier = left.map_or(0, |long| long.system_identifier);
        Geometry {
            version: self.version,
            system_identifier,
            segment_bytes,
            page_bytes: self.page_bytes,
        }
    }

    /// The length of the file if a segment can have it, else the usual one; but not against the name.
    fn segment_bytes(&self, length: usize, name: Option<&SegmentFile>) -> u32 {
        let fits = |size: &u32| {
            let number = number_of(self.header.address, *size);
            name.is_none_or(|name| name.name.number(*size) == number)
        };
        let sizes = || {
            let sizes = std::iter::successors(Some(*SEGMENT_BYTES.start()), |s| s.checked_mul(2));
            sizes.take_while(|size| SEGMENT_BYTES.contains(size))
        };
        let files = sizes().find(|size| *size as usize == length);
        let by_name = sizes().find(fits).filter(|_| name.is_some());
        let likely = files.into_iter().chain([USUAL_SEGMENT_BYTES]).find(fits);
        likely.or(by_name).unwrap_or(USUAL_SEGMENT_BYTES)
    }
}
