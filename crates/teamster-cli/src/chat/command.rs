//! Parses a submitted text as a prompt for the agent or as a command.

use teamster::request::PermissionMode;

use crate::printable::{Printable, printable};

/// A parsed text. An optional argument that is absent requests the current value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Empty,
    Prompt(String),
    Help,
    /// Resumes the session with this id, or with this start of an id.
    Resume(Option<String>),
    /// Lists the stored sessions of the directory, or of all directories.
    Sessions {
        all: bool,
    },
    New,
    /// Clears the screen and starts a new conversation.
    Clear,
    /// Compacts the conversation, with optional instructions.
    Compact(Option<String>),
    /// Sets the model.
    Model(Option<String>),
    /// Starts a conversation with this agent.
    Agent(Option<String>),
    Permission(Option<PermissionMode>),
    /// Takes back the allowed rule with this number.
    Revoke(usize),
    Cost,
    Tools,
    Diff,
    Copy,
    /// Writes the conversation to this file.
    Export(String),
    Quit,
    /// The error message for an unknown command or a wrong argument.
    Invalid(Printable),
}

/// The commands of a session of this process, with their arguments and their effects.
pub(super) const COMMANDS: &[Command] = &[
    Command::new("agent", " NAME", "start a new conversation with another agent", "use another agent"),
    Command::new("clear", "", "clear the screen and start a new conversation", "clear, start anew"),
    Command::new("compact", " [TEXT]", "let the agent compact its context; TEXT: what to keep", "compact the context"),
    Command::new("copy", "", "copy the last answer to the clipboard (OSC 52)", "copy the last answer"),
    Command::new("cost", "", "print tokens and cost so far", "tokens and cost"),
    Command::new("diff", "", "print what changed since the last commit", "changes since commit"),
    Command::new("export", " FILE", "write the conversation to a new Markdown file", "write Markdown"),
    Command::new("help", "", "print this help", "this help"),
    Command::new("model", " [NAME]", "use another model; without a name: print the current one", "set or print it"),
    Command::new("new", "", "start a new conversation", "new conversation"),
    Command::new("permission", " [MODE]", "set the mode: read-only, ask, edit or full; or print it", "set or print it"),
    Command::new("permission", " revoke N", "take back what was allowed in this session", "undo a rule"),
    Command::new("quit", "", "quit; Ctrl-D does the same", "quit"),
    Command::new("exit", "", "quit", "quit"),
    Command::new("resume", " [ID]", "resume another session; without an id: print the id", "resume a session"),
    Command::new("sessions", " [all]", "list the sessions of this directory, or of all", "list sessions"),
    Command::new("tools", "", "print the tool calls of the last turn, whole", "last turn's calls"),
    Command::new("/", "TEXT", "send /TEXT to the agent, for the agent's own commands", "send /TEXT as it is"),
];

/// A command for the help and for completion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Command {
    pub(super) name: &'static str,
    arguments: &'static str,
    pub(super) effect: &'static str,
    /// The effect in a few words, for the help.
    brief: &'static str,
}

impl Command {
    pub(super) const fn new(
        name: &'static str,
        arguments: &'static str,
        effect: &'static str,
        brief: &'static str,
    ) -> Self {
        Self { name, arguments, effect, brief }
    }

    /// Whether it takes back rules.
    pub(super) fn is_revoke(&self) -> bool {
        self.arguments.trim_start().starts_with("revoke")
    }
}

/// The modes, as options have them.
pub(super) const MODES: [PermissionMode; 4] =
    [PermissionMode::ReadOnly, PermissionMode::Ask, PermissionMode::Edit, PermissionMode::Full];

/// The keys and their effects.
const KEYS: [(&str, &str); 10] = [
    ("Enter", "send, or queue for later"),
    ("Ctrl-S", "send into the turn"),
    ("Alt-Enter", "new line; also Ctrl-J"),
    ("Tab", "complete /x or @FILE"),
    ("Up, Down", "earlier texts"),
    ("Up, Del", "edit, drop a queued text"),
    ("Ctrl-R", "search earlier texts"),
    ("Ctrl-G", "open $EDITOR"),
    ("Ctrl-Z", "suspend"),
    ("Ctrl-D", "quit, in an empty line"),
];

/// The keys of a terminal that sends whole lines.
const LINE_KEYS: &str = "\\ at the end of a line starts a new line. Ctrl-C stops the agent. Lines that are typed while \
                         the agent works are sent after its turn.";

/// The columns of a name with its arguments, and of a key.
const NAME_COLUMNS: usize = 18;
const KEY_COLUMNS: usize = 11;

/// The width from which the help has two columns, and that of the first one.
const TWO_COLUMNS: usize = 79;
const FIRST_COLUMN: usize = 40;

/// What the keys that stop a turn do in a session of this process.
pub(super) const STOP_KEYS: &str = "stop the agent; Ctrl-C again: kill it";

/// Returns the text of `/help`. `stop_keys` is what Esc and Ctrl-C do.
pub(super) fn help(commands: &[Command], stop_keys: &str, is_live: bool, width: usize) -> Printable {
    let commands = commands.iter().filter(|command| command.name != "exit");
    let commands: Vec<String> = commands
        .map(|command| format!("{:NAME_COLUMNS$} {}", format!("/{}{}", command.name, command.arguments), command.brief))
        .collect();
    let mut lines = in_columns(&commands, NAME_COLUMNS, width);
    lines.push(String::new());
    if is_live {
        let keys: Vec<String> = KEYS.iter().map(|(key, effect)| format!("{key:KEY_COLUMNS$} {effect}")).collect();
        lines.extend(in_columns(&keys, KEY_COLUMNS, width));
        let stop = format!("{:KEY_COLUMNS$} {stop_keys}", "Esc, Ctrl-C");
        lines.extend(folded_at_words(&stop, KEY_COLUMNS, width));
    } else {
        lines.extend(folded_at_words(LINE_KEYS, 0, width));
    }
    Printable::prose(&lines.join("\n"))
}

