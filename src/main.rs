//! The door: everything else is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    walstat::main()
}
