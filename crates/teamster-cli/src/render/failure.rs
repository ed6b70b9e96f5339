//! Error messages on one line, with a hint on how to proceed.

use std::io::{IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use teamster::event::{ErrorCode, Failure, RunResult};

use crate::printable::{Printable, printable};
use crate::vendor;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const INTERRUPTED: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();

/// The indentation of further lines of a message.
const MESSAGE_INDENT: usize = 7;

/// For which command the hints of failures are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hints {
    /// A run, whose options they name.
    Run {
        /// The agent's working directory, if it is not that of the command.
        directory: Option<PathBuf>,
    },
    /// A chat. The hint on how to resume after Ctrl-C is not needed.
    Chat,
    /// A client of a gateway, which has other options.
    #[cfg_attr(not(feature = "serve"), expect(dead_code, reason = "only clients of a gateway use it"))]
    Gateway {
        /// The conversation, if the command line does not name it.
        conversation: Option<String>,
    },
}

/// Writes a warning to standard error: the command continues, but differs from what its user may expect.
#[cfg(feature = "serve")]
pub(crate) fn write_warning(text: &Printable) {
    write_notice(&printable!("warning: {}", text));
}

/// Writes why a run failed.
pub(super) fn write_failure(err: &mut dyn Write, failure: &Failure, result: &RunResult, agent: &str, hints: &Hints) {
    let (style, label) = match failure.code {
        ErrorCode::Aborted => (INTERRUPTED, "interrupted"),
        _ => (ERROR, "error"),
    };
    let message = match failure.code {
        ErrorCode::CliNotFound if is_usual_program(failure, agent) => {
            printable!("{} is not installed", Printable::exact(agent))
        }
        _ => message(&failure.message),
    };
    let code = Printable::exact(failure.code.as_str());
    let hint = match hints {
        Hints::Run { directory } => {
            let id = result.session_id.as_ref();
            let resume = id.map(|id| resume_command(agent, id.as_str(), directory.as_deref()));
            hint(failure, result, agent, resume.as_ref())
        }
        Hints::Chat => hint(failure, result, agent, None),
        Hints::Gateway { conversation } => gateway_hint(failure, result, agent, conversation.as_deref()),
    };
    write_lines(err, style, label, &printable!("{} [{}]", message, code), hint.as_ref());
}

/// Returns a message for people. Some vendors' errors are JSON: the text of its member `message` is shown.
fn message(text: &str) -> Printable {
    let document = serde_json::from_str::<serde_json::Value>(text).ok();
    let found = document.as_ref().and_then(|document| {
        document.get("message").or_else(|| document.get("error")?.get("message")).and_then(serde_json::Value::as_str)
    });
    let text = found.unwrap_or(text);
    // Codex 0.169.0: `thread/start: thread/start failed: TEXT (code -32600), data: {...}`.
    let text = text.split_once(" (code -").map_or(text, |(before, _)| before);
    let text = text
        .split_once(": ")
        .and_then(|(call, rest)| rest.strip_prefix(call)?.strip_prefix(" failed: "))
        .unwrap_or(text);
    Printable::message(&without_shadow_home(text))
}

/// Names the files of a shadow home as those of the user's home, which they are copies of.
fn without_shadow_home(text: &str) -> String {
    let each = |word: &str| match word.split_once("/files/home/") {
        Some((place, rest)) if word.starts_with('/') && place.contains("/runs/") => format!("~/{rest}"),
        _ => word.to_owned(),
    };
    text.split_inclusive(char::is_whitespace).map(each).collect()
}

/// Returns the variable that holds the key of the chosen provider, if Codex 0.169.0 does not find it.
fn missing_variable(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("Missing environment variable: `")?;
    rest.split_once('`').map(|(name, _)| name)
}

/// Writes an error with an optional hint.
pub(crate) fn write_error(err: &mut dyn Write, message: &Printable, hint: Option<&Printable>) {
    write_lines(err, ERROR, "error", message, hint);
}

/// Writes a notice to standard error.
pub(crate) fn write_notice(text: &Printable) {
    let mut err = anstream::stderr();
    // The terminal has echoed `^C` at the start of the line.
    let start = if std::io::stderr().is_terminal() { b"\r".as_slice() } else { b"" };
    let _ = err.write_all(start).and_then(|()| text.write_line(&mut err)).and_then(|()| err.flush());
}

