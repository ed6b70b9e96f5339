//! Settings: the options of `run`, `chat` and `session`, also by their names in files and in the environment.
//!
//! - [`table`]: the settings, derived from clap's definition, so that the three names of an option cannot differ.
//! - [`value`]: checks a value with clap's definition of its option.
//! - [`environment`]: the values of environment variables.
//! - [`mod@resolve`]: the value in effect of each setting, and its origin.
//! - [`project_rule`], [`project`]: what a project's file may set.
//! - [`command_line`]: parses a command line, with the values in effect as clap's defaults.
//!
//! The precedence is: built-in < user's file < project's file < profile < environment < command line. A value replaces values
//! of lower precedence, also those of options that exclude its option.

mod assignment;
mod command_line;
mod environment;
mod project;
mod project_rule;
mod resolve;
mod table;
#[cfg(test)]
mod tests;
mod value;

pub(crate) use assignment::{Assignment, Origin};
pub(crate) use command_line::{Matches, Refusal, conflicts, matches};
pub(crate) use project::permits;
pub(crate) use resolve::{Given, Resolution, resolve};
pub(crate) use table::{AGENT_COMMANDS, Kind, NEGATION, Scope, Setting, settings};
pub(crate) use value::{check, nearest};
