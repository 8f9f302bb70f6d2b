//! How to show a result: what is the same for every command that shows one.

use super::output::wanted;
use super::values::When;
use crate::render::style::Show;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// How to show the result, whatever it is.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct ShowArgs {
    /// Write to this file, whole or not at all
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Sizes in digits or in units [default: human on a terminal, raw elsewhere]
    #[arg(long, value_name = "FORM", value_enum)]
    pub bytes: Option<BytesForm>,
    /// Colours
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = When::Auto)]
    pub color: When,
    /// Print nothing but errors
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more: all problems, files that were not read
    #[arg(short, long)]
    pub verbose: bool,
}

/// Forms of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BytesForm {
    /// Digits
    Raw,
    /// Units
    Human,
}

impl ShowArgs {
    /// How to show it to people; `main_data`: with the column of main data and headers alone.
    pub fn style(&self, main_data: bool) -> Show {
        let to_file = self.output.is_some();
        let terminal = wanted(When::Auto, to_file);
        Show {
            human: self.bytes.map_or(terminal, |form| form == BytesForm::Human),
            bars: wanted(self.color, to_file),
            main_data,
            verbose: self.verbose,
            width: width(terminal),
        }
    }

    /// Whether nothing is to be shown.
    pub fn is_silent(&self) -> bool {
        self.quiet && self.output.is_none()
    }
}

/// Columns where nothing says how many there are.
const WIDTH: usize = 80;
/// Fewer are too few for any table.
const WIDTH_MIN: usize = 40;

/// Columns of the terminal, or what `COLUMNS` says.
fn width(is_terminal: bool) -> usize {
    let stated = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let measured = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    stated.or_else(|| measured().filter(|_| is_terminal)).unwrap_or(WIDTH).max(WIDTH_MIN)
}
