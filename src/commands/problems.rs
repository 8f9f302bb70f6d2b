//! Reports problems of the WAL on standard error, for outputs that have no place for them.

use crate::output::tell;
use crate::render::closing;
use walstat_report::model::Problem;

/// How many are told, unless all are asked for.
const PROBLEMS_TOLD: usize = 10;

/// Tells problems on standard error.
pub fn tell_problems(problems: &[Problem], is_verbose: bool) {
    // Where standard error is closed nothing can be told.
    let _ = closing::problems(problems, PROBLEMS_TOLD, is_verbose, &mut anstream::stderr());
}

/// The same for commands without `-v`.
pub fn tell_first_problems(problems: &[Problem]) {
    problems.iter().take(PROBLEMS_TOLD).for_each(|problem| tell(&closing::problem_line(problem)));
    let more = problems.len().saturating_sub(PROBLEMS_TOLD);
    if more > 0 {
        tell(&format!("PROBLEM {more} more: walstat check tells all"));
    }
}