fn write_lines(err: &mut dyn Write, style: Style, label: &'static str, message: &Printable, hint: Option<&Printable>) {
    let message = printable!("{}: {}", Printable::from(label).styled(style), message);
    let _ = at_words(&message).write_line(err);
    if let Some(hint) = hint {
        let hint = printable!(" {}: {}", Printable::from("hint").styled(HINT), hint);
        let _ = at_words(&hint).write_line(err);
    }
    let _ = err.flush();
}

/// Wraps a message at the width of the terminal. In a file it stays one line.
fn at_words(message: &Printable) -> Printable {
    match terminal_size::terminal_size_of(std::io::stderr()) {
        Some((width, _)) if width.0 > 0 => message.wrapped(usize::from(width.0), MESSAGE_INDENT),
        _ => message.clone(),
    }
}

/// Whether a message is about a limit of the request, as Teamster and Claude Code 2.1.197 word it, and not about the account.
fn is_own_limit(message: &str) -> bool {
    ["limit of", " its budget of ", "Reached maximum budget"].iter().any(|text| message.contains(text))
}

/// Returns the option that raises the limit of tokens or cost that this message names.
fn budget_option(message: &str) -> &'static str {
    match (message.contains("the session has"), message.contains(" tokens")) {
        (true, true) => "raise --max-session-tokens",
        (true, false) => "raise --max-session-budget",
        (false, true) => "raise --max-tokens",
        (false, false) => "raise --max-budget",
    }
}

/// Returns the command that resumes the session of a run. Sessions belong to a directory.
fn resume_command(agent: &str, id: &str, directory: Option<&Path>) -> Printable {
    let cwd = directory.map(|path| printable!(" --cwd {}", Printable::shell_word(&path.to_string_lossy())));
    let (agent, id) = (Printable::shell_word(agent), Printable::shell_word(id));
    printable!("teamster run --agent {} --resume {}{} 'continue'", agent, id, cwd.unwrap_or_default())
}

/// Returns how to proceed. `resume` is the command that resumes the session.
fn hint(failure: &Failure, result: &RunResult, agent: &str, resume: Option<&Printable>) -> Option<Printable> {
    let or_resume = |text: &'static str| match resume {
        Some(resume) => printable!("{}, or resume: {}", text, resume),
        None => text.into(),
    };
    Some(match failure.code {
        ErrorCode::Aborted => printable!("to resume: {}", resume?),
        ErrorCode::CliNotFound => match vendor::install(agent).filter(|_| is_usual_program(failure, agent)) {
            Some(install) => printable!("{}; or name the program with --cli-path", install),
            None => "check the program that --cli-path (BACKEND_CLI_PATH) names".into(),
        },
        ErrorCode::SpawnFailed => "check that the program of --cli-path can be executed here".into(),
        ErrorCode::WatchdogTimeout => or_resume("raise --timeout, --tool-timeout or --startup-timeout"),
        ErrorCode::DeadlineExceeded => or_resume("raise --deadline"),
        ErrorCode::MaxTurns => or_resume("raise --max-turns"),
        ErrorCode::Budget if is_own_limit(&failure.message) => or_resume(budget_option(&failure.message)),
        ErrorCode::Budget => "check the balance of the account at the vendor".into(),
        ErrorCode::Auth if missing_variable(&failure.message).is_some() => {
            let name = missing_variable(&failure.message)?;
            printable!("set {}, the key of the provider in the agent's configuration", Printable::exact(name))
        }
        ErrorCode::Auth if !vendor::set_keys(agent).is_empty() => refused_key(&vendor::set_keys(agent)),
        ErrorCode::Auth => vendor::login(agent).unwrap_or("log in with the agent's own CLI").into(),
        ErrorCode::SessionNotFound if other_directory(&failure.message).is_some() => {
            let (directory, exists) = other_directory(&failure.message)?;
            where_to_resume(directory, exists)
        }
        ErrorCode::SessionNotFound => {
            "sessions belong to a directory: `teamster sessions --all` lists them with theirs, and --cwd sets it".into()
        }
        ErrorCode::ContextWindow => "start a new session, or use a shorter prompt".into(),
        ErrorCode::HookStopped => "check the hooks in the agent's own configuration".into(),
        ErrorCode::StructuredOutput => "check the schema, or describe in the prompt what it requires".into(),
        ErrorCode::Config if failure.message.starts_with("required") => {
            "check the command of this MCP server: --mcp-config, or the agent's own configuration".into()
        }
        ErrorCode::Config => "check the agent's own configuration".into(),
        ErrorCode::RateLimit if failure.retryable != Some(true) => {
            "the vendor's quota is used up: wait until it resets, or use another model".into()
        }
        _ if failure.retryable == Some(true) => "the failure may be transient: try again later".into(),
        _ => stderr_tail(result, &failure.message)?,
    })
}

