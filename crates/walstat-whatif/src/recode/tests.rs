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

/// What becomes of a base with records at these places where it is read again with records at those; and
/// whether it is the same.
fn recoded(recoding: Recoding, base: &[u64], again: &[u64]) -> (Vec<Recoded>, bool) {
    let mut builder = TraceBuilder::within(1 << 20, || Err(std::io::ErrorKind::Unsupported.into()));
    base.iter().for_each(|lsn| builder.push(&insertion(*lsn).parse()));
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
    again.iter().for_each(|lsn| recoder.push(&insertion(*lsn).parse()));
    let is_same = recoder.saw_the_base();
    (recoder.finish(), is_same)
}

#[test]
fn an_image_is_compressed_with_the_codec_asked_for() {
    let (runs, is_same) = recoded(Recoding::With(Compression::Pglz), &[START], &[START]);
    let [run] = runs.as_slice() else { panic!("one run") };
    assert_eq!((run.outcome.images, is_same), (1, true));
    assert!((1..1000).contains(&run.outcome.uncertain.compressed_bytes));
    assert_eq!((run.codec_bytes, run.needs_no_codec()), (8192, false));
}

#[test]
fn a_base_without_a_codec_stays_as_it_is() {
    let (runs, _) = recoded(Recoding::AsTheBase, &[START], &[START]);
    assert_eq!((runs[0].outcome.image_bytes, runs[0].codec_bytes), (8192, 0));
    assert!(runs[0].needs_no_codec());
}

#[test]
fn a_record_that_the_trace_does_not_have_is_noticed() {
    let (runs, is_same) = recoded(Recoding::With(Compression::Pglz), &[START], &[START + 8]);
    assert_eq!((is_same, runs[0].outcome.images), (false, 0));
}

#[test]
fn records_that_do_not_come_again_are_noticed_and_those_after_the_range_need_not() {
    let all: Vec<u64> = (0..4).map(|index| START + index * 5000).collect();
    // The fourth one lies partly after the range.
    assert_eq!(all.iter().filter(|lsn| **lsn + 5000 <= START + 16 * 1024).count(), 3);
    let is_same = |again: &[u64]| recoded(Recoding::With(Compression::Pglz), &all, again).1;
    assert_eq!([4, 3, 2, 0].map(|come| is_same(&all[..come])), [true, true, false, false]);
    assert!(!is_same(&all[1..]), "the first one is missing");
    let more: Vec<u64> = all.iter().copied().chain([START + 30_000]).collect();
    assert!(is_same(&more), "a server has written on");
}
