//! The sizes, ratios, growths, rates and spans of time that limits and questions are written in, on
//! the command line and in `walstat.toml`.

use std::fmt;
use std::str::FromStr;

/// Seconds of a day.
pub(crate) const DAY: f64 = 86_400.0;

/// A size in bytes, written with or without one of PostgreSQL's units (1 kB = 1024 bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub u64);

/// A fraction from 0 to 1, written as such or in percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio(pub f64);

/// A growth: 0 is none, 1 is twice as much. Written in percent, or as a fraction up to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth(pub f64);

/// Bytes a second, written as a size with or without `/s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(pub u64);

/// Bytes a second, slow to fast: `50MB/s..150MB/s`, or one rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// Slow.
    pub low: u64,
    /// Fast.
    pub high: u64,
}

/// A span of time, in microseconds: `30s`, `5min`, `2ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(u64);

/// Units of spans, and how many microseconds they are.
const SPAN_UNITS: [(&str, u64); 6] = [
    ("us", 1),
    ("ms", 1000),
    ("s", 1_000_000),
    ("min", 60_000_000),
    ("h", 3_600_000_000),
    ("d", 86_400_000_000),
];

/// Why a text is no amount: what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {0}")]
pub struct AmountError(pub &'static str);

impl FromStr for Size {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Size, AmountError> {
        let error =
            AmountError("a size like 512kB, 16MB or 10GB (units of 1024: B, kB, MB, GB, TB)");
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let shift = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "kb" => 10,
            "m" | "mb" => 20,
            "g" | "gb" => 30,
            "t" | "tb" => 40,
            _ => return Err(error),
        };
        let unit = 1u64 << shift;
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(unit).map(Size).ok_or(error);
        }
        let bytes = number.parse::<f64>().map_err(|_| error.clone())? * unit as f64;
        // Half a byte is nothing, and a float above 2^53 is not exact.
        if bytes.fract() == 0.0 && (0.0..9e15).contains(&bytes) {
            Ok(Size(bytes as u64))
        } else {
            Err(error)
        }
    }
}

impl FromStr for Ratio {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Ratio, AmountError> {
        let fraction = fraction(text).filter(|(value, _)| *value <= 1.0);
        let error = AmountError("a ratio from 0 to 1 or 0% to 100%, like 0.7 or 70%");
        fraction.map(|(value, _)| Ratio(value)).ok_or(error)
    }
}

impl FromStr for Growth {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Growth, AmountError> {
        // A bare 10 could be 10 % or ten times as much.
        let fraction = fraction(text).filter(|(value, percent)| *percent || *value <= 1.0);
        let error = AmountError("a growth like 10% or 0.1");
        fraction.map(|(value, _)| Growth(value)).ok_or(error)
    }
}

impl FromStr for Rate {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Rate, AmountError> {
        let error = AmountError("a rate like 50MB/s (units of 1024: B, kB, MB, GB)");
        let size = text.trim().strip_suffix("/s").unwrap_or(text);
        let rate = size.parse::<Size>().map(|size| Rate(size.0)).map_err(|_| error.clone())?;
        if rate.0 > 0 { Ok(rate) } else { Err(error) }
    }
}

impl FromStr for Rates {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Rates, AmountError> {
        let error = AmountError("a rate like 50MB/s, or two, slow to fast: 50MB/s..150MB/s");
        let (low, high) = text.split_once("..").unwrap_or((text, text));
        let rate = |text: &str| text.parse::<Rate>().map(|rate| rate.0).map_err(|_| error.clone());
        let rates = Rates { low: rate(low)?, high: rate(high)? };
        if rates.low <= rates.high { Ok(rates) } else { Err(error) }
    }
}

/// As it is read again.
impl fmt::Display for Rate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}B/s", self.0)
    }
}

/// As they are read again.
impl fmt::Display for Rates {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}..{}", Rate(self.low), Rate(self.high))
    }
}

