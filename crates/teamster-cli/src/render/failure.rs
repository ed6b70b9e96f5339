//! What went wrong, in one line, and what to do about it.

use std::io::{IsTerminal as _, Write};

use anstyle::{AnsiColor, Style};
use teamster::event::{ErrorCode, Failure, RunResult};

use crate::printable::{Printable, printable};

const ERROR: Style = AnsiColor::Red.on_default().bold();
const INTERRUPTED: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();

/// Says why a run failed.
pub(super) fn write_failure(err: &mut dyn Write, failure: &Failure, result: &RunResult) {
    let (style, label) = match failure.code {
        ErrorCode::Aborted => (INTERRUPTED, "interrupted"),
        _ => (ERROR, "error"),
    };
    let (message, code) = (Printable::message(&failure.message), Printable::exact(failure.code.as_str()));
    write_lines(err, style, label, &printable!("{} [{}]", message, code), hint(failure, result).as_ref());
}

/// Says why nothing was started.
pub(crate) fn write_error(err: &mut dyn Write, message: &Printable, hint: Option<&'static str>) {
    write_lines(err, ERROR, "error", message, hint.map(Printable::from).as_ref());
}

/// Says something to the person at the terminal.
pub(crate) fn write_notice(text: &Printable) {
    let mut err = anstream::stderr();
    // The terminal has written `^C` at the beginning of the line.
    let start = if std::io::stderr().is_terminal() { b"\r".as_slice() } else { b"" };
    let _ = err.write_all(start).and_then(|()| text.write_line(&mut err)).and_then(|()| err.flush());
}

fn write_lines(err: &mut dyn Write, style: Style, label: &'static str, message: &Printable, hint: Option<&Printable>) {
    let _ = printable!("{}: {}", Printable::from(label).styled(style), message).write_line(err);
    if let Some(hint) = hint {
        let _ = printable!(" {}: {}", Printable::from("hint").styled(HINT), hint).write_line(err);
    }
    let _ = err.flush();
}

fn hint(failure: &Failure, result: &RunResult) -> Option<Printable> {
    let id = result.session_id.as_ref();
    let resume = id.map(|id| printable!("--resume {}", Printable::shell_word(id.as_str())));
    let or_resume = |text: &'static str| match &resume {
        Some(resume) => printable!("{}, or go on with {}", text, resume),
        None => text.into(),
    };
    Some(match failure.code {
        ErrorCode::Aborted => printable!("go on with {}", resume?),
        ErrorCode::CliNotFound => {
            "install the agent's CLI, or name its program with --cli-path (BACKEND_CLI_PATH)".into()
        }
        ErrorCode::SpawnFailed => "see whether the program of --cli-path can be executed here".into(),
        ErrorCode::WatchdogTimeout => or_resume("raise --timeout, --tool-timeout or --startup-timeout"),
        ErrorCode::DeadlineExceeded => or_resume("raise --deadline"),
        ErrorCode::MaxTurns => or_resume("raise --max-turns"),
        ErrorCode::Budget => "raise --max-budget, or see to the account's balance".into(),
        ErrorCode::Auth => "log in with the agent's own CLI, or set its API key in the environment".into(),
        ErrorCode::SessionNotFound => "sessions belong to a directory: give the --cwd in which it began".into(),
        ErrorCode::ContextWindow => "begin a new session, or give a shorter prompt".into(),
        ErrorCode::StructuredOutput => "see whether the schema can be met, or say in the prompt what it needs".into(),
        ErrorCode::Config => "see to the agent's own configuration".into(),
        _ if failure.retryable == Some(true) => "this may pass: run it again later".into(),
        _ => last_words(result)?,
    })
}

/// The end of what the CLI wrote to its diagnostics, where it is more than the one line that the message holds.
fn last_words(result: &RunResult) -> Option<Printable> {
    let stderr = result.stderr.as_deref()?;
    let lines: Vec<_> = stderr.lines().map(Printable::message).filter(|line| !line.is_empty()).collect();
    let tail = lines.get(lines.len().saturating_sub(5)..).filter(|_| lines.len() > 1)?;
    Some(printable!("the last of the CLI's diagnostics:\n   {}", Printable::join(tail.iter().cloned(), "\n   ")))
}
