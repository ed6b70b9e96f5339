//! The terminal on standard input: [`keys`] reads what is typed, [`settings`] changes and restores its settings.

mod keys;
mod settings;

pub(crate) use keys::{KeyReader, TerminalInput};
pub(crate) use settings::{Terminal, has_job_control};
