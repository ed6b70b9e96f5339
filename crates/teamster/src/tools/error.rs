//! Why tools cannot be served.

use std::io;

use crate::tokio_check::TokioError;

/// Why tools cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A tool is invalid.
    #[error("the tool {name:?} cannot be offered: {problem}")]
    Tool {
        /// The tool's name.
        name: String,
        /// The problem, and how to fix it.
        problem: String,
    },
    /// The caller's Tokio runtime cannot serve.
    #[error(transparent)]
    Tokio(#[from] TokioError),
    /// No port is available.
    #[error("cannot listen on the loopback address")]
    Listen(#[source] io::Error),
    /// The system returned no random bytes for the token.
    #[error("cannot make a token")]
    Token(#[source] io::Error),
}
