//! Validation of requests, before anything is started. It does not depend on the machine.

use super::schema::{self, SchemaError};
use super::{Conversation, OutputMode, RunRequest};

/// Why a request was rejected. Nothing was started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The prompt contains no text.
    #[error("the prompt is empty: describe what the agent should do")]
    EmptyPrompt,
    /// A NUL byte cannot pass through argv, the environment or a file name.
    #[error("{field} contains a NUL byte")]
    Nul {
        /// The field of the request.
        field: &'static str,
    },
    /// The field is set but empty.
    #[error("{field} is empty: omit it instead")]
    Empty {
        /// The field of the request.
        field: &'static str,
    },
    /// The CLI would parse the value as an option.
    #[error("{field} must not start with '-': {value:?}")]
    LeadingDash {
        /// The field of the request.
        field: &'static str,
        /// The value.
        value: String,
    },
    /// The value must be text, and is not valid UTF-8.
    #[error("{field} is not UTF-8: {value:?}")]
    NotUtf8 {
        /// The field of the request.
        field: &'static str,
        /// The value, with invalid bytes replaced.
        value: String,
    },
    /// The name is not valid for an environment variable.
    #[error("{name:?} is not a valid name of an environment variable: it must not be empty or contain '=' or NUL")]
    EnvName {
        /// The name.
        name: String,
    },
    /// The text is neither a variable's name nor a pattern.
    #[error(
        "{name:?} is not a valid name or pattern of variables: use a name, or a pattern with one '*' such as AWS_*"
    )]
    EnvPattern {
        /// The name.
        name: String,
    },
    /// The path is not a directory.
    #[error("{field} {path:?} is not a directory")]
    NotADirectory {
        /// The field of the request.
        field: &'static str,
        /// The path.
        path: String,
    },
    /// An attachment cannot be sent.
    #[error("cannot attach {name}: {problem}")]
    Attachment {
        /// The file.
        name: String,
        /// The problem.
        problem: String,
    },
    /// The MCP configuration is invalid.
    #[error("MCP configuration: {message}")]
    McpConfig {
        /// The problem and its location.
        message: String,
    },
    /// The text is not a valid tool rule.
    #[error("{rule:?} is not a valid tool rule: {why}; use TOOL, TOOL(WORDS:*), TOOL(PATTERN) or mcp__SERVER__TOOL")]
    Rule {
        /// The value.
        rule: String,
        /// Why.
        why: &'static str,
    },
    /// The JSON schema is invalid.
    #[error("the schema must be a JSON object")]
    Schema,
    /// A keyword of the JSON schema has an invalid value.
    #[error("the schema is not a JSON Schema: at {at}: {why}")]
    InvalidSchema {
        /// The keyword, as a JSON pointer.
        at: String,
        /// Why.
        why: String,
    },
    /// The agent has no such level of reasoning effort.
    #[error("{agent} has no effort {level:?}: use {levels}")]
    Effort {
        /// The agent.
        agent: String,
        /// The value.
        level: String,
        /// The agent's levels.
        levels: String,
    },
    /// A budget is not a positive number.
    #[error("{0} must be a positive amount")]
    Budget(&'static str),
    /// A limit of zero would permit nothing.
    #[error("{field} must not be zero: {why}")]
    Zero {
        /// The field of the request.
        field: &'static str,
        /// The effect of zero.
        why: &'static str,
    },
    /// A value is above its maximum.
    #[error("{field} must be at most {most}")]
    TooMuch {
        /// The field of the request.
        field: &'static str,
        /// The maximum.
        most: String,
    },
    /// Two options cannot be combined.
    #[error("{first} and {second} cannot be combined: {why}")]
    Contradiction {
        /// An option.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// Why.
        why: &'static str,
    },
    /// The agent does not support an option.
    #[error("{agent} does not support {option}: {why}")]
    Unsupported {
        /// The agent.
        agent: String,
        /// The option.
        option: &'static str,
        /// The reason and, if known, an alternative.
        why: String,
    },
}

