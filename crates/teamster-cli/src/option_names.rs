//! The command's options instead of the fields of a request, which the library names in its errors and warnings.

use std::error::Error;

use crate::printable::{Printable, chain};

/// The fields that the library names, each with its option.
const OPTIONS: &[(&str, &str)] = &[
    ("add_dirs", "--add-dir"),
    ("append_system_prompt", "--append-system-prompt"),
    ("attachments", "--attach"),
    ("background_tasks", "--background-tasks"),
    ("cli_args", "--cli-arg"),
    ("cli_path", "--cli-path"),
    ("continue", "--continue"),
    ("conversation=continue", "--continue"),
    ("conversation=fork", "--fork"),
    ("conversation=resume", "--resume"),
    ("cwd", "--cwd"),
    ("effort", "--effort"),
    ("inherit.keep", "--keep-key"),
    ("inherit=withhold-keys", "--withhold-keys"),
    ("max_budget_usd", "--max-budget"),
    ("max_session_budget_usd", "--max-session-budget"),
    ("max_session_tokens", "--max-session-tokens"),
    ("max_tokens", "--max-tokens"),
    ("max_turns", "--max-turns"),
    ("mcp_delivery=merge-restore", "--mcp-delivery merge-restore"),
    ("mcp_servers", "--mcp-config"),
    ("mcp_servers.disabled_tools", "--mcp-config: disabledTools"),
    ("mcp_servers.enabled_tools", "--mcp-config: enabledTools"),
    ("mcp_servers.required", "--mcp-config: required"),
    ("mcp_servers.timeouts", "--mcp-config: timeouts"),
    ("mcp_servers.type=sse", "--mcp-config: type sse"),
    ("model", "--model"),
    ("output=batch", "--batch"),
    ("output=messages", "--whole-messages"),
    ("permissions.allow", "--allow-tool"),
    ("permissions.deny", "--deny-tool"),
    ("permissions.mode=ask", "--permission ask"),
    ("permissions.mode=edit", "--permission edit"),
    ("permissions.mode=full", "--permission full"),
    ("permissions.mode=read-only", "--permission read-only"),
    ("project_trust=untrusted", "--project-trust untrusted"),
    ("prompt_mode=literal", "--prompt-mode literal"),
    ("record", "--record"),
    ("record_overwrite", "--force"),
    ("schema", "--schema"),
    ("system_prompt", "--system-prompt"),
    ("user_mcp_servers=left-out", "--mcp-strict"),
];

/// Returns the option that sets this field, or the field if no option does.
pub(crate) fn option_of(field: &str) -> &str {
    OPTIONS.iter().find(|(name, _)| *name == field).map_or(field, |(_, option)| *option)
}

/// Returns an error with all its causes, with options instead of fields.
pub(crate) fn in_error(error: &dyn Error) -> Printable {
    in_message(&chain(error))
}

/// Returns an error or a warning of the library with options instead of fields.
///
/// A field is in backquotes, or it is a word between `does not support` and a colon.
pub(crate) fn in_message(message: &str) -> Printable {
    const REJECTION: &str = " does not support ";
    let quoted = |text: &str| {
        OPTIONS
            .iter()
            .fold(text.to_owned(), |text, (field, option)| text.replace(&format!("`{field}`"), &format!("`{option}`")))
    };
    let Some((agent, rejected)) = message.split_once(REJECTION) else {
        return Printable::message(&quoted(&with_first_option(message)));
    };
    let (subject, reason) = rejected.split_once(": ").unwrap_or((rejected, ""));
    let subject: Vec<_> = subject.split(' ').map(option_of).collect();
    let colon = if reason.is_empty() { "" } else { ": " };
    let text = format!("{agent}{REJECTION}{}{colon}{}", subject.join(" "), reason);
    Printable::message(&quoted(&text))
}

/// What follows the field at the start of an error about its value.
const AFTER_FIELD: [&str; 5] = ["\"", "is empty", "is not UTF-8", "must be", "must not"];

/// Returns an error about the value of a field with the option of the field: `cwd "/x" is not a directory`.
fn with_first_option(message: &str) -> String {
    match message.split_once(' ') {
        Some((field, rest)) if AFTER_FIELD.iter().any(|start| rest.starts_with(start)) => {
            format!("{} {rest}", option_of(field))
        }
        _ => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_library_names_the_options_of_the_command() {
        for (library, command) in [
            (
                "codex does not support max_budget_usd: it does not report cost; use `max_tokens`",
                "codex does not support --max-budget: it does not report cost; use `--max-tokens`",
            ),
            (
                "gemini does not support mcp_servers with project_trust=untrusted: the CLI starts no server there",
                "gemini does not support --mcp-config with --project-trust untrusted: the CLI starts no server there",
            ),
            (
                "codex does not support max_tokens in exec mode: it reports tokens at the end",
                "codex does not support --max-tokens in exec mode: it reports tokens at the end",
            ),
            (
                "codex does not support a prompt of this length: the limit is 9",
                "codex does not support a prompt of this length: the limit is 9",
            ),
            ("the schema must be a JSON object", "the schema must be a JSON object"),
            ("cwd \"/x\" is not a directory", "--cwd \"/x\" is not a directory"),
            ("add_dirs \"/x\" is not a directory", "--add-dir \"/x\" is not a directory"),
            ("model must not start with '-': \"-x\"", "--model must not start with '-': \"-x\""),
            ("effort is empty: omit it instead", "--effort is empty: omit it instead"),
            ("model x is not known", "model x is not known"),
        ] {
            assert_eq!(in_message(library).to_string(), command);
        }
    }

    #[test]
    fn every_feature_has_an_option_that_the_command_accepts() {
        use clap::CommandFactory as _;
        let mut command = crate::args::Cli::command();
        command.build();
        let commands: Vec<_> = command.get_subcommands().collect();
        for feature in teamster::agent::Feature::ALL {
            let option = option_of(feature.field());
            let name = option.trim_start_matches("--").split([' ', ':']).next().expect("a split has a first part");
            let mut arguments = commands.iter().flat_map(|command| command.get_arguments());
            let exists = arguments.any(|argument| argument.get_long() == Some(name));
            assert!(exists, "{} has no option: {option}", feature.field());
        }
    }
}
