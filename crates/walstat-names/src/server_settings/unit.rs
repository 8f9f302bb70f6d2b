//! Values of settings with their units (`convert_to_base_unit` in `guc.c`).

use walstat_format::image::Compression;

/// Units of sizes, in bytes. They are case-sensitive.
const SIZES: [(&str, f64); 5] = [
    ("B", 1.0),
    ("kB", 1024.0),
    ("MB", 1_048_576.0),
    ("GB", 1_073_741_824.0),
    ("TB", 1_099_511_627_776.0),
];
/// Units of times, in seconds.
const TIMES: [(&str, f64); 6] =
    [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0), ("d", 86_400.0)];

fn number(text: &str, units: &[(&str, f64)], plain: f64) -> Option<u64> {
    let text = text.trim();
    let is_of_unit = |c: char| c.is_ascii_alphabetic();
    let number = text.trim_end_matches(is_of_unit);
    let unit = text.get(number.len()..)?;
    let factor = match unit {
        "" => plain,
        unit => units.iter().find(|(name, _)| *name == unit)?.1,
    };
    let number: f64 = number.trim_end().parse().ok()?;
    let value = (number * factor).round();
    (0.0..1e18).contains(&value).then_some(value as u64)
}

/// A size in bytes; without a unit it is in so many bytes each.
pub(super) fn bytes(text: &str, plain: u64) -> Option<u64> {
    number(text, &SIZES, plain as f64)
}

/// A time in seconds.
pub(super) fn seconds(text: &str) -> Option<u64> {
    number(text, &TIMES, 1.0)
}

/// A boolean, as `parse_bool` takes it: words may be cut short.
pub(super) fn switch(text: &str) -> Option<bool> {
    let text = text.trim().to_ascii_lowercase();
    let is_one_of =
        |words: &[&str]| words.iter().any(|word| !text.is_empty() && word.starts_with(&*text));
    match text.as_str() {
        "1" => Some(true),
        "0" => Some(false),
        "o" => None,
        _ if is_one_of(&["on", "true", "yes"]) => Some(true),
        _ if is_one_of(&["off", "false", "no"]) => Some(false),
        _ => None,
    }
}

/// `wal_compression`: a boolean up to 14, where on is pglz; since then also the codec's name.
pub(super) fn codec(text: &str) -> Option<String> {
    let name = text.trim().to_ascii_lowercase();
    if let Some(codec) = Compression::by_name(&name) {
        return Some(codec.name().to_owned());
    }
    let codec = if switch(text)? { Compression::Pglz.name() } else { "off" };
    Some(codec.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_the_server() {
        assert_eq!(bytes("1GB", 1 << 20), Some(1 << 30));
        assert_eq!(bytes(" 64 ", 1 << 20), Some(64 << 20));
        assert_eq!(bytes("1.5 GB", 1 << 20), Some(3 << 29));
        assert_eq!(bytes("1gb", 1), None);
        assert_eq!(
            (seconds("5min"), seconds("300"), seconds("1 d")),
            (Some(300), Some(300), Some(86_400))
        );
        assert_eq!((seconds("-1"), seconds(""), seconds("1 week")), (None, None, None));
    }

    #[test]
    fn switches_may_be_cut_short() {
        let found = ["on", "TRUE", "y", "1", "of", "f", "no", "0"].map(switch);
        assert_eq!(found, [true, true, true, true, false, false, false, false].map(Some));
        assert_eq!((switch("o"), switch(""), switch("maybe")), (None, None, None));
        let codecs = ["on", "lz4", "off", "brotli"].map(codec);
        assert_eq!(codecs, [Some("pglz".into()), Some("lz4".into()), Some("off".into()), None]);
    }
}
