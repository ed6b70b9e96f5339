//! The checks that need no machine: whatever can be known to be wrong is said before anything is started.

use super::{BackgroundTasks, Conversation, OutputMode, RunRequest};

/// Why a request was refused. Nothing was started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// There is nothing to say to the model.
    #[error("the prompt is empty: say what the agent is to do")]
    EmptyPrompt,
    /// A NUL byte cannot pass through argv, the environment or a file name.
    #[error("{field} holds a NUL byte")]
    Nul {
        /// The field of the request.
        field: &'static str,
    },
    /// The field is there, but says nothing.
    #[error("{field} is empty: leave it out instead")]
    Empty {
        /// The field of the request.
        field: &'static str,
    },
    /// The value would be read as an option by the CLI.
    #[error("{field} must not begin with '-': {value:?}")]
    LeadingDash {
        /// The field of the request.
        field: &'static str,
        /// What it was.
        value: String,
    },
    /// It goes to the CLI as text, and is none.
    #[error("{field} is not UTF-8: {value:?}")]
    NotUtf8 {
        /// The field of the request.
        field: &'static str,
        /// What it was, as far as it can be shown.
        value: String,
    },
    /// Not the name of an environment variable.
    #[error("{name:?} cannot name an environment variable: a name is not empty and holds neither '=' nor NUL")]
    EnvName {
        /// The name.
        name: String,
    },
    /// Not the name of an inherited variable, nor a pattern of such names.
    #[error("{name:?} cannot name inherited variables: write a name, or one with one '*', such as AWS_*")]
    EnvPattern {
        /// The name.
        name: String,
    },
    /// The directory is not there.
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
        /// What is wrong with it.
        problem: String,
    },
    /// The MCP configuration is wrong.
    #[error("MCP configuration: {message}")]
    McpConfig {
        /// What is wrong, and where.
        message: String,
    },
    /// What is to allow or deny tools is no rule.
    #[error("{rule:?} is no rule for tools: {why}; write TOOL, TOOL(WORDS:*), TOOL(PATTERN) or mcp__SERVER__TOOL")]
    Rule {
        /// What it was.
        rule: String,
        /// Why.
        why: &'static str,
    },
    /// The JSON schema cannot be one.
    #[error("the schema must be a JSON object")]
    Schema,
    /// A budget that is no amount.
    #[error("{0} must be a positive amount")]
    Budget(&'static str),
    /// A limit that would let nothing through.
    #[error("{field} must not be zero: {why}")]
    Zero {
        /// The field of the request.
        field: &'static str,
        /// What it would do.
        why: &'static str,
    },
    /// More than makes sense.
    #[error("{field} must be at most {most}")]
    TooMuch {
        /// The field of the request.
        field: &'static str,
        /// The bound.
        most: String,
    },
    /// Two options that exclude each other.
    #[error("{first} and {second} exclude each other: {why}")]
    Contradiction {
        /// An option.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// Why.
        why: &'static str,
    },
    /// The agent cannot do what the request needs.
    #[error("{agent} cannot honour {option}: {why}")]
    Unsupported {
        /// The agent.
        agent: String,
        /// The option.
        option: &'static str,
        /// Why, and what to do.
        why: String,
    },
}

impl RunRequest {
    /// Checks everything that can be known without a look at the machine.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn validate(&self) -> Result<(), RequestError> {
        if self.prompt.trim().is_empty() {
            return Err(RequestError::EmptyPrompt);
        }
        self.validate_names()?;
        self.validate_environment()?;
        self.limits.validate()?;
        for (name, server) in &self.mcp_servers {
            server.validate(name)?;
        }
        if self.schema.as_ref().is_some_and(|schema| !schema.is_object()) {
            return Err(RequestError::Schema);
        }
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
        if self.background_tasks == BackgroundTasks::On {
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
            Conversation::New | Conversation::Continue => None,
        };
        let words = [("model", self.model.as_deref()), ("effort", self.effort.as_deref()), ("session id", session)];
        for (field, value) in words {
            if let Some(value) = value {
                check_word(field, value)?;
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
                check_word(field, rule)?;
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

/// Checks a value that goes to a CLI as a word: it says something, and cannot be taken for an option.
///
/// # Errors
/// What is wrong with it.
pub fn check_word(field: &'static str, value: &str) -> Result<(), RequestError> {
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
