//! Limits on the command line: one option for each limit of `walstat_report::budget`. They win over
//! those of `walstat.toml`.

use crate::args::config::ConfigArgs;
use crate::config::Config;
use crate::failure::Failure;
use clap::builder::{PossibleValuesParser, ValueParser};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use walstat_report::amount::AmountError;
use walstat_report::budget::{BudgetOption, Budgets, OPTIONS};

const HEADING: &str = "Budgets";

/// Limits; each can be set in `walstat.toml` too.
#[derive(Debug, Default)]
pub struct BudgetArgs {
    given: Vec<(&'static BudgetOption, String)>,
}

impl BudgetArgs {
    /// The limits of the file, and those of the command line over them.
    pub fn limits(&self, file: &ConfigArgs) -> Result<Config, Failure> {
        let mut config = file.read()?;
        for (option, text) in &self.given {
            let usage = |error: AmountError| Failure::Usage(format!("--{}: {error}", option.name));
            (option.set)(&mut config.budgets, text).map_err(usage)?;
        }
        Ok(config)
    }
}

/// The parser of an option's value.
fn parser(option: &'static BudgetOption) -> ValueParser {
    if !option.values.is_empty() {
        return PossibleValuesParser::new(option.values).into();
    }
    let check = |text: &str| (option.set)(&mut Budgets::default(), text).map(|()| text.to_owned());
    ValueParser::new(check)
}

impl Args for BudgetArgs {
    fn augment_args(command: Command) -> Command {
        let argument = |option: &'static BudgetOption| {
            let argument = Arg::new(option.name).long(option.name).value_name(option.value_name);
            argument.help(option.help).help_heading(HEADING).value_parser(parser(option))
        };
        command.args(OPTIONS.iter().map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        BudgetArgs::augment_args(command)
    }
}

impl FromArgMatches for BudgetArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<BudgetArgs, clap::Error> {
        let mut args = BudgetArgs::default();
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for option in OPTIONS {
            let text = matches.get_one::<String>(option.name);
            self.given.extend(text.map(|text| (option, text.clone())));
        }
        Ok(())
    }
}
