//! The segments around one that are read with it: those in which its records begin or end. A record may go
//! through many.

use crate::input::plan::Plan;
use crate::input::segment::Segment;
use crate::input::timeline::Lineage;

/// In so many ways copies of the segments after one are put together, if there are several of them.
const WAYS_MAX: usize = 16;

/// The segments around one.
pub(super) struct Around<'p> {
    pub plan: &'p Plan,
    pub lineage: &'p Lineage,
}

impl Around<'_> {
    fn files(&self, number: u64) -> &[Segment] {
        let timeline = self.lineage.of_file(number, self.plan.geometry.segment_bytes);
        self.plan.files.get(&(timeline, number)).map(Vec::as_slice).unwrap_or_default()
    }

    /// Those before it, from the one on in which the record begins that goes on in it.
    pub(super) fn before(&self, number: u64) -> Vec<Segment> {
        let numbers = (0..number).rev();
        let files = numbers.map_while(|before| self.files(before).first());
        let (mut before, mut record_end) = (Vec::new(), None);
        for file in files {
            before.push(file.clone());
            let end = file.lead_end(&self.plan.geometry);
            if end < Some(self.plan.chain().span(file).end)
                || record_end.is_some() && end != record_end
            {
                break;
            }
            record_end = end;
        }
        before.reverse();
        before
    }

    /// Those after it, up to the one in which its last record ends: one copy of each, in several ways.
    pub(super) fn after(&self, number: u64) -> Vec<Vec<Segment>> {
        let (mut ways, mut record_end) = (Vec::new(), None);
        let numbers = (1..).map_while(|more| number.checked_add(more));
        for files in numbers.map(|after| self.files(after)) {
            let Some(first) = files.first() else { break };
            if ways.is_empty() {
                ways.push(Vec::new());
            }
            let with = |way: &Vec<Segment>| {
                let way = way.clone();
                files.iter().map(move |file| [&way[..], std::slice::from_ref(file)].concat())
            };
            ways = ways.iter().flat_map(with).take(WAYS_MAX).collect();
            let end = first.lead_end(&self.plan.geometry);
            if end <= Some(self.plan.chain().span(first).end)
                || record_end.is_some() && end != record_end
            {
                break;
            }
            record_end = end;
        }
        ways
    }
}
