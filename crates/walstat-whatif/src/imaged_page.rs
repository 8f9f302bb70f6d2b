//! The page whose rows were looked at last, if it got an image then: vacuum freezes rows of such a page
//! (`heap_page_prune_and_freeze`, `lazy_scan_prune`; 16 and later).
//!
//! The trace is built with the base's own images, and each simulated run has others; both ask this one rule.

use super::blocks::BlockNumber;

/// The page with an image that was looked at last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ImagedPage(Option<BlockNumber>);

/// A record before which rows of a page were looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    /// The page.
    pub(crate) block: BlockNumber,
    /// Whether the record has an image of it.
    pub(crate) has_image: bool,
    /// Whether the record prunes a page that got an image for hint bits just before: what vacuum does next
    /// still sees that image.
    pub(crate) prunes_after_hint: bool,
}

impl ImagedPage {
    /// Whether it is this one.
    pub(crate) fn is(&self, block: BlockNumber) -> bool {
        self.0 == Some(block)
    }

    /// Rows of a page are looked at.
    pub(crate) fn look(&mut self, look: Look) {
        let stays = look.prunes_after_hint && self.is(look.block);
        self.0 = (look.has_image || stays).then_some(look.block);
    }

    /// Rows of some page are looked at, which gets no image.
    pub(crate) fn look_without_image(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Look = Look { block: 7, has_image: false, prunes_after_hint: false };

    #[test]
    fn the_last_page_with_an_image_is_known_until_another_is_looked_at() {
        let mut imaged = ImagedPage::default();
        imaged.look(Look { has_image: true, ..PLAIN });
        assert!(imaged.is(7) && !imaged.is(8));
        imaged.look(PLAIN);
        assert!(!imaged.is(7));
        imaged.look(Look { has_image: true, ..PLAIN });
        imaged.look_without_image();
        assert!(!imaged.is(7));
    }

    #[test]
    fn pruning_keeps_the_image_for_hint_bits_of_its_own_page_only() {
        let pruning = Look { prunes_after_hint: true, ..PLAIN };
        let mut imaged = ImagedPage::default();
        imaged.look(pruning);
        assert!(!imaged.is(7), "there was none");
        imaged.look(Look { has_image: true, ..PLAIN });
        imaged.look(pruning);
        assert!(imaged.is(7));
        imaged.look(Look { block: 8, ..pruning });
        assert!(!imaged.is(7) && !imaged.is(8));
    }
}
