//! The configuration files: the user's own one, and that of a project.
//!
//! - [`user`]: the user's own file.
//! - [`mod@file`]: reads a file into settings, profiles and agents, and its problems.
//! - [`agents`]: the tables `[agents.NAME]`, which define programs that speak ACP.
//! - `serve`: the table `[serve]`, which configures the gateway.
//! - [`project`]: finds the file of a project; [`trust`]: the directories whose files are used.
//! - [`projects`]: the rules that were saved in chats, by directory.
//! - [`set`], [`set_command`]: `teamster config set` and `unset`; [`toml_text`]: changes one value in a text; [`write`]: writes the file.
//! - [`syntax`]: describes errors in the syntax.
//! - [`command`]: `teamster config`; [`show`]: `teamster config show`; [`template`]: the file that `teamster config init` writes.
//!
//! Invariant: nothing in a file is ignored; an invalid entry is an error with its line number.

mod agents;
mod command;
mod error;
mod file;
mod project;
mod projects;
#[cfg(all(test, feature = "serve"))]
mod schema;
#[cfg(feature = "serve")]
pub(crate) mod serve;
mod set;
mod set_command;
mod show;
#[cfg(feature = "serve")]
mod show_serve;
mod syntax;
mod template;
mod toml_text;
mod trust;
mod user;
mod write;

pub(crate) use command::{ConfigArgs, main};
pub(crate) use error::ConfigError;
pub(crate) use file::{ConfigFile, Owner, parse};
pub(crate) use project::{ProjectFile, find as find_project, read as read_project};
pub(crate) use projects::{remove as remove_rule, save as save_rules};
pub(crate) use trust::trusted as trusted_projects;
pub(crate) use user::{read_user_file, registry, user_file};
