//! What `walstat names` prints: every relation that is known, a row for each of its files.

use super::{CommandName, SCHEMA, VERSION};
use serde::Serialize;
pub use walstat_names::catalog::listing::Listed;
pub use walstat_read::input::formula::marked;

/// The names that paths yield.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NamesReport {
    /// The program's version.
    pub walstat: String,
    /// The version of the keys.
    pub schema: String,
    /// What was asked for.
    pub command: CommandName,
    /// The rows.
    pub names: Vec<Listed>,
    /// What is missing, and why.
    pub notes: Vec<String>,
}

impl NamesReport {
    /// The report of these rows.
    pub fn new(names: Vec<Listed>, notes: Vec<String>) -> NamesReport {
        let (walstat, schema) = (VERSION.to_owned(), SCHEMA.to_owned());
        NamesReport { walstat, schema, command: CommandName::Names, names, notes }
    }
}
