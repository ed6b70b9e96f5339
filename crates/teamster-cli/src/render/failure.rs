//! Error messages on one line, with a hint on how to proceed.

use std::io::{IsTerminal as _, Write};

use anstyle::{AnsiColor, Style};
use teamster::event::{ErrorCode, Failure, RunResult};

use crate::printable::{Printable, printable};
use crate::vendor;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const INTERRUPTED: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();

/// The indentation of further lines of a message.
const MESSAGE_INDENT: usize = 7;

/// Writes why a run failed.
pub(super) fn write_failure(err: &mut dyn Write, failure: &Failure, result: &RunResult, agent: &str) {
    let (style, label) = match failure.code {
        ErrorCode::Aborted => (INTERRUPTED, "interrupted"),
        _ => (ERROR, "error"),
    };
    let message = match failure.code {
        ErrorCode::CliNotFound if is_usual_program(failure, agent) => {
            printable!("{} is not installed", Printable::exact(agent))
        }
        _ => Printable::message(&failure.message),
    };
    let code = Printable::exact(failure.code.as_str());
    write_lines(err, style, label, &printable!("{} [{}]", message, code), hint(failure, result, agent).as_ref());
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

fn hint(failure: &Failure, result: &RunResult, agent: &str) -> Option<Printable> {
    let id = result.session_id.as_ref();
    let resume = id.map(|id| {
        let (agent, id) = (Printable::shell_word(agent), Printable::shell_word(id.as_str()));
        printable!("--agent {} --resume {}", agent, id)
    });
    let or_resume = |text: &'static str| match &resume {
        Some(resume) => printable!("{}, or resume with {}", text, resume),
        None => text.into(),
    };
    Some(match failure.code {
        ErrorCode::Aborted => printable!("resume with {}", resume?),
        ErrorCode::CliNotFound => match vendor::install(agent).filter(|_| is_usual_program(failure, agent)) {
            Some(install) => printable!("{}; or name the program with --cli-path", install),
            None => "check the program that --cli-path (BACKEND_CLI_PATH) names".into(),
        },
        ErrorCode::SpawnFailed => "check that the program of --cli-path can be executed here".into(),
        ErrorCode::WatchdogTimeout => or_resume("raise --timeout, --tool-timeout or --startup-timeout"),
        ErrorCode::DeadlineExceeded => or_resume("raise --deadline"),
        ErrorCode::MaxTurns => or_resume("raise --max-turns"),
        ErrorCode::Budget if failure.message.contains("limit of") => or_resume("raise --max-budget"),
        ErrorCode::Budget => "check the balance of the account at the vendor".into(),
        ErrorCode::Auth => vendor::login(agent).unwrap_or("log in with the agent's own CLI").into(),
        ErrorCode::SessionNotFound => {
            "sessions belong to a directory: set --cwd to the one in which the session started".into()
        }
        ErrorCode::ContextWindow => "start a new session, or use a shorter prompt".into(),
        ErrorCode::StructuredOutput => "check the schema, or describe in the prompt what it requires".into(),
        ErrorCode::Config if failure.message.starts_with("required") => {
            "check the command of this MCP server: --mcp-config, or the agent's own configuration".into()
        }
        ErrorCode::Config => "check the agent's own configuration".into(),
        ErrorCode::RateLimit if failure.retryable != Some(true) => {
            "the vendor's quota is used up: wait until it resets, or use another model".into()
        }
        _ if failure.retryable == Some(true) => "the failure may be transient: try again later".into(),
        _ => stderr_tail(result)?,
    })
}

/// Whether the program that was not found is the agent's usual one.
fn is_usual_program(failure: &Failure, agent: &str) -> bool {
    vendor::program(agent).is_some_and(|program| failure.message.contains(&format!("\"{program}\"")))
}

/// Returns the last lines of the CLI's stderr, unless it has only the one line that the message already contains.
fn stderr_tail(result: &RunResult) -> Option<Printable> {
    let stderr = result.stderr.as_deref()?;
    let lines: Vec<_> = stderr.lines().map(Printable::message).filter(|line| !line.is_empty()).collect();
    let tail = lines.get(lines.len().saturating_sub(5)..).filter(|_| lines.len() > 1)?;
    Some(printable!("last lines of the CLI's stderr:\n   {}", Printable::join(tail.iter().cloned(), "\n   ")))
}
