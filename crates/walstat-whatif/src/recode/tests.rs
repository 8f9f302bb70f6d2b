//! Tests of runs whose images are compressed otherwise.

use super::*;
use crate::made_up::Bytes;
use crate::page::Page;
use crate::position::Geometry;
use crate::trace_builder::TraceBuilder;
use walstat_format::lsn::Lsn;
use walstat_format::version::VERSIONS;

const START: u64 = (1 << 20) + 40;

/// An insertion with an image of a page that a codec makes small, at this place.
fn insertion(lsn: u64) -> Bytes {
    let mut page = Page::new(8192, 0).expect("a page");
    page.append(&[7; 4000]).expect("room");
    Bytes::insert(1, Some(&page), &[]).at(lsn)
}

fn recoded(recoding: Recoding, lsn: u64) -> (Vec<Recoded>, u64) {
    let mut builder = TraceBuilder::within(1 << 20, || Err(std::io::ErrorKind::Unsupported.into()));
    builder.push(&insertion(START).parse());
    let geometry = Geometry { page: 8192, segment: 1 << 20 };
    let range = Lsn(1 << 20)..Lsn(START + 16 * 1024);
    let (trace, base) = builder.finish(&VERSIONS[8], geometry, range);
    let runs = [(Settings::default(), recoding)];
    let mut recoder = Recoder::new(
        &trace,
        &base,
        &runs,
        Means { threads: 1, page_bytes: 1 << 20, share: Share::ALL },
    );
    recoder.push(&insertion(lsn).parse());
    let mismatches = recoder.mismatches();
    (recoder.finish(), mismatches)
}

#[test]
fn an_image_is_compressed_with_the_codec_asked_for() {
    let (runs, mismatches) = recoded(Recoding::With(Compression::Pglz), START);
    let [run] = runs.as_slice() else { panic!("one run") };
    assert_eq!((run.outcome.images, mismatches), (1, 0));
    assert!((1..1000).contains(&run.outcome.uncertain.compressed_bytes));
    assert_eq!((run.codec_bytes, run.needs_no_codec()), (8192, false));
}

#[test]
fn a_base_without_a_codec_stays_as_it_is() {
    let (runs, _) = recoded(Recoding::AsTheBase, START);
    assert_eq!((runs[0].outcome.image_bytes, runs[0].codec_bytes), (8192, 0));
    assert!(runs[0].needs_no_codec());
}

#[test]
fn a_record_that_the_trace_does_not_have_is_noticed() {
    let (runs, mismatches) = recoded(Recoding::With(Compression::Pglz), START + 8);
    assert_eq!((mismatches, runs[0].outcome.images), (1, 0));
}
