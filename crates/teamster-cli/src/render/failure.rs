//! What went wrong, in one line, and what to do about it.

use std::io::{IsTerminal as _, Write};

use anstyle::{AnsiColor, Style};
use teamster::event::{ErrorCode, Failure, RunResult};

use super::plain::one_line;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const INTERRUPTED: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();

/// Says why a run failed.
pub(super) fn write_failure(err: &mut dyn Write, failure: &Failure, result: &RunResult) {
    let (style, label) = match failure.code {
        ErrorCode::Aborted => (INTERRUPTED, "interrupted"),
        _ => (ERROR, "error"),
    };
    let message = format!("{} [{}]", failure.message.escaped(), failure.code);
    write_lines(err, style, label, &one_line(&message), hint(failure, result).as_deref());
}

/// Says why nothing was started.
pub(crate) fn write_error(err: &mut dyn Write, message: &str, hint: Option<&str>) {
    write_lines(err, ERROR, "error", &one_line(message), hint);
}

/// Says something to the person at the terminal.
pub(crate) fn write_notice(text: &str) {
    let mut err = anstream::stderr();
    // The terminal has written `^C` at the beginning of the line.
    let start = if std::io::stderr().is_terminal() { "\r" } else { "" };
    let _ = writeln!(err, "{start}{text}").and_then(|()| err.flush());
}

fn write_lines(err: &mut dyn Write, style: Style, label: &str, message: &str, hint: Option<&str>) {
    let _ = writeln!(err, "{style}{label}{style:#}: {message}");
    if let Some(hint) = hint {
        let _ = writeln!(err, " {HINT}hint{HINT:#}: {hint}");
    }
    let _ = err.flush();
}

fn hint(failure: &Failure, result: &RunResult) -> Option<String> {
    let resume = result.session_id.as_ref().map(|id| format!("--resume {}", one_line(id.as_str())));
    let or_resume = |text: &str| match &resume {
        Some(resume) => format!("{text}, or go on with {resume}"),
        None => text.to_owned(),
    };
    Some(match failure.code {
        ErrorCode::Aborted => format!("go on with {}", resume?),
        ErrorCode::CliNotFound => {
            "install the agent's CLI, or name its program with --cli-path (BACKEND_CLI_PATH)".to_owned()
        }
        ErrorCode::SpawnFailed => "see whether the program of --cli-path can be executed here".to_owned(),
        ErrorCode::WatchdogTimeout => or_resume("raise --timeout, --tool-timeout or --startup-timeout"),
        ErrorCode::DeadlineExceeded => or_resume("raise --deadline"),
        ErrorCode::MaxTurns => or_resume("raise --max-turns"),
        ErrorCode::Budget => "raise --max-budget, or see to the account's balance".to_owned(),
        ErrorCode::Auth => "log in with the agent's own CLI, or set its API key in the environment".to_owned(),
        ErrorCode::SessionNotFound => "sessions belong to a directory: give the --cwd in which it began".to_owned(),
        ErrorCode::ContextWindow => "begin a new session, or give a shorter prompt".to_owned(),
        ErrorCode::StructuredOutput => {
            "see whether the schema can be met, or say in the prompt what it needs".to_owned()
        }
        ErrorCode::Config => "see to the agent's own configuration".to_owned(),
        _ if failure.retryable == Some(true) => "this may pass: run it again later".to_owned(),
        _ => last_words(result)?,
    })
}

/// The end of what the CLI wrote to its diagnostics, where it is more than the one line that the message holds.
fn last_words(result: &RunResult) -> Option<String> {
    let stderr = result.stderr.as_deref()?;
    let lines: Vec<_> = stderr.lines().map(one_line).filter(|line| !line.is_empty()).collect();
    let tail = lines.get(lines.len().saturating_sub(5)..).filter(|_| lines.len() > 1)?;
    Some(format!("the last of the CLI's diagnostics:\n   {}", tail.join("\n   ")))
}
