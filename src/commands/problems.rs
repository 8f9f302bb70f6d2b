//! Reports problems of the WAL on standard error, for outputs that have no place for them.

use crate::render::closing;
use walstat_report::model::Problem;

/// How many are told, unless all are asked for.
pub const PROBLEMS_TOLD: usize = 10;

/// Tells problems on standard error.
pub fn tell_problems(problems: &[Problem], is_verbose: bool) {
    // Where standard error is closed nothing can be told.
    let _ = closing::problems(problems, PROBLEMS_TOLD, is_verbose, &mut anstream::stderr());
}