/// Returns entries in two columns if they fit, else in one. Further lines of an entry are indented.
fn in_columns(entries: &[String], indent: usize, width: usize) -> Vec<String> {
    if width < TWO_COLUMNS {
        return entries.iter().flat_map(|entry| folded_at_words(entry, indent, width)).collect();
    }
    let (left, right) = entries.split_at(entries.len().div_ceil(2));
    let right = right.iter().map(String::as_str).chain(std::iter::repeat(""));
    left.iter().zip(right).map(|(left, right)| format!("{left:FIRST_COLUMN$}{right}").trim_end().to_owned()).collect()
}

fn folded_at_words(text: &str, indent: usize, width: usize) -> Vec<String> {
    let folded = Printable::prose(text).wrapped(width.max(indent + 20), (indent + 1).min(width / 2));
    folded.as_str().lines().map(str::to_owned).collect()
}

/// Parses a text.
pub(super) fn parse(text: &str) -> Line {
    let text = text.replace("\\\n", "\n");
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
        ("sessions", None) => Line::Sessions { all: false },
        ("sessions", Some(all)) if all == "all" => Line::Sessions { all: true },
        ("new", None) => Line::New,
        ("clear", None) => Line::Clear,
        ("compact", text) => Line::Compact(text),
        ("model", name) => Line::Model(name),
        ("agent", name) => Line::Agent(name),
        ("permission", None) => Line::Permission(None),
        ("permission", Some(rest)) if rest.starts_with("revoke") => revoke(&rest),
        ("permission", Some(mode)) => match MODES.into_iter().find(|known| name_of(*known) == mode) {
            Some(mode) => Line::Permission(Some(mode)),
            None => Line::Invalid(printable!("unknown permission mode {}: use read-only, ask, edit or full", &mode)),
        },
        ("cost", None) => Line::Cost,
        ("tools", None) => Line::Tools,
        ("diff", None) => Line::Diff,
        ("copy", None) => Line::Copy,
        ("export", Some(file)) => Line::Export(file),
        ("export", None) => Line::Invalid("name the file: /export FILE".into()),
        ("quit" | "exit", None) => Line::Quit,
        (name, _) => invalid(name, trimmed),
    }
}

fn invalid(name: &str, text: &str) -> Line {
    let shown = Printable::exact(name);
    if COMMANDS.iter().any(|command| command.name == name) || name == "?" {
        return Line::Invalid(printable!("/{} has no arguments", shown));
    }
    // A path is more likely meant for the agent.
    if name.contains('/') {
        return Line::Invalid(printable!(
            "unknown command /{}: begin with a space or // if the agent should get {}",
            &shown,
            Printable::exact(text).cut(40)
        ));
    }
    Line::Invalid(printable!(
        "unknown command /{}: /help lists the commands; //{} sends it to the agent",
        &shown,
        &shown
    ))
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

/// Returns what a mode allows, for the menu.
pub(super) fn effect_of(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::ReadOnly => "read, and change nothing",
        PermissionMode::Edit => "edit files of the project without asking",
        PermissionMode::Full => "do everything without asking",
        PermissionMode::Ask => "ask before each change and command",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_a_prompt_or_a_command() {
        for (line, expected) in [
            ("", Line::Empty),
            (" \n ", Line::Empty),
            ("hello\\\nyou ", Line::Prompt("hello\nyou".to_owned())),
            ("  indented", Line::Prompt("  indented".to_owned())),
            ("//compact now", Line::Prompt("/compact now".to_owned())),
            ("/help", Line::Help),
            ("/model  a b ", Line::Model(Some("a b".to_owned()))),
            ("/resume", Line::Resume(None)),
            ("/compact keep\nthis", Line::Compact(Some("keep\nthis".to_owned()))),
            ("/sessions", Line::Sessions { all: false }),
            ("/sessions all", Line::Sessions { all: true }),
            ("/export a b.md", Line::Export("a b.md".to_owned())),
            ("/permission", Line::Permission(None)),
            ("/permission revoke 2", Line::Revoke(2)),
            ("/permission edit", Line::Permission(Some(PermissionMode::Edit))),
            ("/quit", Line::Quit),
        ] {
            assert_eq!(parse(line), expected, "{line:?}");
        }
        for wrong in [
            "/hlep",
            "/permission all",
            "/permission revoke",
            "/permission revoke x",
            "/quit now",
            "/export",
            "/sessions x",
            "/",
            "/etc/passwd is wrong",
        ] {
            assert!(matches!(parse(wrong), Line::Invalid(_)), "{wrong}");
        }
    }

    #[test]
    fn each_command_of_the_help_is_accepted_or_names_its_argument() {
        for command in COMMANDS.iter().filter(|command| command.name != "/") {
            let parsed = parse(&format!("/{}", command.name));
            let is_unknown =
                matches!(&parsed, Line::Invalid(message) if message.as_str().starts_with("unknown command"));
            assert!(!is_unknown, "{}: {parsed:?}", command.name);
        }
        let wide = help(COMMANDS, STOP_KEYS, true, 80);
        assert!(wide.as_str().lines().count() <= 17, "the input box is below it: {wide}");
        assert!(wide.as_str().lines().all(|line| line.chars().count() < 80), "{wide}");
        let narrow = help(COMMANDS, STOP_KEYS, true, 40);
        assert!(narrow.as_str().lines().all(|line| line.chars().count() <= 40), "{narrow}");
        insta::assert_snapshot!(format!("{wide}\n\n{narrow}"));
    }
}
