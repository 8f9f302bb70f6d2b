//! What stands beside a chart: a scale of round sizes, and a time axis with round times between its ends.

use super::super::number::human_bytes;
use super::super::time::{clock, date};
use super::text::escaped;
use std::fmt::Write as _;

/// A day in seconds.
const DAY: i64 = 86_400;
/// Distances between two labels of a time axis, in seconds.
const STEPS: [i64; 19] = [
    1,
    2,
    5,
    10,
    15,
    30,
    60,
    120,
    300,
    600,
    900,
    1800,
    3600,
    7200,
    3 * 3600,
    6 * 3600,
    DAY / 2,
    DAY,
    2 * DAY,
];
/// So many labels find room.
const LABELS_MAX: f64 = 6.0;
/// Closer to an end than this part of the axis there is no label: it would be cut off.
const MARGIN: f64 = 0.04;
/// First digits of round sizes.
const ROUND: [u64; 15] = [1, 2, 4, 5, 8, 10, 20, 40, 50, 80, 100, 200, 400, 500, 800];

/// A label on the axis below a chart, and its place as a share of the width.
pub struct Label {
    /// Where.
    pub at: f64,
    /// What.
    pub text: String,
}

/// Round times from `first` on for `span` seconds.
pub fn of_times(first: f64, span: f64) -> Vec<Label> {
    let fits = |step: &i64| span / *step as f64 <= LABELS_MAX;
    let step = STEPS.into_iter().find(fits).unwrap_or_else(|| {
        let days = (span / LABELS_MAX / DAY as f64).ceil() as i64;
        days * DAY
    });
    let begin = (first / step as f64).ceil() as i64;
    let times = (begin..).map(|count| count * step);
    let times = times.take_while(|time| *time as f64 <= first + span);
    let label =
        |time: i64| Some(Label { at: (time as f64 - first) / span, text: told(time, step)? });
    let labels = times.filter_map(label);
    labels.filter(|label| (MARGIN..=1.0 - MARGIN).contains(&label.at)).collect()
}

/// A time as the model writes it, of seconds since 1970.
pub fn time_of(seconds: f64) -> Option<String> {
    jiff::Timestamp::from_second(seconds as i64).ok().map(|time| time.to_string())
}

/// A time as far as the distance of labels needs it.
fn told(seconds: i64, step: i64) -> Option<String> {
    let time = time_of(seconds as f64)?;
    let text = match step {
        _ if seconds.rem_euclid(DAY) == 0 => date(&time).get(5..)?,
        60.. => clock(&time).get(..5)?,
        _ => clock(&time),
    };
    Some(text.to_owned())
}

/// The labels of an axis, each at its place.
pub fn row(labels: &[Label]) -> String {
    let mut html = "<div class=\"axis ticks\">".to_owned();
    for label in labels {
        let place = label.at * WHOLE;
        let _ = write!(html, "<span style=\"left:{place:.2}%\">{}</span>", escaped(&label.text));
    }
    html.push_str("</div>\n");
    html
}

/// The width of an axis in the units of a place on it.
const WHOLE: f64 = 100.0;

/// The round size at the top of a scale that holds `most`.
pub fn top(most: u64) -> u64 {
    let unit = std::iter::successors(Some(1u64), |unit| unit.checked_mul(1024));
    let holding = |unit: u64| {
        let round = ROUND.into_iter();
        round.filter_map(move |digits| digits.checked_mul(unit)).find(|size| *size >= most)
    };
    unit.into_iter().find_map(holding).unwrap_or(most).max(1)
}

/// A scale from nothing to `top`, to stand beside a chart.
pub fn scale(top: u64) -> String {
    format!(
        "<div class=\"scale\"><span>{}</span><span>{}</span><span>0</span></div>\n",
        human_bytes(top),
        human_bytes(top / 2)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_with_round_sizes() {
        for (most, round) in [
            (0, 1),
            (3, 4),
            (800, 800),
            (801, 1024),
            (11 << 20, 20 << 20),
            ((1 << 30) - 1, 1 << 30),
            (u64::MAX, u64::MAX),
        ] {
            assert_eq!(top(most), round, "{most}");
        }
    }

    #[test]
    fn labels_are_round_times_between_the_ends() {
        let labels = |first: i64, span: f64| -> Vec<String> {
            of_times(first as f64, span).into_iter().map(|label| label.text).collect()
        };
        // 2026-11-21 04:40:57.
        let first = 1_795_236_057;
        assert_eq!(labels(first, 2.0), ["04:40:58"]);
        assert_eq!(labels(first, 240.0), ["04:42", "04:43", "04:44"]);
        assert_eq!(labels(first, 6.0 * 3600.0).len(), 6);
        assert_eq!(labels(first, 24.0 * 3600.0), ["06:00", "12:00", "18:00", "11-22"]);
        assert!(labels(first, 365.0 * 86_400.0).len() <= 6);
        let far = of_times(first as f64, 240.0);
        assert!(far.iter().all(|label| label.at > 0.0 && label.at < 1.0));
    }
}
