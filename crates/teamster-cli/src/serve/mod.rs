//! `teamster serve`: the gateway.
//!
//! - [`args`]: the options as typed; [`values`]: the values in effect, each with its origin.
//! - [`plan`]: the checked configuration, and the agent that will be used.
//! - [`data_dir`]: the directory with the data, its lock, and the operator's token.
//! - [`start`]: starts the gateway, serves until a signal, and stops it; [`greeting`]: the first lines of its output.

mod args;
pub(crate) mod data_dir;
mod greeting;
mod plan;
mod start;
pub(crate) mod values;

#[cfg(test)]
mod tests;

pub(crate) use args::{LogFormat, ServeArgs};

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use teamster_gateway::config::file::{ServeTable, SlackTable};
use values::ServeValues;

use crate::config::ConfigError;
use crate::config::serve::ServeSection;
use crate::path_text::home_relative;
use crate::plan::{Inputs, SystemInputs};
use crate::printable::{Printable, printable};
use crate::render::{write_error, write_warning};
use crate::runtime::{Threads, run_command};
use crate::{exit, vendor};

/// What a gateway writes to its log if no filter is given.
pub(crate) const LOG_FILTER: &str = "warn,teamster=info,teamster_gateway=info";

/// Runs the command and returns its exit code. `definition` is that of all commands.
pub(crate) fn main(args: &ServeArgs, definition: &clap::Command) -> u8 {
    let values = values::resolve(args, definition, &mut SystemInputs, vendor::default_agent);
    values.notes.iter().chain(&readable_secrets(&values.section)).for_each(write_warning);
    let plan = match plan::plan(&values, &SystemInputs) {
        Ok(plan) => plan,
        Err(problems) => return report(&problems),
    };
    let is_check = args.check;
    run_command(Threads::Workers, async move {
        Ok(if is_check { start::check(plan).await } else { start::serve(plan).await })
    })
}

/// Returns a note for each file with a secret of the gateway that other users can read.
fn readable_secrets(section: &ServeSection) -> Vec<Printable> {
    let ServeTable { hooks, webhooks, discord, slack, telegram, tls, .. } = &section.table;
    let is_inline =
        hooks.iter().any(|hook| hook.secret.is_some()) || webhooks.iter().any(|one| !one.secrets.is_empty());
    let mut files: Vec<&Path> = is_inline.then_some(section.file.as_path()).into_iter().collect();
    files.extend(hooks.iter().filter_map(|hook| hook.secret_file.as_deref()));
    files.extend(webhooks.iter().flat_map(|webhook| &webhook.secret_files).map(PathBuf::as_path));
    files.extend(discord.iter().filter_map(|discord| discord.token_file.as_deref()));
    files.extend(slack.iter().flat_map(SlackTable::secret_files).map(|(_, file)| file.as_path()));
    files.extend(telegram.iter().filter_map(|telegram| telegram.token_file.as_deref()));
    files.extend(tls.iter().map(|tls| tls.key.as_path()));
    let is_readable = |file: &&Path| file.metadata().is_ok_and(|found| found.mode() & 0o004 != 0);
    let note = |file: &Path| printable!("{} has a secret, and other users can read it: chmod o-r", home_relative(file));
    files.into_iter().filter(is_readable).map(note).collect()
}

/// Prints the problems of the configuration. Returns the exit code.
fn report(problems: &[ConfigError]) -> u8 {
    for problem in problems {
        write_error(&mut anstream::stderr(), &Printable::error(problem), None);
    }
    exit::USAGE
}

/// Returns the data directory and the file of the store. Only these values are checked.
///
/// # Errors
/// A file or a value cannot be read.
pub(crate) fn locations(
    args: &ServeArgs,
    definition: &clap::Command,
    inputs: &impl Inputs,
) -> Result<(PathBuf, PathBuf), ConfigError> {
    let values = values::resolve(args, definition, &mut SystemInputs, || teamster::Registry::DEFAULT);
    plan::locations(&values, inputs)
}

/// Returns the values in effect, and what is wrong with them.
pub(crate) fn inspect(
    args: &ServeArgs,
    definition: &clap::Command,
    default_agent: fn() -> &'static str,
) -> (ServeValues, Vec<ConfigError>) {
    let values = values::resolve(args, definition, &mut SystemInputs, default_agent);
    let mut problems = plan::plan(&values, &SystemInputs).err().unwrap_or_default();
    if !values.values.contains_key("directory") {
        // The default depends on where the gateway will be started.
        problems.retain(|problem| !problem.to_string().starts_with("serve.directory: "));
    }
    (values, problems)
}
