//! Times and durations as people read them.

use super::number::UNKNOWN;

/// `2026-11-21 09:12:01` of a time of the model; a dash without one.
pub fn moment(time: Option<&str>) -> String {
    let Some(time) = time else { return UNKNOWN.to_owned() };
    let whole = time.split('.').next().unwrap_or(time);
    whole.trim_end_matches('Z').replacen('T', " ", 1)
}

/// `2026-11-21`.
pub fn date(time: &str) -> &str {
    time.split_once('T').map_or(time, |(date, _)| date)
}

/// `09:12:01`.
pub fn clock(time: &str) -> &str {
    let clock = time.split_once('T').map_or(time, |(_, clock)| clock);
    clock.split(['.', 'Z']).next().unwrap_or(clock)
}

/// `5 min 2 s`.
pub fn duration(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0) => "less than a second".to_owned(),
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// `3 to 9 s`; with a decimal where both are short, and no figures where both are next to nothing.
pub fn seconds_between(low: f64, high: f64) -> String {
    if high < 0.05 {
        return "less than 0.1 s".to_owned();
    }
    let decimals = if high < 10.0 { 1 } else { 0 };
    format!("{low:.decimals$} to {high:.decimals$} s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_durations_are_told_short() {
        assert_eq!(moment(Some("2026-11-21T09:12:01.000000Z")), "2026-11-21 09:12:01");
        assert_eq!(moment(None), "–");
        assert_eq!(date("2026-11-21T09:12:01Z"), "2026-11-21");
        assert_eq!(clock("2026-11-21T09:12:01.000000Z"), "09:12:01");
        let told = [1, 60, 302, 3600, 5400].map(duration);
        assert_eq!(told, ["1 s", "1 min", "5 min 2 s", "1 h 0 min", "1 h 30 min"]);
    }

    #[test]
    fn short_times_have_a_decimal() {
        assert_eq!(seconds_between(1.04, 9.99), "1.0 to 10.0 s");
        assert_eq!(seconds_between(9.6, 28.4), "10 to 28 s");
        assert_eq!(seconds_between(0.004, 0.012), "less than 0.1 s");
        assert_eq!(seconds_between(0.01, 0.06), "0.0 to 0.1 s");
    }
}
