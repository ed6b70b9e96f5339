//! Suggestions for a command or an option that does not exist: what was misspelled, what other programs have under this name, and
//! prompts without quotes.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::printable::{Printable, printable};

/// The most letters that differ between a command and its misspelling. Two letters in the wrong order count once.
const MAX_DISTANCE: usize = 2;

/// What the names of other programs' commands are here.
const COMMANDS: [(&[&str], &str); 13] = [
    (&["ask", "exec", "prompt", "print", "query"], "teamster run 'PROMPT' runs an agent with one prompt"),
    (&["resume", "continue"], "teamster chat --resume opens a list of sessions; teamster run --resume ID 'PROMPT'"),
    (&["login", "logout", "auth", "setup", "install"], "teamster doctor --fix installs agents and logs in"),
    (&["update", "upgrade"], "teamster doctor --fix updates the agents' CLIs; teamster is updated as it was installed"),
    (&["models", "model"], "teamster run --model NAME selects a model; the agent's own CLI lists its models"),
    (&["version"], "teamster --version"),
    (&["list", "ls", "history", "threads"], "teamster sessions lists the stored sessions"),
    (&["agents", "agent", "status"], "teamster doctor lists the agents"),
    (
        &["init", "settings", "configure"],
        "teamster config init writes a configuration file; config show prints the values",
    ),
    (&["set", "get", "unset"], "teamster config set KEY VALUE; teamster config show"),
    (&["mcp"], "teamster run --mcp-config FILE adds MCP servers"),
    (&["cost", "stats", "costs"], "teamster usage sums tokens and cost"),
    (&["new", "start", "interactive", "repl", "tui"], "teamster chat opens a conversation"),
];

/// What the options of other programs are here.
const OPTIONS: [(&[&str], &str); 10] = [
    (&["-p", "--print"], "run is already non-interactive: leave it out"),
    (&["--prompt"], "the prompt is an argument: teamster run 'PROMPT'"),
    (&["-i", "--interactive"], "teamster chat is interactive"),
    (&["-c"], "--continue resumes the newest session"),
    (&["--json"], "--output json prints one document, --output ndjson the events"),
    (&["--output-format", "--format"], "--output FORMAT"),
    (
        &["-y", "--yes", "--yolo", "--full-auto", "--dangerously-skip-permissions", "--auto-approve"],
        "--permission full allows everything, --permission edit edits of files",
    ),
    (&["--allowedTools", "--allowed-tools", "--allow"], "--allow-tool RULE"),
    (&["--disallowedTools", "--disallowed-tools", "--deny"], "--deny-tool RULE"),
    (&["--cd", "--dir", "--directory", "--workdir"], "--cwd DIR"),
];

/// Adds what was probably meant to an error in the command line.
pub(super) fn improved(error: clap::Error, definition: &clap::Command, argv: &[OsString]) -> clap::Error {
    let words: Vec<String> = argv.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    match error.kind() {
        ErrorKind::InvalidSubcommand => with_command(error, definition, &words),
        ErrorKind::UnknownArgument => with_option(error, &words),
        _ => error,
    }
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    }
}

/// Replaces the suggestions of an error by a tip.
fn tip(mut error: clap::Error, text: &Printable) -> clap::Error {
    for kind in [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedCommand] {
        error.remove(kind);
    }
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(text.as_str().to_owned())]));
    error
}

/// Adds the command that was probably meant. Clap finds none for two letters in the wrong order.
fn with_command(mut error: clap::Error, definition: &clap::Command, words: &[String]) -> clap::Error {
    let Some(typed) = text(&error, ContextKind::InvalidSubcommand) else { return error };
    let at = words.iter().position(|word| *word == typed);
    let after = at.and_then(|at| words.get(at + 1..)).unwrap_or_default();
    let is_top = at.is_some_and(|at| words.iter().take(at).all(|word| word.starts_with('-')));
    if is_top && let Some((_, meaning)) = COMMANDS.iter().find(|(names, _)| names.contains(&typed.as_str())) {
        return tip(error, &Printable::from(*meaning));
    }
    if is_top && typed.contains(char::is_whitespace) {
        return tip(error, &printable!("try: teamster run {}", Printable::shell_word(&typed)));
    }
    let known = definition.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name);
    let rated = known.map(|name| (strsim::osa_distance(&typed, name), name.to_owned()));
    let similar = rated.filter(|(distance, _)| *distance <= MAX_DISTANCE).min();
    let is_plain = |word: &String| !word.starts_with('-');
    match similar {
        _ if !is_top => {}
        // `teamster fix the tests`
        None if after.first().is_some_and(is_plain) => {
            let prompt: Vec<&str> = std::iter::once(&typed)
                .chain(after.iter().take_while(|word| is_plain(word)))
                .map(String::as_str)
                .collect();
            return tip(error, &printable!("try: teamster run {}", Printable::shell_word(&prompt.join(" "))));
        }
        Some((_, name)) if error.get(ContextKind::SuggestedSubcommand).is_none() => {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![name]));
        }
        _ => {}
    }
    error
}

