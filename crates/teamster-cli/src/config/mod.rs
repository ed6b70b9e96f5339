//! The configuration files: the user's own one, and that of a project.
//!
//! - [`user`]: the user's own file.
//! - [`mod@file`]: reads a file into settings, profiles and agents, and its problems.
//! - [`agents`]: the tables `[agents.NAME]`, which define programs that speak ACP.
//! - `serve`: the table `[serve]`, which configures the gateway.
//! - [`project`]: finds the file of a project; [`trust`]: the directories whose files are used.
//! - [`command`]: `teamster config`; [`show`]: `teamster config show`; [`template`]: the file that `teamster config init` writes.
//!
//! Invariant: nothing in a file is ignored; an invalid entry is an error with its line number.

mod agents;
mod command;
mod error;
mod file;
mod project;
#[cfg(all(test, feature = "serve"))]
mod schema;
#[cfg(feature = "serve")]
pub(crate) mod serve;
mod show;
#[cfg(feature = "serve")]
mod show_serve;
mod template;
mod trust;
mod user;

pub(crate) use command::{ConfigArgs, main};
pub(crate) use error::ConfigError;
pub(crate) use file::{ConfigFile, Owner, parse};
pub(crate) use project::{ProjectFile, find as find_project, read as read_project};
pub(crate) use trust::trusted as trusted_projects;
pub(crate) use user::{read_user_file, registry, user_file};
