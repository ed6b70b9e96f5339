//! Why no rule is suggested for a call.

/// Why only one call can be allowed, and not later calls like it. Its text completes "always is not offered: ...".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoRule {
    /// A redirection writes a file.
    #[error("the command writes to a file")]
    WritesFile,
    /// A redirection or a here-document is the input of a command.
    #[error("the command reads its input from a file")]
    ReadsFile,
    /// The shell replaces a part of the command when it runs.
    #[error("the shell replaces a part of it when it runs")]
    Expands,
    /// A command or a path contains a character that is a wildcard in a rule.
    #[error("a rule with its wildcard covers other calls")]
    Wildcard,
    /// The command sets a variable, which may change what its programs do.
    #[error("the command sets a variable")]
    SetsVariable,
    /// This program changes the shell for the commands after it.
    #[error("`{program}` changes how the commands after it run")]
    ChangesShell {
        /// The program, such as `cd`.
        program: String,
    },
    /// This program runs what it reads, so a rule for it would cover every command.
    #[error("`{program}` runs whatever it reads")]
    RunsInput {
        /// The program, such as `sh`.
        program: String,
    },
    /// A command runs in the background.
    #[error("a part of the command runs in the background")]
    Background,
    /// The command has a loop, a condition, a function or a group.
    #[error("it has a loop, a condition, a function or a group")]
    Compound,
    /// The command cannot be read with certainty.
    #[error("the command cannot be read with certainty")]
    Unreadable,
    /// The rule would be longer than a person can judge at a glance.
    #[error("a rule for it would be too long")]
    TooLong,
    /// The command needs more rules than a person can judge at a glance.
    #[error("it runs more than {most} commands")]
    TooMany {
        /// The maximum number of rules.
        most: usize,
    },
    /// No rule describes this field of the call.
    #[error("no rule covers its field `{name}`")]
    Field {
        /// The name of the field.
        name: String,
    },
    /// A deny rule may cover the call, so each call is decided.
    #[error("a deny rule may cover it, so each call is decided")]
    Denied,
    /// Rules cannot describe such calls.
    #[error("no rule covers only calls like this one")]
    Undescribed,
}
