//! The errors of the gateway.

use teamster_store::StoreError;

/// Why a call of the gateway failed. Nothing has changed, unless the text states otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// The store refuses the operation or cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A rule or a hook rejects the message. The text is for its author.
    #[error("the message was rejected: {reason}")]
    Rejected {
        /// Why.
        reason: String,
    },
    /// A required hook failed. The same message may be accepted later.
    #[error("{reason}")]
    Unavailable {
        /// Why, for the author.
        reason: String,
    },
    /// A value of the request is invalid.
    #[error("{field} {problem}")]
    Invalid {
        /// The name of the field.
        field: &'static str,
        /// What is wrong, and how to correct it.
        problem: String,
    },
    /// The caller may not do this.
    #[error("{reason}")]
    Forbidden {
        /// Why.
        reason: String,
    },
    /// The agent does not exist or cannot run.
    #[error("{0}")]
    Agent(String),
    /// The gateway shuts down.
    #[error("the gateway is shutting down; send the request again after its restart")]
    ShuttingDown,
    /// The system cannot create random numbers, which secrets need.
    #[error("the system cannot create random numbers: {0}")]
    Random(String),
    /// A part of the configuration cannot be used.
    #[error("{0}")]
    Config(String),
    /// The tools of agents cannot be served.
    #[error("cannot serve the tools of agents")]
    Tools(#[from] teamster::tools::ServeError),
    /// A document of the store cannot be read.
    #[error("a stored document is invalid: {0}")]
    Document(#[from] serde_json::Error),
}

impl From<crate::hooks::HookConfigError> for GatewayError {
    fn from(error: crate::hooks::HookConfigError) -> Self {
        Self::Config(error.to_string())
    }
}
