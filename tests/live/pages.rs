//! Pages of `--format html` in a real browser, which draws them without complaint and obeys no name.

use crate::browser::seen;
use crate::support::fixtures::sample;
use crate::support::month::said;
use crate::support::walstat;

#[test]
fn a_browser_draws_it_without_complaint_and_a_telephone_does_not_scroll_sideways() {
    for sample in ["pg15-mixed", "pg9.5-mixed", "truncated"].map(sample) {
        let page = walstat(&[sample.wal.to_str().expect("UTF-8"), "-f", "html"]).stdout;
        let Some(seen) = seen(&page) else { return };
        assert!(seen.document.contains("</html>") && seen.document.contains("Books"));
        assert!(seen.complaints.is_empty(), "{}: {:?}", sample.name, seen.complaints);
        assert!(seen.width <= 390, "{}: {} pixels wide", sample.name, seen.width);
        assert!(seen.marks >= 3, "{}: {} marks", sample.name, seen.marks);
        assert_eq!(seen.narrow_tiles, 0, "{}: tiles too narrow for a word", sample.name);
    }
}

#[test]
fn a_browser_obeys_no_name_of_a_month() {
    for more in [&[][..], &["--top", "0"]] {
        let page = said("html", more);
        let Some(seen) = seen(&page) else { return };
        assert!(seen.complaints.is_empty(), "{:?}", seen.complaints);
        assert!(seen.width <= 390, "{} pixels", seen.width);
        assert!(seen.marks >= 3, "{} marks", seen.marks);
        for tag in ["<script", "<img", "onerror=\""] {
            assert!(!seen.document.contains(tag), "{tag} in the document");
        }
    }
}
