//! What a check answers a monitoring system where it has no result: a plugin says so on standard output, with
//! an exit code of its own.

use crate::args::check::CheckFormat;
use crate::args::outputs::Outputs;
use crate::args::values::When;
use crate::failure::{Exit, Failure};
use crate::output::write_to;
use crate::render::nagios::{self, State};

/// How a check ends that has no result, as a plugin or not.
pub fn failed(outputs: &Outputs<CheckFormat>, failure: Failure) -> Result<Exit, Failure> {
    if !outputs.has(CheckFormat::Nagios) {
        return Err(failure);
    }
    let reason = failure.to_string();
    // What is no target for a result is none for an answer either.
    let may_write_files = !matches!(failure, Failure::Target { .. });
    for output in outputs.all.iter().filter(|output| output.format == CheckFormat::Nagios) {
        let file = output.file.as_deref().filter(|_| may_write_files);
        write_to(file, When::Never, |out| nagios::unknown(&reason, out))?;
    }
    Ok(Exit::Plugin(State::Unknown))
}

/// The plugin's answer where there is none.
pub fn unknown(reason: &str) -> Result<Exit, Failure> {
    write_to(None, When::Never, |out| nagios::unknown(reason, out))?;
    Ok(Exit::Plugin(State::Unknown))
}
