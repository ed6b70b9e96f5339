//! The errors of configuration files.

use std::io;
use std::path::PathBuf;

use crate::settings::nearest;

/// An error in the configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("cannot read {}: {source}", file.to_string_lossy())]
    Unreadable { file: PathBuf, source: io::Error },
    #[error("{}:{line}: {problem}", file.to_string_lossy())]
    Invalid { file: PathBuf, line: usize, problem: String },
    #[error("environment variable {name}: {problem}")]
    Variable { name: String, problem: String },
    #[error("{0}")]
    UnknownProfile(String),
    /// A problem with a value of the gateway, which names the value.
    #[cfg(feature = "serve")]
    #[error("{0}")]
    Serve(String),
}

/// A problem at a byte of the text.
pub(super) struct Invalid {
    pub(super) at: usize,
    pub(super) problem: String,
}

/// Returns whether the error means that there is no such file.
pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Returns the end of a message about an unknown name.
pub(super) fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map(|similar| format!("; did you mean {similar:?}?")).unwrap_or_default()
}