impl From<SchemaError> for RequestError {
    fn from(error: SchemaError) -> Self {
        match error {
            SchemaError::NotAnObject => Self::Schema,
            SchemaError::Keyword { at, why } => Self::InvalidSchema { at, why },
        }
    }
}

impl RunRequest {
    /// Validates everything that does not depend on the machine.
    ///
    /// # Errors
    /// The first problem.
    pub fn validate(&self) -> Result<(), RequestError> {
        if self.prompt.trim().is_empty() {
            return Err(RequestError::EmptyPrompt);
        }
        no_nul("the prompt", &self.prompt)?;
        self.validate_names()?;
        self.validate_environment()?;
        self.limits.validate()?;
        for (name, server) in &self.mcp_servers {
            server.validate(name)?;
        }
        self.schema.as_ref().map_or(Ok(()), schema::validate)?;
        let budgets =
            [("max_budget_usd", self.max_budget_usd), ("max_session_budget_usd", self.max_session_budget_usd)];
        for (name, budget) in budgets {
            if budget.is_some_and(|budget| !(budget.is_finite() && budget > 0.0)) {
                return Err(RequestError::Budget(name));
            }
        }
        if self.output == OutputMode::Batch && !self.attachments.is_empty() {
            return Err(RequestError::Contradiction {
                first: "batch output",
                second: "attachments",
                why: "they go to the agent as a stream",
            });
        }
        if self.background_tasks {
            return Err(RequestError::Contradiction {
                first: "background tasks",
                second: "a run",
                why: "it ends with its answer; open a session",
            });
        }
        self.retries.validate(self)
    }

    fn validate_names(&self) -> Result<(), RequestError> {
        let session = match &self.conversation {
            Conversation::Resume(id) | Conversation::Fork(id) => Some(id.as_str()),
            Conversation::New | Conversation::Continue | Conversation::ForkNewest => None,
        };
        let words = [("model", self.model.as_deref()), ("effort", self.effort.as_deref()), ("session id", session)];
        for (field, value) in words {
            if let Some(value) = value {
                validate_argument(field, value)?;
            }
        }
        for (field, value) in
            [("system_prompt", &self.system_prompt), ("append_system_prompt", &self.append_system_prompt)]
        {
            if let Some(value) = value {
                text(field, value)?;
            }
        }
        for (field, rules) in [("allowed tools", &self.permissions.allow), ("denied tools", &self.permissions.deny)] {
            for rule in rules {
                validate_argument(field, rule)?;
            }
        }
        for argument in &self.cli_args {
            no_nul("cli_args", argument)?;
        }
        for dir in &self.add_dirs {
            let Some(path) = dir.to_str() else {
                return Err(RequestError::NotUtf8 { field: "add_dirs", value: dir.display().to_string() });
            };
            text("add_dirs", path)?;
        }
        for (field, path) in [("cwd", &self.cwd), ("cli_path", &self.cli_path)] {
            if let Some(path) = path {
                text(field, &path.to_string_lossy())?;
            }
        }
        Ok(())
    }

    fn validate_environment(&self) -> Result<(), RequestError> {
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(RequestError::EnvName { name: name.clone() });
            }
            no_nul("a value in env", value)?;
        }
        self.inherit.validate()
    }
}

/// Validates a value that is passed to a CLI as an argument: it must not be empty and must not look like an option.
///
/// # Errors
/// The problem.
pub fn validate_argument(field: &'static str, value: &str) -> Result<(), RequestError> {
    text(field, value)?;
    if value.starts_with('-') {
        return Err(RequestError::LeadingDash { field, value: value.to_owned() });
    }
    Ok(())
}

fn text(field: &'static str, value: &str) -> Result<(), RequestError> {
    if value.trim().is_empty() {
        return Err(RequestError::Empty { field });
    }
    no_nul(field, value)
}

pub(super) fn no_nul(field: &'static str, value: &str) -> Result<(), RequestError> {
    if value.contains('\0') { Err(RequestError::Nul { field }) } else { Ok(()) }
}
