//! Moments as they are typed for `--since` and `--until`.

use jiff::civil::{self, Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SpanRelativeTo, Timestamp, ToSpan, Unit};
use std::fmt;
use std::str::FromStr;
use walstat_format::payload::Time;
use walstat_report::amount::Span;

/// A moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// A time with its time zone.
    At(Timestamp),
    /// A time without a time zone.
    Local(DateTime),
    /// So long before the last time in the WAL.
    Before(Span),
    /// A time of the day on which the WAL ends, or so many days before.
    Day(u8, civil::Time),
    /// The last such time of a day before the WAL ends.
    Clock(civil::Time),
}

/// Days with names, by how many days they lie before the one on which the WAL ends.
const DAYS: [&str; 2] = ["today", "yesterday"];

const EXPECTED: &str = "expected a time like 2026-11-21T09:12:00Z, 2026-11-21 09:12, 2026-11-21, 09:12, \
                        today, yesterday 09:12; or -2h, \"2 hours ago\": before the last time in the WAL";

impl Moment {
    /// The time that it is; `last`: the last one in the WAL. `None` if there is none, or if it is too
    /// far away.
    pub fn time(self, zone: &TimeZone, last: Option<Time>) -> Option<Time> {
        let at = |timestamp: Timestamp| Time(timestamp.as_microsecond());
        let local = |datetime: DateTime| timestamp(zone, datetime).map(at);
        let ending = || Some(zone.to_datetime(Timestamp::from_microsecond(last?.0).ok()?));
        match self {
            Moment::At(timestamp) => Some(at(timestamp)),
            Moment::Local(datetime) => local(datetime),
            Moment::Before(span) => {
                let microseconds = i64::try_from(span.microseconds()).ok()?;
                last?.0.checked_sub(microseconds).map(Time)
            }
            Moment::Day(before, time) => {
                let day = ending()?.date().checked_sub(i64::from(before).days()).ok()?;
                local(day.to_datetime(time))
            }
            Moment::Clock(time) => {
                let ending = ending()?;
                let is_over = ending.time() >= time;
                let day = if is_over { ending.date() } else { ending.date().yesterday().ok()? };
                local(day.to_datetime(time))
            }
        }
    }

    /// The same for the end of a span that begins at `since`: a time of the day is the next one after
    /// that, if the last one before the WAL ends is not after it.
    pub fn time_after(self, since: Time, zone: &TimeZone, last: Option<Time>) -> Option<Time> {
        let time = self.time(zone, last)?;
        let Moment::Clock(clock) = self else { return Some(time) };
        if time > since {
            return Some(time);
        }
        let begin = zone.to_datetime(Timestamp::from_microsecond(since.0).ok()?);
        let is_ahead = begin.time() < clock;
        let day = if is_ahead { begin.date() } else { begin.date().tomorrow().ok()? };
        Moment::Local(day.to_datetime(clock)).time(zone, last)
    }

