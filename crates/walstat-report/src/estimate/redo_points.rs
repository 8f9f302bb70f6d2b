//! Redo points of the range, by what other settings make of them: volume and clock bring theirs anew, the
//! others stay.

use walstat_analyse::checkpoint::Cycle;
use walstat_analyse::checkpoint::cause::{Cause, Verdict};
use walstat_analyse::checkpoint::evidence::Evidence;
use walstat_format::lsn::Lsn;
use walstat_whatif::base_checkpoint::{CauseReading, mover};

/// Just below 1: within one cycle, the WAL since its redo point never counts as a whole further redo point by
/// volume.
const NEARLY_ONE: f64 = 0.999;

/// So many pages with an image again show a redo point.
const AGAIN: usize = 3;

/// Redo points, ascending.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct RedoPoints {
    points: Vec<RedoPoint>,
    /// The longest way to one that volume brought, bytes.
    distance: f64,
    /// The same of those before which an unknown part of the way lies before the range: it is that long at
    /// least.
    distance_least: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct RedoPoint {
    lsn: Lsn,
    /// What has come with it.
    all: Come,
    /// The same, had nobody asked for any, base backups left out.
    unasked: Come,
    /// The same without base backups.
    without_backups: Come,
}

/// A cycle, by the redo points before it.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct CycleNumber {
    /// How many have come that stay.
    staying: u32,
    /// Since then, how many by volume and by the clock.
    by_volume: u64,
    by_clock: u64,
}

/// Redo points up to a place.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Come {
    /// The last of them, and the last of those that stay.
    last: Lsn,
    stayed: Lsn,
    /// How many that stay.
    staying: u32,
    /// How many volume has brought since the last one that stays, and how many the clock.
    by_volume: u32,
    by_clock: u32,
}

/// What begins a redo point.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Begun {
    /// Volume or clock, which settings move.
    By(Cause),
    /// Somebody's request, that of a base backup left out: it stays, unless nobody asks.
    Asked,
    /// A base backup: it stays, unless there is none.
    Backup,
    /// Something else: it stays.
    Otherwise,
}

/// How many times as far apart checkpoints come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Apart {
    volume: f64,
    clock: f64,
    without: Without,
}

/// Which of those do not come that other settings do not move.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Without {
    None,
    /// Those that somebody asked for, base backups left out.
    Asked,
    /// Those of base backups.
    Backups,
}

impl Apart {
    /// So many times; `None`: neither volume nor clock bring one.
    pub(crate) fn times(times: Option<u32>) -> Apart {
        let times = times.map_or(f64::INFINITY, f64::from);
        Apart { volume: times, clock: times, without: Without::None }
    }

    /// As far apart as they are, but for those that do not come.
    pub(crate) fn without(without: Without) -> Apart {
        Apart { without, ..Apart::times(Some(1)) }
    }

    /// Those by volume so many times as far apart as that.
    pub(crate) fn by_volume(self, times: f64) -> Apart {
        Apart { volume: self.volume * times, ..self }
    }
}

/// What began those of which nothing is known for sure: somebody's request where that began all others, and
/// most of all. A range that begins in mid-cycle shows less of why its first ones began than the whole WAL
/// does.
pub(crate) fn usual_cause(cycles: &[Cycle], verdicts: &[Option<Verdict>]) -> Option<Cause> {
    let is_begun = |cycle: &Cycle, verdict: Option<Verdict>| {
        let is_shutdown = cycle.checkpoint.as_ref().is_some_and(|ended| ended.seen.is_shutdown);
        let is_other = |verdict: Verdict| {
            verdict.evidence == Evidence::BackupFromRedoPoint
                || matches!(
                    verdict.cause,
                    Cause::Shutdown | Cause::EndOfRecovery | Cause::ShutdownOrRecovery
                )
        };
        cycle.redo.is_some() && !is_shutdown && !verdict.is_some_and(is_other)
    };
    let begun: Vec<Option<Verdict>> = cycles
        .iter()
        .zip(verdicts)
        .filter(|(cycle, verdict)| is_begun(cycle, **verdict))
        .map(|(_, verdict)| *verdict)
        .collect();
    let sure: Vec<Cause> =
        begun.iter().flatten().filter(|own| own.is_sure()).map(|own| own.cause).collect();
    let is_most = sure.len() * 2 > begun.len();
    (is_most && sure.iter().all(|cause| *cause == Cause::Requested)).then_some(Cause::Requested)
}

