//! Sizes as people read them.

const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];

/// Bytes in PostgreSQL's units (1 kB = 1024 bytes), three significant digits: `3.42 MB`.
pub fn human_bytes(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = UNITS[0];
    for larger in &UNITS[1..] {
        if value < 999.5 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    let decimals = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

/// Whole megabytes, as many as there are: `3 MB` of 3.9. For a sentence in which little more or less is
/// nothing.
pub(crate) fn whole_megabytes(bytes: u64) -> String {
    format!("{} MB", bytes >> 20)
}

/// As settings are written, in megabytes that are enough: `4MB` for 3.1.
pub fn megabytes_setting(bytes: u64) -> String {
    format!("{}MB", bytes.div_ceil(1 << 20))
}

/// What lies between two sizes, rounded outwards: `3 and 5 MB` for 3.9 and 4.1.
pub(crate) fn megabytes_around(least: u64, most: u64) -> String {
    format!("{} and {} MB", least >> 20, most.div_ceil(1 << 20))
}

/// The nearest megabyte, and from a gigabyte on gigabytes with a decimal: sizes of disks.
pub(crate) fn disk_size(bytes: u64) -> String {
    match bytes {
        0..0x4000_0000 => whole_megabytes(bytes + (1 << 19)),
        _ => format!("{:.1} GB", bytes as f64 / f64::from(1 << 30)),
    }
}

/// A size that is a power of two, without decimals: `16 MB`.
pub fn whole_bytes(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 30 && b.is_multiple_of(1 << 30) => format!("{} GB", b >> 30),
        b if b >= 1 << 20 && b.is_multiple_of(1 << 20) => format!("{} MB", b >> 20),
        b if b >= 1 << 10 && b.is_multiple_of(1 << 10) => format!("{} kB", b >> 10),
        b => format!("{b} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_the_servers_units() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 kB"),
            (999 << 10, "999 kB"),
            (1000 << 10, "0.98 MB"),
            (16 << 20, "16.0 MB"),
            (396_361_728, "378 MB"),
            (u64::MAX, "16384 PB"),
        ] {
            assert_eq!(human_bytes(bytes), text);
        }
    }

    #[test]
    fn each_rounds_as_its_name_says() {
        let bytes = (3 << 20) + 1;
        assert_eq!(whole_megabytes(bytes), "3 MB");
        assert_eq!(megabytes_setting(bytes), "4MB");
        assert_eq!(megabytes_around(bytes, bytes), "3 and 4 MB");
        assert_eq!((disk_size(bytes), disk_size(3 << 29)), ("3 MB".into(), "1.5 GB".into()));
        assert_eq!(disk_size(1_862_296), "2 MB");
        assert_eq!((whole_bytes(bytes), whole_bytes(3 << 20)), ("3145729 B".into(), "3 MB".into()));
    }
}
