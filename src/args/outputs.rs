//! `-f` and `-o`: formats and where they go. One run can have several outputs: each `-o` belongs to the
//! `-f` before it.

use super::values::When;
use crate::args::show::ShowArgs;
use crate::failure::Failure;
use crate::output::inputs::{place_of, refuse_to_overwrite};
use crate::output::{file_of, wanted, write_to, write_unstyled};
use crate::render::style::Show;
use clap::builder::EnumValueParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueEnum, value_parser};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use walstat_format::ordered::OrderBy;

/// One of the formats of a command.
pub trait OutputFormat: ValueEnum + Default + Copy + PartialEq + Send + Sync + 'static {}

impl<F: ValueEnum + Default + Copy + PartialEq + Send + Sync + 'static> OutputFormat for F {}

/// One output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output<F> {
    /// Its format.
    pub format: F,
    /// Its file; `None`: standard output.
    pub file: Option<PathBuf>,
}

/// All outputs of a run: at least one, and at most one of them on standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outputs<F> {
    /// In the order in which they were asked for.
    pub all: Vec<Output<F>>,
    /// Whether a format was asked for.
    pub has_format: bool,
}

impl<F: OutputFormat> Outputs<F> {
    /// Whether one of the outputs has a format.
    pub fn has(&self, format: F) -> bool {
        self.all.iter().any(|output| output.format == format)
    }

    /// The formats.
    pub fn formats(&self) -> impl Iterator<Item = F> + '_ {
        self.all.iter().map(|output| output.format)
    }

    /// Refuses to overwrite an input.
    pub fn refuse_to_overwrite<'p>(
        &self,
        inputs: impl IntoIterator<Item = &'p Path>,
    ) -> Result<(), Failure> {
        let inputs: Vec<&Path> = inputs.into_iter().collect();
        let refuse = |file: &Path| refuse_to_overwrite(Some(file), inputs.iter().copied());
        self.all.iter().filter_map(|output| output.file.as_deref()).try_for_each(refuse)
    }

    /// The outputs of a merge: these, in the format that the partial result was made for unless another one
    /// was asked for.
    pub fn with_format_of_partial(&self, partial: &Outputs<F>) -> Outputs<F> {
        let format = partial.all.first().map(|output| output.format).unwrap_or_default();
        let mut outputs = self.clone();
        if !self.has_format {
            outputs.all.iter_mut().for_each(|output| output.format = format);
        }
        outputs
    }

    /// The outputs, without the one on standard output if nothing is to be shown.
    pub fn shown(&self, show: &ShowArgs) -> impl Iterator<Item = &Output<F>> {
        self.all.iter().filter(|output| output.file.is_some() || !show.quiet)
    }

    /// Writes to each output why there is no report, if its format has a form for that.
    pub fn answer(
        &self,
        show: &ShowArgs,
        write: impl Fn(F, &mut dyn Write) -> Option<io::Result<()>>,
    ) -> Result<(), Failure> {
        self.shown(show).try_for_each(|output| {
            let mut text = Vec::new();
            let Some(written) = write(output.format, &mut text) else { return Ok(()) };
            output.write(false, When::Never, |out| written.and_then(|()| out.write_all(&text)))
        })
    }

    /// The only output.
    ///
    /// # Errors
    ///
    /// When there are several.
    pub fn only(&self) -> Result<&Output<F>, Failure> {
        match self.all.as_slice() {
            [output] => Ok(output),
            _ => Err(Failure::Usage("--partial takes one output".to_owned())),
        }
    }
}

impl<F> Output<F> {
    /// Runs `write` on its file or on standard output; `styled`: the format has colours, which are
    /// removed unless `color` allows them. Other formats are written as they are: what looks like a
    /// style there is part of a name.
    pub fn write(
        &self,
        styled: bool,
        color: When,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        if styled {
            write_to(self.file.as_deref(), color, write)
        } else {
            write_unstyled(self.file.as_deref(), write)
        }
    }

    /// How to show it to people; `main_data`: with the column of main data and headers alone.
    pub fn style(&self, show: &ShowArgs, main_data: bool) -> Show {
        let to_file = self.file.is_some();
        show.style(main_data, wanted(When::Auto, to_file), wanted(show.color, to_file))
    }
}

/// The ids of the two arguments.
const FORMAT: &str = "format";
const OUTPUT: &str = "output";