/// Where a page was changed last before its image, and where that is.
pub(crate) type Due = (Lsn, Lsn);

/// Where the last redo point before the range lies: of a range that begins in mid-cycle the record of its
/// checkpoint may tell; else it is taken for where the range begins.
pub(crate) fn before_range(cycles: &[Cycle]) -> Lsn {
    let Some(first) = cycles.first() else { return Lsn(0) };
    record_before(first).map_or(first.start, |redo| redo.min(first.start))
}

/// Where it lies at the earliest, if no record tells: pages that have an image before the range's first redo
/// point were changed before it.
pub(crate) fn earliest_before_range(cycles: &[Cycle], due: &[Due]) -> Option<Lsn> {
    let first = cycles.first().filter(|first| first.redo.is_none())?;
    let images = due.iter().filter(|(_, lsn)| *lsn < first.end);
    // One that began in the range and never ended has pages that were changed in it.
    let of_range = images.clone().map(|(changed, _)| *changed).filter(|lsn| *lsn > first.start);
    let until = of_range.max().unwrap_or(first.end);
    let older = images.filter(|(changed, lsn)| *changed <= first.start && *lsn < until);
    let changes: Vec<Lsn> = older.map(|(changed, _)| *changed).collect();
    let is_told = record_before(first).is_some() || changes.len() < AGAIN;
    changes.into_iter().max().filter(|_| !is_told)
}

/// The redo point of the checkpoint whose record lies in the first cycle, which begins after it.
fn record_before(first: &Cycle) -> Option<Lsn> {
    let ended = first.checkpoint.as_ref().filter(|_| first.redo.is_none());
    ended.map(|ended| ended.seen.says.redo)
}

/// A redo point between two others of which no record tells, since its checkpoint was not complete when the
/// server crashed or the range ended: if images show it, since pages that were changed after the first have
/// one again.
fn unfinished(from: Lsn, to: Lsn, due: &[Due]) -> Option<Lsn> {
    let again =
        || due.iter().filter(|(changed, lsn)| *changed > from && lsn > changed && *lsn < to);
    let newest_change = again().map(|(changed, _)| *changed).max()?;
    let first_image = again().map(|(_, lsn)| *lsn).min()?;
    (newest_change <= first_image && again().count() >= AGAIN).then_some(first_image)
}

impl RedoPoints {
    /// Those after the one before the range, which lies at `before`: between these cycles, and those of which
    /// only images tell.
    pub(crate) fn of(
        cycles: &[Cycle],
        verdicts: &[Option<Verdict>],
        (before, due): (Lsn, &[Due]),
        reading: CauseReading,
    ) -> RedoPoints {
        let mut redo = RedoPoints::default();
        let start = cycles.first().map_or(Lsn(0), |cycle| cycle.start);
        let mut last = RedoPoint::at(before);
        let usual = usual_cause(cycles, verdicts);
        for (cycle, verdict) in cycles.iter().zip(verdicts).skip(1) {
            let Some(lsn) = cycle.redo else { continue };
            let is_shutdown = cycle.checkpoint.as_ref().is_some_and(|c| c.seen.is_shutdown);
            if is_shutdown {
                last = redo.with_unfinished(last, lsn, due, usual, reading);
            }
            let is_sure = verdict.is_some_and(|verdict| verdict.is_sure());
            // Where all others were asked for, so was probably one of which nothing is known.
            let known = verdict.filter(|verdict| usual.is_none() || verdict.is_sure());
            let cause = known.map(|verdict| verdict.cause).or(usual);
            let mover = mover(cause, is_sure, reading).filter(|_| !is_shutdown);
            // The way to it from where the range begins is a part of what volume makes.
            let is_known = verdict.is_some() || last.lsn != start;
            if mover == Some(Cause::Wal) {
                redo.go((lsn.0 - last.lsn.0) as f64, is_known);
            }
            let is_backup =
                verdict.is_some_and(|verdict| verdict.evidence == Evidence::BackupFromRedoPoint);
            let is_asked = cause == Some(Cause::Requested) && !is_backup && !is_shutdown;
            let begun = match mover {
                Some(cause) => Begun::By(cause),
                None if is_asked => Begun::Asked,
                None if is_backup => Begun::Backup,
                None => Begun::Otherwise,
            };
            last = last.followed_by(lsn, begun);
            redo.points.push(last);
        }
        redo.with_unfinished(last, Lsn::MAX, due, usual, reading);
        redo
    }