/// Adds the option that was probably meant, or quotes the words of a prompt.
fn with_option(error: clap::Error, words: &[String]) -> clap::Error {
    let Some(typed) = text(&error, ContextKind::InvalidArg) else { return error };
    let Some(command) = words.iter().find(|word| ["run", "chat", "session", "send"].contains(&word.as_str())) else {
        return error;
    };
    if !typed.starts_with('-') {
        return match unquoted(words, &typed) {
            Some(prompt) if command != "session" => {
                let (command, prompt) = (Printable::exact(command), Printable::shell_word(&prompt));
                tip(error, &printable!("quote the prompt: teamster {} {}; or write it after --", command, prompt))
            }
            _ => error,
        };
    }
    let name = typed.split('=').next().unwrap_or_default();
    let meaning = OPTIONS.iter().find(|(names, _)| names.contains(&name));
    match meaning {
        Some((_, meaning)) if command != "session" || !meaning.contains("run") => {
            tip(error, &Printable::from(*meaning))
        }
        _ => error,
    }
}

/// Returns the words of a prompt without quotes. `second` is the first word that is one too many.
fn unquoted(words: &[String], second: &str) -> Option<String> {
    let is_plain = |word: &&String| !word.starts_with('-');
    let at = words.iter().enumerate().skip(2).find(|(_, word)| *word == second).map(|(at, _)| at)?;
    let first = words.get(at.checked_sub(1)?).filter(is_plain)?;
    let rest = words.get(at..)?.iter().take_while(is_plain);
    Some(std::iter::once(first).chain(rest).map(String::as_str).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(words: &[&str]) -> String {
        let definition = crate::args::command();
        let argv: Vec<OsString> = std::iter::once(&"teamster").chain(words).map(OsString::from).collect();
        let error = definition.clone().try_get_matches_from(&argv).unwrap_err();
        improved(error, &definition, &argv).to_string()
    }

    #[test]
    fn a_misspelled_command_gets_a_suggestion() {
        assert!(message(&["rnu"]).contains("a similar subcommand exists: 'run'"), "{}", message(&["rnu"]));
        assert!(message(&["doctr"]).contains("'doctor'"), "{}", message(&["doctr"]));
        assert!(!message(&["qqqqqq"]).contains("similar"), "{}", message(&["qqqqqq"]));
        assert!(message(&["config", "shwo"]).contains("'show'"), "{}", message(&["config", "shwo"]));
    }

    #[test]
    fn a_command_of_other_programs_gets_the_one_that_does_the_same_here() {
        for (typed, expected) in [
            ("ask", "tip: teamster run 'PROMPT'"),
            ("resume", "tip: teamster chat --resume"),
            ("login", "tip: teamster doctor --fix"),
            ("update", "tip: teamster doctor --fix updates"),
            ("models", "tip: teamster run --model NAME"),
            ("version", "tip: teamster --version"),
            ("list", "tip: teamster sessions"),
        ] {
            let message = message(&[typed]);
            assert!(message.contains(expected) && !message.contains("similar"), "{message}");
        }
        let definition = crate::args::command();
        for name in COMMANDS.iter().flat_map(|(names, _)| *names) {
            assert!(definition.find_subcommand(name).is_none(), "{name} is a command");
        }
    }

    #[test]
    fn a_prompt_without_quotes_is_quoted_in_the_tip() {
        for (words, expected) in [
            (&["what does this do"][..], "tip: try: teamster run 'what does this do'"),
            (&["fix", "the", "tests"], "tip: try: teamster run 'fix the tests'"),
            (&["run", "fix", "the", "failing", "test"], "tip: quote the prompt: teamster run 'fix the failing test'"),
            (&["run", "--agent", "codex", "fix", "it's", "x"], "tip: quote the prompt: teamster run "),
            (&["chat", "fix", "it"], "tip: quote the prompt: teamster chat 'fix it'"),
        ] {
            let message = message(words);
            assert!(message.contains(expected) && !message.contains("use '--"), "{message}");
        }
    }

    #[test]
    fn an_option_of_other_programs_gets_the_one_that_does_the_same_here() {
        for (option, expected) in [
            ("-p", "tip: run is already non-interactive"),
            ("--json", "tip: --output json"),
            ("--yolo", "tip: --permission full"),
            ("--dir=x", "tip: --cwd DIR"),
        ] {
            let message = message(&["run", option, "hi"]);
            assert!(message.contains(expected) && !message.contains("use '--"), "{message}");
        }
        assert!(message(&["run", "--modle", "x", "hi"]).contains("a similar argument exists"));
    }
}
