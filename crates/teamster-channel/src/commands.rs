//! The commands of a chat.

/// A command that people can send in a chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandSpec {
    /// Its name without the slash.
    pub name: &'static str,
    /// What it does, in at most 100 characters.
    pub description: &'static str,
    /// The name of its argument. `None`: it has none.
    pub argument: Option<&'static str>,
}

/// All commands, for services that register them.
pub const COMMANDS: &[CommandSpec] = &[
    CommandSpec { name: "agent", description: "Show or select the agent of this conversation", argument: Some("name") },
    CommandSpec { name: "model", description: "Show or select the model of this conversation", argument: Some("name") },
    CommandSpec { name: "new", description: "Start anew: the agent forgets this conversation", argument: None },
    CommandSpec { name: "stop", description: "Stop the running turn", argument: None },
    CommandSpec { name: "status", description: "Show what happens in this conversation", argument: None },
    CommandSpec { name: "usage", description: "Show tokens and cost of this conversation", argument: None },
];

/// Returns name and argument if a text is one of the [`COMMANDS`], such as `/agent codex`.
///
/// `/status@name` is the form of services with several bots in a chat. A text with another first word is a message.
pub fn parse_command(text: &str) -> Option<(&'static str, &str)> {
    let line = text.trim().strip_prefix('/')?;
    let (word, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let name = word.split('@').next().unwrap_or(word);
    let command = COMMANDS.iter().find(|command| command.name.eq_ignore_ascii_case(name))?;
    Some((command.name, argument.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_recognized_with_its_argument() {
        assert_eq!(parse_command(" /agent  codex "), Some(("agent", "codex")));
        assert_eq!(parse_command("/STOP"), Some(("stop", "")));
        assert_eq!(parse_command("/status@teamster_bot"), Some(("status", "")));
        assert_eq!(parse_command("/model\nsonnet"), Some(("model", "sonnet")));
    }

    #[test]
    fn another_text_is_a_message() {
        for text in ["", "/", "stop", "/etc/passwd", "see /stop", "/statusbar", "//stop"] {
            assert_eq!(parse_command(text), None, "{text}");
        }
    }
}