    /// With the one after `last` that had begun and was not complete at `end`, if images show it; the last
    /// one then.
    fn with_unfinished(
        &mut self,
        last: RedoPoint,
        end: Lsn,
        due: &[Due],
        usual: Option<Cause>,
        reading: CauseReading,
    ) -> RedoPoint {
        let Some(lsn) = unfinished(last.lsn, end, due) else { return last };
        let mover = mover(usual, false, reading);
        if mover == Some(Cause::Wal) {
            self.go((lsn.0 - last.lsn.0) as f64, !self.points.is_empty());
        }
        let stays = if usual.is_some() { Begun::Asked } else { Begun::Otherwise };
        let next = last.followed_by(lsn, mover.map_or(stays, Begun::By));
        self.points.push(next);
        next
    }

    /// Takes note of a way to one that volume brought, or of the part of it that lies in the range.
    fn go(&mut self, bytes: f64, is_whole: bool) {
        let way = if is_whole { &mut self.distance } else { &mut self.distance_least };
        *way = way.max(bytes);
    }

    /// How many there are.
    pub(crate) fn all(&self) -> usize {
        self.points.len()
    }

    /// How many of them other settings move.
    pub(crate) fn moving(&self) -> usize {
        let staying = self.points.last().map_or(0, |last| last.all.staying);
        self.points.len() - staying as usize
    }

    /// How many of them somebody asked for, base backups left out.
    pub(crate) fn asked(&self) -> usize {
        self.points.last().map_or(0, |last| (last.all.staying - last.unasked.staying) as usize)
    }

    /// How many of them base backups began.
    pub(crate) fn of_backups(&self) -> usize {
        let last = self.points.last();
        last.map_or(0, |last| (last.all.staying - last.without_backups.staying) as usize)
    }

    /// Whether volume brought one, after a distance that is known.
    pub(crate) fn has_volume(&self) -> bool {
        self.distance > 0.0
    }

    /// Whether volume brought one, after whatever distance: less WAL would bring it later.
    pub(crate) fn has_any_by_volume(&self) -> bool {
        self.distance.max(self.distance_least) > 0.0
    }

    /// After how much WAL volume brings one: so much at least, where that is not known.
    fn distance_of_volume(&self) -> f64 {
        if self.has_volume() { self.distance } else { self.distance_least }
    }

    /// Whether one lies after `from` and not after `to`.
    pub(crate) fn has_any(&self, from: Lsn, to: Lsn) -> bool {
        self.before(from) < self.before(to)
    }

    /// Whether one that stays, or comes anew, lies between.
    pub(crate) fn stays_any(&self, from: Lsn, to: Lsn, apart: Apart) -> bool {
        self.cycle(from, apart) != self.cycle(to, apart)
    }

    fn before(&self, lsn: Lsn) -> usize {
        self.points.partition_point(|point| point.lsn <= lsn)
    }

