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
}
