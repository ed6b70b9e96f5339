//! Settings: the options of `run`, `chat` and `session`, also by their names in files and in the environment.
//!
//! - [`table`]: the settings, derived from clap's definition, so that the three names of an option cannot differ.
//! - [`value`]: checks a value with clap's definition of its option.
//! - [`environment`]: the values of environment variables.
//! - [`resolve`]: the value in effect of each setting, and its origin.
//! - [`project`]: what a project's file may set.
//! - [`command_line`]: parses a command line, with the values in effect as clap's defaults.
//!
//! The precedence is: built-in < user's file < project's file < profile < environment < command line. A value replaces values
//! of lower precedence, also those of options that exclude its option.

mod command_line;
mod environment;
mod project;
mod resolve;
mod table;
#[cfg(test)]
mod tests;
mod value;

use std::path::PathBuf;

use crate::printable::{Printable, printable};

pub(crate) use command_line::{Invocation, Refusal, conflicts, parse};
pub(crate) use project::permits;
pub(crate) use resolve::{Given, Resolution, resolve};
pub(crate) use table::{Kind, Scope, Setting, settings};
pub(crate) use value::{check, nearest};

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A table of a configuration file.
    File {
        file: PathBuf,
        /// The line, starting at 1.
        line: usize,
        /// The profile; `None` for the table `defaults`.
        profile: Option<String>,
    },
    Variable(String),
}

impl Origin {
    /// Returns the origin as people write it.
    pub(crate) fn text(&self) -> Printable {
        match self {
            Self::File { file, line, profile: None } => printable!("{}:{}", file, *line),
            Self::File { file, line, profile: Some(name) } => {
                printable!("{}:{} (profile {})", file, *line, Printable::exact(name))
            }
            Self::Variable(name) => printable!("environment: {}", Printable::exact(name)),
        }
    }
}

/// The values of a setting, as its option takes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    /// The option's id in clap's definition.
    pub(crate) id: String,
    pub(crate) values: Vec<String>,
    pub(crate) origin: Origin,
}