    /// The cycle in which a place lies.
    fn cycle(&self, lsn: Lsn, apart: Apart) -> CycleNumber {
        let last = self.before(lsn).checked_sub(1).and_then(|index| self.points.get(index));
        let Some(last) = last else { return CycleNumber::default() };
        let last = match apart.without {
            Without::None => last.all,
            Without::Asked => last.unasked,
            Without::Backups => last.without_backups,
        };
        let since = |place: Lsn| (lsn.0 - place.0) as f64 / self.distance_of_volume().max(1.0);
        // Where some are left out, volume brings as many as it would have.
        let by_volume = if apart.without == Without::None || !self.has_volume() {
            f64::from(last.by_volume) + since(last.last).min(NEARLY_ONE)
        } else {
            since(last.stayed)
        };
        let count = |come: f64, times: f64| (come / times) as u64;
        CycleNumber {
            staying: last.staying,
            by_volume: count(by_volume, apart.volume),
            by_clock: count(last.by_clock.into(), apart.clock),
        }
    }
}

impl RedoPoint {
    /// The one that the range begins with.
    fn at(lsn: Lsn) -> RedoPoint {
        let come = Come { last: lsn, stayed: lsn, ..Come::default() };
        RedoPoint { lsn, all: come, unasked: come, without_backups: come }
    }

    /// The next one.
    fn followed_by(self, lsn: Lsn, begun: Begun) -> RedoPoint {
        let but_for = |come: Come, left_out: Begun| {
            if begun == left_out { come } else { come.with(lsn, begun) }
        };
        RedoPoint {
            lsn,
            all: self.all.with(lsn, begun),
            unasked: but_for(self.unasked, Begun::Asked),
            without_backups: but_for(self.without_backups, Begun::Backup),
        }
    }
}