impl<F: OutputFormat> Args for Outputs<F> {
    fn augment_args(command: Command) -> Command {
        let format = Arg::new(FORMAT)
            .short('f')
            .long("format")
            .value_name("F")
            .value_parser(EnumValueParser::<F>::new())
            .action(ArgAction::Append)
            .help("Format; several from one run: -f json -o a.json -f table [default: table]")
            .help_heading("Output");
        let output = Arg::new(OUTPUT)
            .short('o')
            .long("output")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .action(ArgAction::Append)
            .help("Write to this file, whole or not at all, in the format before it; - is standard output")
            .help_heading("Output");
        command.arg(format).arg(output)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// What was typed, in this order.
enum Typed<F> {
    Format(F),
    Output(PathBuf),
}

impl<F: OutputFormat> FromArgMatches for Outputs<F> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let formats = matches.get_many::<F>(FORMAT).into_iter().flatten().copied();
        let formats = formats.map(Typed::Format).zip(places(matches, FORMAT));
        let files = matches.get_many::<PathBuf>(OUTPUT).into_iter().flatten().cloned();
        let files = files.map(Typed::Output).zip(places(matches, OUTPUT));
        let mut typed: Vec<(Typed<F>, usize)> = formats.chain(files).collect();
        typed.order_by_key(|(_, place)| *place);
        let typed: Vec<Typed<F>> = typed.into_iter().map(|(typed, _)| typed).collect();
        let has_format = typed.iter().any(|typed| matches!(typed, Typed::Format(_)));
        let all =
            paired(typed).map_err(|text| clap::Error::raw(ErrorKind::ArgumentConflict, text))?;
        check(&all).map_err(|text| clap::Error::raw(ErrorKind::ArgumentConflict, text))?;
        Ok(Outputs { all, has_format })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn places(matches: &ArgMatches, id: &str) -> impl Iterator<Item = usize> {
    matches.indices_of(id).into_iter().flatten()
}

/// Pairs each file with the format before it. A single file and a single format belong together in any
/// order.
fn paired<F: OutputFormat>(mut typed: Vec<Typed<F>>) -> Result<Vec<Output<F>>, String> {
    if let [Typed::Output(_), Typed::Format(_)] = typed.as_slice() {
        typed.reverse();
    }
    let formats = typed.iter().filter(|typed| matches!(typed, Typed::Format(_))).count();
    let mut all = Vec::new();
    let mut open: Option<F> = None;
    for typed in typed {
        match typed {
            Typed::Format(format) => {
                all.extend(open.replace(format).map(|format| Output { format, file: None }));
            }
            Typed::Output(file) if open.is_none() && formats > 0 => {
                let file = file.display();
                return Err(format!("-o {file} has no format of its own, expected -f before it\n"));
            }
            Typed::Output(file) => {
                let file = file_of(Some(&file)).map(Path::to_owned);
                all.push(Output { format: open.take().unwrap_or_default(), file });
            }
        }
    }
    all.extend(open.map(|format| Output { format, file: None }));
    if all.is_empty() {
        all.push(Output { format: F::default(), file: None });
    }
    Ok(all)
}

/// No two outputs may go to the same place.
fn check<F: OutputFormat>(all: &[Output<F>]) -> Result<(), String> {
    let twice = all.iter().enumerate().find_map(|(place, output)| {
        let to = |output: &Output<F>| {
            let file = output.file.as_deref()?;
            Some(place_of(file).unwrap_or_else(|| file.to_owned()))
        };
        let target = to(output);
        let is_same = |before: &Output<F>| to(before) == target;
        all.iter().take(place).any(is_same).then_some(output)
    });
    twice.map_or(Ok(()), |output| {
        let place = match &output.file {
            None => "standard output".to_owned(),
            Some(file) => file.display().to_string(),
        };
        Err(format!("two outputs for {place}, expected -o FILE after each --format but one\n"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Format;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        outputs: Outputs<Format>,
    }

    fn outputs(line: &str) -> Option<Vec<(Format, Option<String>)>> {
        let typed = ["walstat"].into_iter().chain(line.split_whitespace());
        let line = Line::try_parse_from(typed).ok()?;
        let file = |file: PathBuf| file.display().to_string();
        Some(line.outputs.all.into_iter().map(|o| (o.format, o.file.map(file))).collect())
    }

    #[test]
    fn each_file_belongs_to_the_format_before_it() {
        use Format::{Csv, Json, Table};
        let file = |name: &str| Some(name.to_owned());
        assert_eq!(outputs(""), Some(vec![(Table, None)]));
        assert_eq!(outputs("-f json"), Some(vec![(Json, None)]));
        assert_eq!(outputs("-o a"), Some(vec![(Table, file("a"))]));
        assert_eq!(outputs("-o a -f json"), Some(vec![(Json, file("a"))]));
        assert_eq!(outputs("-f json -o a -f csv"), Some(vec![(Json, file("a")), (Csv, None)]));
        assert_eq!(
            outputs("-f json -o a -f csv -o b"),
            Some(vec![(Json, file("a")), (Csv, file("b"))])
        );
        assert_eq!(outputs("-f json -o - -f csv -o b"), Some(vec![(Json, None), (Csv, file("b"))]));
    }

    #[test]
    fn no_two_outputs_go_to_the_same_place() {
        for line in [
            "-f json -f csv",
            "-f json -o a -f csv -o a",
            "-f json -o a -f csv -o ./a",
            "-o a -o a",
            "-f csv -o - -f json",
            "-o a -f json -o b -f csv",
        ] {
            assert_eq!(outputs(line), None, "{line}");
        }
    }
}
