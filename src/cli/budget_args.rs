//! Limits on the command line: an option for each row of the table of budgets. They win over those
//! of `walstat.toml`.

use super::Failure;
use super::config::Config;
use super::config_args::ConfigArgs;
use crate::report::amount::AmountError;
use crate::report::budget::{BudgetOption, Budgets, OPTIONS};
use clap::builder::{PossibleValuesParser, ValueParser};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

const HEADING: &str = "Budgets";

/// Limits; each can stand in `walstat.toml` too.
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

/// An option takes what sets its budget.
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