/// Returns how to resume a session of another directory.
pub(crate) fn where_to_resume(directory: &str, exists: bool) -> Printable {
    if exists {
        printable!("resume it in its directory: add -C {}", Printable::shell_word(directory))
    } else {
        "that directory no longer exists: make it again, or start a new session".into()
    }
}

/// Returns the directory of a session that cannot be resumed elsewhere, and whether it exists.
fn other_directory(message: &str) -> Option<(&str, bool)> {
    let (_, directory) = message.split_once(" belongs to the directory ")?;
    let directory = directory.strip_suffix("; it can be resumed and forked only there")?;
    Some(match directory.strip_suffix(", which no longer exists") {
        Some(directory) => (directory, false),
        None => (directory, true),
    })
}

/// Returns the hint of a client of a gateway. Its agent runs with the configuration of the gateway, maybe on another machine.
fn gateway_hint(failure: &Failure, result: &RunResult, agent: &str, conversation: Option<&str>) -> Option<Printable> {
    let next = |text: &'static str| match conversation {
        Some(id) => printable!("{}: teamster send --conversation {} TEXT", text, Printable::shell_word(id)),
        None => printable!("{}: teamster send", text),
    };
    Some(match failure.code {
        ErrorCode::Aborted => next("to continue the conversation"),
        ErrorCode::CliNotFound | ErrorCode::SpawnFailed => {
            "on the machine of the gateway: check cli_path in [serve], and teamster doctor".into()
        }
        ErrorCode::DeadlineExceeded => next("raise deadline in [serve] of the gateway, or continue with"),
        ErrorCode::MaxTurns => next("raise max_turns in [serve] of the gateway, or continue with"),
        ErrorCode::Auth => match vendor::login(agent) {
            Some(login) => printable!("on the machine of the gateway, as its user: {}", login),
            None => "log in on the machine of the gateway, as its user".into(),
        },
        ErrorCode::ContextWindow => "start a new conversation: teamster send without --conversation".into(),
        _ if failure.retryable == Some(true) => "the failure may be transient: try again later".into(),
        _ => stderr_tail(result, &failure.message)?,
    })
}

/// Returns the hint for a key that the vendor refused.
fn refused_key(variables: &[String]) -> Printable {
    let names = Printable::join(variables.iter().map(|name| Printable::exact(name)), " or ");
    printable!("the key in {} was refused: set a valid one, or remove the variable and log in", names)
}

/// Whether the program that was not found is the agent's usual one.
fn is_usual_program(failure: &Failure, agent: &str) -> bool {
    vendor::program(agent).is_some_and(|program| failure.message.contains(&format!("\"{program}\"")))
}

/// Parts of lines on standard error that are no reason of a failure, of Gemini CLI 0.61.0 and of Codex 0.169.0.
const NOISE: [&str; 6] = [
    "YOLO mode is enabled",
    "Ripgrep is not available",
    "[STARTUP]",
    "256-color support not detected",
    "WARNING: proceeding, even though",
    "could not find bubblewrap",
];

