//! A line as it was typed: words for the agent, or a command to us.

use teamster::request::PermissionMode;

use crate::printable::{Printable, printable};

/// What a line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Nothing,
    Say(String),
    Help,
    /// Goes on with a session; without an id, tells this one's.
    Resume(Option<String>),
    New,
    /// Another model; without a name, tells this one.
    Model(Option<String>),
    Agent(Option<String>),
    Permission(Option<PermissionMode>),
    Cost,
    Quit,
    /// A command that is none, or lacks what it needs.
    Wrong(Printable),
}

/// What `/help` says.
pub(super) const HELP: &str = "\
/model NAME       another model answers; without a name: which one does
/permission MODE  read-only, ask, edit or full
/agent NAME       a new conversation with another agent
/resume ID        go on with another conversation; without an id: what this one's is
/new              a new conversation
/cost             tokens and cost so far
/quit             the end; so does Ctrl-D
//WORDS           says /WORDS to the agent, which may have commands of its own

Alt-Enter, or \\ at the end of a line, begins another line. Ctrl-C stops the agent.
What is typed while the agent works is said when it has finished.";

/// Reads a line.
pub(super) fn read(line: &str) -> Line {
    let text = line.replace("\\\n", "\n");
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Line::Nothing;
    }
    let Some(command) = trimmed.strip_prefix('/') else { return Line::Say(text.trim_end().to_owned()) };
    if command.starts_with('/') {
        return Line::Say(command.to_owned());
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
        ("permission", Some(mode)) => match mode.as_str() {
            "read-only" => Line::Permission(Some(PermissionMode::ReadOnly)),
            "ask" => Line::Permission(Some(PermissionMode::Ask)),
            "edit" => Line::Permission(Some(PermissionMode::Edit)),
            "full" => Line::Permission(Some(PermissionMode::Full)),
            _ => Line::Wrong(printable!("{} is no permission mode: read-only, ask, edit or full", &mode)),
        },
        ("cost", None) => Line::Cost,
        ("quit" | "exit", None) => Line::Quit,
        ("help" | "?" | "new" | "cost" | "quit" | "exit", Some(_)) => {
            Line::Wrong(printable!("/{} stands alone", Printable::exact(name)))
        }
        _ => {
            let name = Printable::exact(name);
            Line::Wrong(printable!("/{} is no command: /help lists them; //{} says it to the agent", &name, &name))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_words_or_a_command() {
        for (line, expected) in [
            ("", Line::Nothing),
            (" \n ", Line::Nothing),
            ("hello\\\nyou ", Line::Say("hello\nyou".to_owned())),
            ("  indented", Line::Say("  indented".to_owned())),
            ("//compact now", Line::Say("/compact now".to_owned())),
            ("/help", Line::Help),
            ("/model  a b ", Line::Model(Some("a b".to_owned()))),
            ("/resume", Line::Resume(None)),
            ("/permission edit", Line::Permission(Some(PermissionMode::Edit))),
            ("/quit", Line::Quit),
        ] {
            assert_eq!(read(line), expected, "{line:?}");
        }
        for wrong in ["/hlep", "/permission all", "/quit now", "/compact", "/"] {
            assert!(matches!(read(wrong), Line::Wrong(_)), "{wrong}");
        }
        let explained = |name: &&str| HELP.contains(&format!("/{name}"));
        assert!(["model", "permission", "agent", "resume", "new", "cost", "quit"].iter().all(explained));
    }
}
