//! Numbers as people read them.

use walstat_report::model::percent::percent;
pub use walstat_report::model::size::{human_bytes, whole_bytes};

/// Stands for what is not known.
pub const UNKNOWN: &str = "–";

/// A count with its thousands apart: `2,431,391`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things: `1 record`, `2,431,391 records`.
pub fn counted(count: u64, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        _ => format!("{} {thing}s", grouped(count)),
    }
}

/// A fraction in percent with two decimals; `–` if there is none.
pub fn fraction(value: Option<f64>) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), |share| percent(share, 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_no_plural() {
        let told = [0, 1, 2, 1000].map(|count| counted(count, "record"));
        assert_eq!(told, ["0 records", "1 record", "2 records", "1,000 records"]);
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1,000");
        assert_eq!(grouped(2_431_391), "2,431,391");
    }
}
