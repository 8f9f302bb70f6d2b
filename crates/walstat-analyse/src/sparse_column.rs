//! A column that only some rows of a large table have a value in, kept beside the table: a row without
//! a value pays four bytes.

use super::fork_table::push_tightly;
use serde::{Deserialize, Serialize};

/// Where a row's value lies in its [`SparseColumn`]; nowhere at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Handle(u32);

/// The values of those rows that have one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SparseColumn<T>(Vec<T>);

impl<T> Default for SparseColumn<T> {
    fn default() -> Self {
        SparseColumn(Vec::new())
    }
}

impl<T: Default> SparseColumn<T> {
    /// The value of a row; an empty one is made if it has none.
    #[inline(always)]
    pub(crate) fn value(&mut self, handle: &mut Handle) -> &mut T {
        if handle.0 == 0 || handle.0 as usize > self.0.len() {
            push_tightly(&mut self.0, T::default());
            // 2³² values would have run out of memory long before.
            handle.0 = self.0.len() as u32;
        }
        let place = handle.0 as usize - 1;
        &mut self.0[place]
    }

    /// The value of a row, if it has one.
    pub(crate) fn get(&self, handle: Handle) -> Option<&T> {
        self.0.get((handle.0 as usize).checked_sub(1)?)
    }

    /// The value of a row for good, if it has one.
    pub(crate) fn take(&mut self, handle: Handle) -> Option<T> {
        let place = (handle.0 as usize).checked_sub(1)?;
        self.0.get_mut(place).map(std::mem::take)
    }

    /// All values.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut()
    }

    /// Takes no more memory than it needs.
    pub(crate) fn shrink(&mut self) {
        self.0.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_its_value_from_the_first_use_on() {
        let mut rare = SparseColumn::<u64>::default();
        let (mut first, mut second) = (Handle::default(), Handle::default());
        assert_eq!(rare.get(first), None);
        assert_eq!(rare.take(first), None);
        *rare.value(&mut second) += 5;
        *rare.value(&mut first) += 7;
        *rare.value(&mut second) += 1;
        assert_eq!((rare.get(first), rare.get(second)), (Some(&7), Some(&6)));
        assert_eq!((rare.take(second), rare.get(second)), (Some(6), Some(&0)));
    }
}