/// Returns the last lines of the CLI's stderr that have words, unless the message is among them.
fn stderr_tail(result: &RunResult, message: &str) -> Option<Printable> {
    let stderr = anstream::adapter::strip_str(result.stderr.as_deref()?).to_string();
    let mut lines: Vec<Printable> = Vec::new();
    for line in stderr.lines().map(str::trim).filter(|line| line.contains(char::is_alphanumeric)) {
        if !message.is_empty() && line.contains(message) {
            return None;
        }
        let shown = Printable::message(line);
        // Node prints the frames of a stack as `at NAME (FILE)`.
        let is_noise = line.starts_with("at ") || NOISE.iter().any(|noise| line.contains(noise));
        if !is_noise && !message.contains(line) && !lines.contains(&shown) {
            lines.push(shown);
        }
    }
    let tail = lines.get(lines.len().saturating_sub(5)..).filter(|tail| !tail.is_empty())?;
    Some(printable!("last lines of the CLI's stderr:\n   {}", Printable::join(tail.iter().cloned(), "\n   ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_key_of_a_provider_is_named_in_the_hint() {
        let failure = Failure::new(ErrorCode::Auth, "Missing environment variable: `MY_KEY`.");
        let hint = hint(&failure, &RunResult::default(), "codex", None).unwrap();
        assert_eq!(hint.as_str(), "set MY_KEY, the key of the provider in the agent's configuration");
    }

    #[test]
    fn the_hint_for_an_own_limit_names_its_option_and_never_the_account() {
        let result = RunResult::default();
        let resume = resume_command("claude", "67c9", None);
        for (message, option) in [
            ("Reached maximum budget ($0.003)", "raise --max-budget, or resume: "),
            ("the limit of 0.5 US dollars was reached", "raise --max-budget, or resume: "),
            ("the turn has used its budget of 200 tokens", "raise --max-tokens, or resume: "),
            ("the session has used its budget of 200 tokens", "raise --max-session-tokens, or resume: "),
            ("the session has cost its budget of 2 US dollars", "raise --max-session-budget, or resume: "),
        ] {
            let failure = Failure::new(ErrorCode::Budget, message);
            let hint = hint(&failure, &result, "claude", Some(&resume)).unwrap();
            let command = "teamster run --agent claude --resume 67c9 'continue'";
            assert_eq!(hint.as_str(), format!("{option}{command}"), "{message}");
        }
        let failure = Failure::new(ErrorCode::Budget, "Credit balance is too low");
        assert!(hint(&failure, &result, "claude", Some(&resume)).unwrap().as_str().contains("balance of the account"));
        let failure = Failure::new(ErrorCode::MaxTurns, "too many");
        assert_eq!(hint(&failure, &result, "claude", None).unwrap().as_str(), "raise --max-turns");
        let elsewhere = resume_command("claude", "67c9", Some(Path::new("/a b")));
        assert_eq!(elsewhere.as_str(), "teamster run --agent claude --resume 67c9 --cwd '/a b' 'continue'");
    }

    #[cfg(feature = "serve")]
    #[test]
    fn the_hints_of_a_gateway_name_no_option_that_send_lacks() {
        let codes = [
            ErrorCode::Aborted,
            ErrorCode::CliNotFound,
            ErrorCode::SpawnFailed,
            ErrorCode::WatchdogTimeout,
            ErrorCode::DeadlineExceeded,
            ErrorCode::MaxTurns,
            ErrorCode::Budget,
            ErrorCode::Auth,
            ErrorCode::SessionNotFound,
            ErrorCode::ContextWindow,
            ErrorCode::StructuredOutput,
            ErrorCode::Config,
        ];
        for code in codes {
            let mut written = Vec::new();
            let hints = Hints::Gateway { conversation: Some("0198".to_owned()) };
            let failure = Failure::new(code, "it failed");
            write_failure(&mut written, &failure, &RunResult::default(), "claude", &hints);
            let text = String::from_utf8(written).unwrap();
            let options: Vec<_> = text.split_whitespace().filter(|word| word.starts_with("--")).collect();
            assert!(options.iter().all(|option| *option == "--conversation"), "{text}");
        }
    }

    #[test]
    fn a_refused_key_names_its_variable() {
        let hint = refused_key(&["ANTHROPIC_API_KEY".to_owned()]);
        assert_eq!(
            hint.as_str(),
            "the key in ANTHROPIC_API_KEY was refused: set a valid one, or remove the variable and log in"
        );
    }

    #[test]
    fn messages_do_not_point_at_private_copies() {
        let text =
            "Set a method in your /tmp/teamster-0/runs/Rgg/files/home/.gemini/settings.json or set GEMINI_API_KEY";
        assert_eq!(message(text).as_str(), "Set a method in your ~/.gemini/settings.json or set GEMINI_API_KEY");
        assert_eq!(message("see /srv/files/home/a").as_str(), "see /srv/files/home/a");
    }
}