impl Span {
    /// So many microseconds. Times are counted in them, and reach into both directions.
    pub fn of_microseconds(microseconds: u64) -> Option<Span> {
        (microseconds <= i64::MAX as u64 / 4).then_some(Span(microseconds))
    }

    /// In microseconds.
    pub fn microseconds(self) -> u64 {
        self.0
    }

    /// Whole seconds in it.
    pub fn seconds(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Whether it is a number of seconds.
    pub fn is_whole_seconds(self) -> bool {
        self.0.is_multiple_of(1_000_000)
    }
}

impl FromStr for Span {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Span, AmountError> {
        let error = AmountError("a span like 30s (units: us, ms, s, min, h, d)");
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let (_, unit) = SPAN_UNITS
            .into_iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(unit.trim()))
            .ok_or_else(|| error.clone())?;
        let number: u64 = number.parse().map_err(|_| error.clone())?;
        number.checked_mul(unit).and_then(Span::of_microseconds).ok_or(error)
    }
}

/// As it is read again.
impl fmt::Display for Span {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}us", self.0)
    }
}

/// A number that is not negative, and whether it was written in percent.
fn fraction(text: &str) -> Option<(f64, bool)> {
    let text = text.trim();
    let (number, divisor) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (text, 1.0),
    };
    let plain = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let value = number.parse::<f64>().ok().filter(|value| plain && value.is_finite())?;
    Some((value / divisor, divisor > 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_the_servers_units() {
        let sizes = [
            ("0", 0),
            ("4096", 4096),
            ("1kB", 1 << 10),
            ("16MB", 16 << 20),
            ("10 GB", 10 << 30),
            ("1.5gb", 3 << 29),
            ("2T", 2 << 40),
        ];
        for (text, bytes) in sizes {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "GB", "-1", "1.3B", "10 parsecs", "1e3", "99999999999TB", "NaN", "1.2.3MB"]
        {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    #[test]
    fn ratios_are_read_as_fractions_and_in_percent() {
        for (text, ratio) in [("0.7", 0.7), ("70%", 0.7), ("12.5 %", 0.125), ("0", 0.0), ("1", 1.0)]
        {
            assert_eq!(text.parse(), Ok(Ratio(ratio)), "{text}");
        }
        for text in ["70", "1.01", "101%", "-0.1", "nan", "inf", "", "%", "+0.5"] {
            assert!(text.parse::<Ratio>().is_err(), "{text}");
        }
    }

    #[test]
    fn rates_are_sizes_a_second() {
        assert_eq!("50MB/s".parse(), Ok(Rate(50 << 20)));
        assert_eq!("1GB".parse(), Ok(Rate(1 << 30)));
        assert_eq!("50MB/s..150MB/s".parse(), Ok(Rates { low: 50 << 20, high: 150 << 20 }));
        assert_eq!("8kB".parse(), Ok(Rates { low: 8192, high: 8192 }));
        for text in ["0", "", "50MB/h", "150MB/s..50MB/s", "..", "1MB.."] {
            assert!(text.parse::<Rates>().is_err(), "{text}");
        }
        let rates = Rates { low: 1, high: 2 };
        assert_eq!(rates.to_string().parse(), Ok(rates));
    }

    #[test]
    fn spans_have_units() {
        for (text, microseconds) in [("30s", 30_000_000), ("2ms", 2000), ("1 min", 60_000_000)] {
            assert_eq!(text.parse(), Ok(Span(microseconds)), "{text}");
        }
        for text in ["30", "", "s", "-1s", "1.5s", "5 years", "99999999999999999d"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
        assert_eq!(Span(5).to_string().parse(), Ok(Span(5)));
    }

    #[test]
    fn growth_may_be_more_than_all_but_not_ambiguous() {
        for (text, growth) in [("10%", 0.1), ("250%", 2.5), ("0.1", 0.1), ("0%", 0.0)] {
            assert_eq!(text.parse(), Ok(Growth(growth)), "{text}");
        }
        for text in ["10", "1.5", "-5%", "ten"] {
            assert!(text.parse::<Growth>().is_err(), "{text}");
        }
    }
}