    /// Whether it depends on the last time in the WAL.
    pub fn is_relative(self) -> bool {
        !matches!(self, Moment::At(_) | Moment::Local(_))
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Moment, String> {
        let text = text.trim();
        if let Some(span) = text.strip_prefix('-') {
            return span.parse().map(Moment::Before).map_err(|_| EXPECTED.to_owned());
        }
        if let Ok(timestamp) = text.parse::<Timestamp>() {
            return Ok(Moment::At(timestamp));
        }
        let moment = day(text).or_else(|| ago(text)).or_else(|| clock(text).map(Moment::Clock));
        moment.or_else(|| local(text)).or_else(|| zoned(text)).ok_or_else(|| EXPECTED.to_owned())
    }
}

/// `yesterday`, `today 09:12`.
fn day(text: &str) -> Option<Moment> {
    let (name, time) = text.split_once(' ').map_or((text, None), |(a, b)| (a, Some(b)));
    let before = DAYS.iter().position(|day| day.eq_ignore_ascii_case(name))?;
    let time = time.map_or(Some(civil::Time::midnight()), clock)?;
    Some(Moment::Day(u8::try_from(before).ok()?, time))
}

/// `2 hours ago`.
fn ago(text: &str) -> Option<Moment> {
    if !text.ends_with(" ago") {
        return None;
    }
    let span: jiff::Span = text.parse().ok()?;
    let days = SpanRelativeTo::days_are_24_hours();
    let microseconds = -span.total((Unit::Microsecond, days)).ok()?;
    Span::of_microseconds(microseconds as u64).map(Moment::Before)
}

/// `09:12` and `09:12:30`.
fn clock(text: &str) -> Option<civil::Time> {
    // A day with a time would be taken for the time alone.
    let is_clock =
        text.contains(':') && text.bytes().all(|b| b.is_ascii_digit() || b":.".contains(&b));
    if is_clock { text.parse().ok() } else { None }
}

/// A day, with or without a time.
fn local(text: &str) -> Option<Moment> {
    // Minutes without seconds, as people type them.
    let is_short = text.len() == "2026-11-21 09:12".len();
    let whole = if is_short { format!("{text}:00") } else { text.to_owned() };
    let day = || text.parse::<Date>().ok().map(|date| date.at(0, 0, 0, 0));
    whole.parse::<DateTime>().ok().or_else(day).map(Moment::Local)
}

/// A time with the name of its zone behind it, as a server's log has it.
fn zoned(text: &str) -> Option<Moment> {
    let (time, zone) = text.rsplit_once(' ')?;
    let Some(Moment::Local(datetime)) = local(time) else { return None };
    timestamp(&TimeZone::get(zone).ok()?, datetime).map(Moment::At)
}

/// Of an hour that an autumn night has twice the second one, in standard time; one that a night in spring has
/// not, as if it had not begun yet: as a server takes both (`DetermineTimeZoneOffset` in
/// `src/backend/utils/adt/datetime.c`).
fn timestamp(zone: &TimeZone, datetime: DateTime) -> Option<Timestamp> {
    zone.to_ambiguous_timestamp(datetime).later().ok()
}

/// In the form in which it can be typed again.
impl fmt::Display for Moment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Moment::At(timestamp) => timestamp.fmt(out),
            Moment::Local(datetime) => datetime.fmt(out),
            Moment::Before(span) => write!(out, "-{span}"),
            Moment::Day(before, time) => {
                let name = DAYS.get(usize::from(*before)).copied().unwrap_or_default();
                write!(out, "{name} {time}")
            }
            Moment::Clock(time) => time.fmt(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn microseconds(text: &str, zone: &TimeZone) -> Option<i64> {
        let moment: Moment = text.parse().ok()?;
        moment.time(zone, Some(Time(10_000_000_000))).map(|time| time.0)
    }

    #[test]
    fn all_forms_are_read() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        for (text, utc, there) in [
            ("1970-01-01T00:00:10Z", 10_000_000, 10_000_000),
            ("1970-01-01T02:00:10+02:00", 10_000_000, 10_000_000),
            ("1970-01-01 03:00:10.000001", 10_810_000_001, 3_610_000_001),
            ("1970-01-01T03:00", 10_800_000_000, 3_600_000_000),
            ("1970-01-02", 86_400_000_000, 79_200_000_000),
            ("-2s", 9_998_000_000, 9_998_000_000),
            ("-1min", 9_940_000_000, 9_940_000_000),
            ("2 hours ago", 2_800_000_000, 2_800_000_000),
            ("1 day 1h ago", -80_000_000_000, -80_000_000_000),
            // The WAL ends at 02:46:40 UTC, 04:46:40 there.
            ("today", 0, -7_200_000_000),
            ("Yesterday", -86_400_000_000, -93_600_000_000),
            ("yesterday 01:30", -81_000_000_000, -88_200_000_000),
            ("02:46:40", 10_000_000_000, 2_800_000_000),
            ("03:00", -75_600_000_000, 3_600_000_000),
            ("1970-01-01 00:00:10.5 UTC", 10_500_000, 10_500_000),
            ("1970-01-01 01:00 Europe/Berlin", 0, 0),
        ] {
            assert_eq!(microseconds(text, &TimeZone::UTC), Some(utc), "{text}");
            assert_eq!(microseconds(text, &zone), Some(there), "{text}");
        }
        // As a server takes them: 2:30 twice in autumn, and not at all in spring.
        for (night, utc) in [("10-25", "10-25T01:30:00Z"), ("03-29", "03-29T01:30:00Z")] {
            let utc: Timestamp = format!("2026-{utc}").parse().expect("a time");
            let paris = TimeZone::get("Europe/Paris").expect("a zone");
            let local = format!("2026-{night} 02:30");
            assert_eq!(microseconds(&local, &paris), Some(utc.as_microsecond()), "{local}");
            let zoned = format!("{local} Europe/Paris");
            assert_eq!(microseconds(&zoned, &TimeZone::UTC), Some(utc.as_microsecond()), "{zoned}");
        }
        for text in [
            "",
            "now",
            "2h",
            "-",
            "2026-13-01",
            "2026-11-21 25:00",
            "1700000000",
            "25:00",
            "9",
            "two hours ago",
            "ago",
            "1 month ago",
            "tomorrow",
            "today noon",
        ] {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
    }

    /// As people say it: the span between two hours begins with the last one that there is.
    #[test]
    fn hours_are_the_last_ones_before_the_wal_ends() {
        let utc = TimeZone::UTC;
        let of = |text: &str| -> Timestamp { text.parse().expect("a time") };
        for (ends, since, until, begin, end) in [
            ("2026-11-21T14:00Z", "09:00", "10:00", "2026-11-21T09:00Z", "2026-11-21T10:00Z"),
            ("2026-11-21T09:30Z", "09:00", "10:00", "2026-11-21T09:00Z", "2026-11-21T10:00Z"),
            ("2026-11-21T08:00Z", "09:00", "10:00", "2026-11-20T09:00Z", "2026-11-20T10:00Z"),
            ("2026-11-21T08:00Z", "22:00", "02:00", "2026-11-20T22:00Z", "2026-11-21T02:00Z"),
            ("2026-11-21T23:00Z", "22:00", "02:00", "2026-11-21T22:00Z", "2026-11-22T02:00Z"),
            ("2026-11-21T23:00Z", "yesterday", "09:00", "2026-11-20T00:00Z", "2026-11-21T09:00Z"),
            ("2026-11-21T23:00Z", "09:00", "09:00", "2026-11-21T09:00Z", "2026-11-22T09:00Z"),
        ] {
            let last = Some(Time(of(ends).as_microsecond()));
            let (since, until): (Moment, Moment) =
                (since.parse().expect("a moment"), until.parse().expect("a moment"));
            let told = since.time(&utc, last).expect("a time");
            let told_end = until.time_after(told, &utc, last).expect("a time");
            let told = [told, told_end].map(|time| time.0);
            assert_eq!(told, [of(begin), of(end)].map(Timestamp::as_microsecond), "{ends} {since}");
        }
    }

    #[test]
    fn it_is_written_as_it_is_read() {
        for text in [
            "yesterday",
            "today 09:12",
            "09:12:30",
            "3 days ago",
            "1970-01-01T00:00:10Z",
            "1970-01-01 03:00:10.000001",
            "1970-01-02",
            "-2h",
        ] {
            let moment: Moment = text.parse().expect("a moment");
            assert_eq!(moment.to_string().parse(), Ok(moment), "{text}");
        }
    }
}
