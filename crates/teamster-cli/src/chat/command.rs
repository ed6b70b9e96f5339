//! Parses a typed line as a prompt for the agent or as a command.

use teamster::request::PermissionMode;

use crate::printable::{Printable, printable};

/// A parsed line. An optional argument that is absent requests the current value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Empty,
    Prompt(String),
    Help,
    /// Resumes the session with this id.
    Resume(Option<String>),
    New,
    /// Sets the model.
    Model(Option<String>),
    /// Starts a conversation with this agent.
    Agent(Option<String>),
    Permission(Option<PermissionMode>),
    /// Takes back the allowed rule with this number.
    Revoke(usize),
    Cost,
    Quit,
    /// The error message for an unknown command or a wrong argument.
    Invalid(Printable),
}

/// The text of `/help`.
pub(super) const HELP: &str = "\
/model NAME       use another model; without a name: print the current one
/permission       print the permission mode and what was allowed in this session
/permission MODE  set the permission mode: read-only, ask, edit or full
/permission revoke N  take back what was allowed
/agent NAME       start a new conversation with another agent
/resume ID        resume another conversation; without an id: print the current id
/new              start a new conversation
/cost             print tokens and cost so far
/quit             quit; Ctrl-D does the same
//TEXT            send /TEXT to the agent, for the agent's own commands

Alt-Enter, or \\ at the end of a line, starts a new line. Ctrl-C stops the agent.
Lines that are typed while the agent works are sent after its turn.";

/// Parses a line.
pub(super) fn parse(line: &str) -> Line {
    let text = line.replace("\\\n", "\n");
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Line::Empty;
    }
    let Some(command) = trimmed.strip_prefix('/') else { return Line::Prompt(text.trim_end().to_owned()) };
    if command.starts_with('/') {
        return Line::Prompt(command.to_owned());
    }
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let rest = Some(rest.trim()).filter(|rest| !rest.is_empty()).map(str::to_owned);
    match (name, rest) {
        ("help" | "?", None) => Line::Help,
        ("resume", id) => Line::Resume(id),
        ("new", None) => Line::New,
        ("model", name) => Line::Model(name),
        ("agent", name) => Line::Agent(name),
        ("permission", None) => Line::Permission(None),
        ("permission", Some(rest)) if rest.starts_with("revoke") => revoke(&rest),
        ("permission", Some(mode)) => match mode.as_str() {
            "read-only" => Line::Permission(Some(PermissionMode::ReadOnly)),
            "ask" => Line::Permission(Some(PermissionMode::Ask)),
            "edit" => Line::Permission(Some(PermissionMode::Edit)),
            "full" => Line::Permission(Some(PermissionMode::Full)),
            _ => Line::Invalid(printable!("unknown permission mode {}: use read-only, ask, edit or full", &mode)),
        },
        ("cost", None) => Line::Cost,
        ("quit" | "exit", None) => Line::Quit,
        ("help" | "?" | "new" | "cost" | "quit" | "exit", Some(_)) => {
            Line::Invalid(printable!("/{} has no arguments", Printable::exact(name)))
        }
        _ => {
            let name = Printable::exact(name);
            Line::Invalid(printable!(
                "unknown command /{}: /help lists the commands; //{} sends it to the agent",
                &name,
                &name
            ))
        }
    }
}

/// Parses `revoke N`.
fn revoke(text: &str) -> Line {
    let number = text.strip_prefix("revoke").and_then(|number| number.trim().parse().ok());
    number.map_or_else(|| Line::Invalid("name the number of a rule: /permission revoke 1".into()), Line::Revoke)
}

/// Returns the name of a mode, as options have it.
pub(super) fn name_of(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::ReadOnly => "read-only",
        PermissionMode::Edit => "edit",
        PermissionMode::Full => "full",
        PermissionMode::Ask => "ask",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_prompt_or_a_command() {
        for (line, expected) in [
            ("", Line::Empty),
            (" \n ", Line::Empty),
            ("hello\\\nyou ", Line::Prompt("hello\nyou".to_owned())),
            ("  indented", Line::Prompt("  indented".to_owned())),
            ("//compact now", Line::Prompt("/compact now".to_owned())),
            ("/help", Line::Help),
            ("/model  a b ", Line::Model(Some("a b".to_owned()))),
            ("/resume", Line::Resume(None)),
            ("/permission", Line::Permission(None)),
            ("/permission revoke 2", Line::Revoke(2)),
            ("/permission edit", Line::Permission(Some(PermissionMode::Edit))),
            ("/quit", Line::Quit),
        ] {
            assert_eq!(parse(line), expected, "{line:?}");
        }
        for wrong in
            ["/hlep", "/permission all", "/permission revoke", "/permission revoke x", "/quit now", "/compact", "/"]
        {
            assert!(matches!(parse(wrong), Line::Invalid(_)), "{wrong}");
        }
        let explained = |name: &&str| HELP.contains(&format!("/{name}"));
        assert!(["model", "permission", "agent", "resume", "new", "cost", "quit"].iter().all(explained));
    }
}
