//! How to show a result: what is the same for every command that shows one.

use super::values::When;
use crate::render::style::Show;
use clap::{Args, ValueEnum};

/// How to show the result, whatever it is.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct ShowArgs {
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
    /// How to show it to people; `main_data`: with the column of main data and headers alone;
    /// `terminal`: where people look at it now; `bars`: where bars and colours may be.
    pub fn style(&self, main_data: bool, terminal: bool, bars: bool) -> Show {
        Show {
            human: self.bytes.map_or(terminal, |form| form == BytesForm::Human),
            bars,
            main_data,
            verbose: self.verbose,
            width: width(terminal),
        }
    }
}

/// Columns if their number is not known.
const WIDTH: usize = 80;
/// No table fits into fewer columns.
const WIDTH_MIN: usize = 40;

/// Columns of the terminal, or what `COLUMNS` says.
fn width(is_terminal: bool) -> usize {
    let stated = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let measured = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    stated.or_else(|| measured().filter(|_| is_terminal)).unwrap_or(WIDTH).max(WIDTH_MIN)
}
