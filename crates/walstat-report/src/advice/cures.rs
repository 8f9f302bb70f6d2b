//! What rules say is to be done, where there is much to say of it: why, to which value, and at what price.
//! When a rule speaks is in `rules/`.

pub(super) mod of_checkpoints;
pub(super) mod of_large_work;
pub(super) mod of_updates;
