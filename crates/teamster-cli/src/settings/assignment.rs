//! A value of a setting, and its origin.

use std::path::PathBuf;

use crate::path_text::home_relative;
use crate::printable::{Printable, printable};

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
    /// The machine: the agent that is used if none is named.
    Machine,
}

impl Origin {
    /// Returns the origin as people write it.
    pub(crate) fn text(&self) -> Printable {
        match self {
            Self::File { file, line, profile: None } => printable!("{}:{}", home_relative(file), *line),
            Self::File { file, line, profile: Some(name) } => {
                printable!("{}:{} (profile {})", home_relative(file), *line, Printable::exact(name))
            }
            Self::Machine => "chosen on this machine".into(),
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
