//! Shares as people read them.

/// 12.3 of 0.123.
pub fn hundredths(share: f64) -> f64 {
    share * 100.0
}

/// `12.3 %` of 0.123.
pub fn percent(share: f64, decimals: usize) -> String {
    format!("{:.decimals$} %", hundredths(share))
}

/// `+12.3 %` of 0.123.
pub fn change(share: f64, decimals: usize) -> String {
    format!("{:+.decimals$} %", hundredths(share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_told_in_percent() {
        assert_eq!(percent(0.1234, 0), "12 %");
        assert_eq!(percent(0.1234, 2), "12.34 %");
        assert_eq!(percent(1.0, 1), "100.0 %");
        assert_eq!(change(0.1, 1), "+10.0 %");
        assert_eq!(change(-0.1234, 0), "-12 %");
    }
}
