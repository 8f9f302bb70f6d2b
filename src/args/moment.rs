//! Moments as they are typed for `--since` and `--until`.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
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
}

impl Moment {
    /// The time that it is; `last`: the last one in the WAL. `None` if there is none, or if it is too
    /// far away.
    pub fn time(self, zone: &TimeZone, last: Option<Time>) -> Option<Time> {
        let at = |timestamp: Timestamp| Time(timestamp.as_microsecond());
        match self {
            Moment::At(timestamp) => Some(at(timestamp)),
            Moment::Local(datetime) => zone.to_timestamp(datetime).ok().map(at),
            Moment::Before(span) => {
                let microseconds = i64::try_from(span.microseconds()).ok()?;
                last?.0.checked_sub(microseconds).map(Time)
            }
        }
    }

    /// Whether it depends on the last time in the WAL.
    pub fn is_relative(self) -> bool {
        matches!(self, Moment::Before(_))
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Moment, String> {
        let expected = || {
            "expected a time like 2026-11-21T09:12:00Z, 2026-11-21 09:12:00, 2026-11-21, or -2h \
             before the last one in the WAL"
                .to_owned()
        };
        if let Some(span) = text.strip_prefix('-') {
            return span.parse().map(Moment::Before).map_err(|_| expected());
        }
        if let Ok(timestamp) = text.parse::<Timestamp>() {
            return Ok(Moment::At(timestamp));
        }
        // Minutes without seconds, as people type them.
        let whole =
            if text.len() == "2026-11-21 09:12".len() { format!("{text}:00") } else { text.into() };
        let datetime = whole.parse::<DateTime>().or_else(|_| {
            let date: Result<Date, _> = text.parse();
            date.map(|date| date.at(0, 0, 0, 0))
        });
        datetime.map(Moment::Local).map_err(|_| expected())
    }
}

/// In the form in which it can be typed again.
impl fmt::Display for Moment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Moment::At(timestamp) => timestamp.fmt(out),
            Moment::Local(datetime) => datetime.fmt(out),
            Moment::Before(span) => write!(out, "-{span}"),
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
        ] {
            assert_eq!(microseconds(text, &TimeZone::UTC), Some(utc), "{text}");
            assert_eq!(microseconds(text, &zone), Some(there), "{text}");
        }
        for text in ["", "now", "2h", "-", "2026-13-01", "2026-11-21 25:00", "1700000000"] {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
    }

    #[test]
    fn it_is_written_as_it_is_read() {
        for text in ["1970-01-01T00:00:10Z", "1970-01-01 03:00:10.000001", "1970-01-02", "-2h"] {
            let moment: Moment = text.parse().expect("a moment");
            assert_eq!(moment.to_string().parse(), Ok(moment), "{text}");
        }
    }
}