impl Come {
    fn with(self, lsn: Lsn, begun: Begun) -> Come {
        match begun {
            Begun::By(Cause::Time) => Come { last: lsn, by_clock: self.by_clock + 1, ..self },
            Begun::By(_) => Come { last: lsn, by_volume: self.by_volume + 1, ..self },
            Begun::Asked | Begun::Backup | Begun::Otherwise => Come {
                last: lsn,
                stayed: lsn,
                staying: self.staying + 1,
                by_volume: 0,
                by_clock: 0,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_analyse::checkpoint::cause::Confidence;
    use walstat_analyse::checkpoint::{EndedCheckpoint, EventsSince};
    use walstat_analyse::deferred_log::CheckpointSeen;
    use walstat_format::payload::checkpoint::Checkpoint;
    use walstat_format::version::VERSIONS;

    /// Two by volume, one that stays, two by volume; 100 bytes apart.
    fn points() -> RedoPoints {
        let mut last = RedoPoint::default();
        let wal = Begun::By(Cause::Wal);
        let begun = [wal, wal, Begun::Asked, wal, wal];
        let points = (1..).zip(begun).map(|(number, begun)| {
            last = last.followed_by(Lsn(100 * number), begun);
            last
        });
        RedoPoints { points: points.collect(), distance: 100.0, ..RedoPoints::default() }
    }

    fn stays(from: u64, to: u64, apart: Apart) -> bool {
        points().stays_any(Lsn(from), Lsn(to), apart)
    }

    #[test]
    fn of_those_by_volume_every_kth_stays() {
        let [own, twice, none] = [Some(1), Some(2), None].map(Apart::times);
        assert!(stays(50, 150, own) && !stays(50, 150, twice) && stays(150, 250, twice));
        assert!(!stays(50, 250, none));
        assert_eq!((points().all(), points().moving()), (5, 4));
    }

    #[test]
    fn what_somebody_asked_for_stays() {
        assert!(stays(250, 350, Apart::times(None)));
        // Volume is counted from there on.
        let twice = Apart::times(Some(2));
        assert!(!stays(350, 450, twice) && stays(450, 550, twice));
    }

    #[test]
    fn had_nobody_asked_volume_would_be_counted_on() {
        assert_eq!(points().asked(), 1);
        assert!(!stays(250, 290, Apart::without(Without::Asked)));
        // Volume begins one each 100 bytes, where nobody had asked for one before.
        assert!(
            stays(250, 450, Apart::without(Without::Asked))
                && stays(250, 350, Apart::times(Some(1)))
        );
        let long = || {
            let [wal, asked] = [Begun::By(Cause::Wal), Begun::Asked];
            let mut last = RedoPoint::default();
            let points =
                [(100, wal), (190, asked), (280, asked), (370, asked)].map(|(lsn, begun)| {
                    last = last.followed_by(Lsn(lsn), begun);
                    last
                });
            RedoPoints { points: points.into(), distance: 100.0, ..RedoPoints::default() }
        };
        let stays = |from, to| long().stays_any(Lsn(from), Lsn(to), Apart::without(Without::Asked));
        assert!(!stays(180, 195) && stays(195, 205) && !stays(275, 290) && stays(275, 305));
    }

    #[test]
    fn without_base_backups_their_redo_points_do_not_come() {
        let mut last = RedoPoint::default();
        let begun = [Begun::Backup, Begun::Asked, Begun::Backup];
        let points = (1..).zip(begun).map(|(number, begun)| {
            last = last.followed_by(Lsn(100 * number), begun);
            last
        });
        let redo = RedoPoints { points: points.collect(), ..RedoPoints::default() };
        assert_eq!((redo.asked(), redo.of_backups()), (1, 2));
        let stays = |from, to, without| redo.stays_any(Lsn(from), Lsn(to), Apart::without(without));
        assert!(!stays(50, 150, Without::Backups) && stays(50, 150, Without::Asked));
        assert!(stays(150, 250, Without::Backups) && !stays(150, 250, Without::Asked));
    }

    fn due(images: &[(u64, u64)]) -> Vec<Due> {
        images.iter().map(|&(changed, lsn)| (Lsn(changed), Lsn(lsn))).collect()
    }

    #[test]
    fn images_show_a_checkpoint_that_is_not_complete_yet() {
        let of = |images: &[(u64, u64)]| {
            let (mut redo, images) = (points(), due(images));
            let last = redo.points[4];
            redo.with_unfinished(last, Lsn::MAX, &images, None, CauseReading::Likely);
            redo.all()
        };
        assert_eq!(of(&[(510, 610), (520, 605), (590, 620)]), 6);
        assert_eq!(of(&[(510, 610), (520, 605)]), 5, "too few");
        assert_eq!(of(&[(510, 610), (520, 605), (615, 620)]), 5, "no place fits");
        assert_eq!(of(&[(450, 610), (420, 605), (490, 620)]), 5, "another one explains them");
    }

    /// The one that never ended was by volume: it goes, that of the recovery stays.
    #[test]
    fn images_show_a_checkpoint_that_a_crash_cut_off() {
        let mut cycles = cycles(&[100, 300]);
        cycles[2] = ended(Lsn(300), Lsn(300), true);
        let recovery = verdict(Cause::EndOfRecovery, Confidence::Likely);
        let verdicts = [None, verdict(Cause::Wal, Confidence::Likely), recovery];
        let images = due(&[(110, 210), (120, 205), (190, 220), (230, 310), (240, 320), (250, 330)]);
        let redo = RedoPoints::of(&cycles, &verdicts, (Lsn(10), &images), CauseReading::Likely);
        let points: Vec<u64> = redo.points.iter().map(|point| point.lsn.0).collect();
        assert_eq!((points, redo.moving()), (vec![100, 205, 300], 2));
        let none = Apart::times(None);
        assert!(redo.has_any(Lsn(110), Lsn(210)) && !redo.stays_any(Lsn(110), Lsn(210), none));
        assert!(redo.stays_any(Lsn(230), Lsn(310), none));
    }

    #[test]
    fn what_lies_before_a_range_that_begins_in_mid_cycle_is_told_by_a_record_or_by_images() {
        let begun = Cycle { start: Lsn(1000), end: Lsn(2000), ..Cycle::default() };
        let images = due(&[(300, 1100), (420, 1200), (410, 1900), (900, 2100), (1500, 2100)]);
        let before = |first: &Cycle, images: &[Due]| {
            let cycles = [first.clone()];
            let earliest = earliest_before_range(&cycles, images);
            (before_range(&cycles).0, earliest.map(|lsn| lsn.0))
        };
        assert_eq!(before(&begun, &images), (1000, Some(420)));
        assert_eq!(before(&begun, &images[1..]), (1000, None), "too few");
        let told = Cycle { checkpoint: ended(Lsn(450), Lsn(1050), false).checkpoint, ..begun };
        assert_eq!(before(&told, &images), (450, None));
        // A redo point in the range that no record tells: what lies after it was changed later.
        let begun = Cycle { checkpoint: None, ..told };
        let unfinished = due(&[(300, 1100), (420, 1200), (410, 1300), (1400, 1700), (900, 1800)]);
        assert_eq!(before(&begun, &unfinished), (1000, Some(420)));
        let at_redo = Cycle { redo: Some(Lsn(1000)), ..begun };
        assert_eq!(before(&at_redo, &images), (1000, None));
    }

    fn ended(redo: Lsn, lsn: Lsn, is_shutdown: bool) -> Cycle {
        let zeros = Checkpoint::parse(&[0; 128], VERSIONS[0].checkpoint).expect("long enough");
        let says = Checkpoint { redo, ..zeros };
        let seen = CheckpointSeen { is_shutdown, previous: Lsn(8), says };
        let ended = EndedCheckpoint { lsn, end: lsn, seen, since: EventsSince::default() };
        Cycle { redo: Some(redo), checkpoint: Some(ended), ..Cycle::default() }
    }

    fn cycles(redo: &[u64]) -> Vec<Cycle> {
        let cycle = |lsn: &u64| Cycle { redo: Some(Lsn(*lsn)), ..Cycle::default() };
        let start = Cycle { start: Lsn(10), ..Cycle::default() };
        std::iter::once(start).chain(redo.iter().map(cycle)).collect()
    }

    fn verdict(cause: Cause, confidence: Confidence) -> Option<Verdict> {
        Some(Verdict { cause, confidence, evidence: Evidence::AfterSwitch })
    }

    /// A range that begins in mid-cycle: why the first one in it began is not known, and the way to it is no
    /// distance by volume.
    #[test]
    fn where_all_others_were_asked_for_so_was_the_first_one() {
        let asked = verdict(Cause::Requested, Confidence::Likely);
        let maybe = verdict(Cause::Wal, Confidence::Possible);
        let of = |verdicts: &[Option<Verdict>]| {
            let before = (Lsn(10), &[][..]);
            RedoPoints::of(&cycles(&[100, 200, 300]), verdicts, before, CauseReading::Likely)
        };
        for verdicts in [[None, None, asked, asked], [None, asked, asked, maybe]] {
            let found = of(&verdicts);
            assert_eq!((found.asked(), found.moving(), found.has_volume()), (3, 0, false));
            assert!(!found.stays_any(Lsn(50), Lsn(350), Apart::without(Without::Asked)));
        }
        // One that was asked for says nothing of the others.
        let one = of(&[None, None, asked, None]);
        assert_eq!((one.asked(), one.moving()), (1, 2));
        let by_volume = of(&[None, None, verdict(Cause::Wal, Confidence::Likely), asked]);
        assert_eq!((by_volume.asked(), by_volume.moving(), by_volume.distance), (1, 2, 100.0));
    }

    /// The way to it is longer than the part of it in the range, nobody knows by how much.
    #[test]
    fn less_wal_brings_one_later_that_is_not_complete() {
        let images = due(&[(20, 110), (30, 105), (90, 120)]);
        let (first, before) = (cycles(&[]), (Lsn(10), &images[..]));
        let redo = RedoPoints::of(&first, &[None], before, CauseReading::Likely);
        assert_eq!((redo.all(), redo.has_volume(), redo.has_any_by_volume()), (1, false, true));
        let stays =
            |times| redo.stays_any(Lsn(30), Lsn(110), Apart::times(Some(1)).by_volume(times));
        assert!(stays(1.0) && !stays(1.2));
        let stay = RedoPoints::of(&first, &[None], before, CauseReading::Staying);
        assert_eq!((stay.all(), stay.has_any_by_volume()), (1, false));
    }

    #[test]
    fn less_wal_brings_checkpoints_later() {
        let apart = Apart::times(Some(1)).by_volume(1.5);
        assert!(!stays(310, 440, apart) && stays(440, 460, apart));
    }
}
