//! Plays a scenario in any dialect: one loop over the host's input and the scenario's steps.
//!
//! Input that arrives during a turn is handled between two steps and during a pause.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Map;

use super::dialect::{CliDialect, HostInput, PermissionRequest, ToolCall, ToolOutcome, TurnEnd};
use super::steps::{CommandRun, ProviderFailure, Step, ToolUse, Turn};

/// The time between two checks whether a file exists.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Plays each turn when its prompt arrives. Returns the exit code.
pub(super) fn run(turns: &[Turn], dialect: &mut dyn CliDialect) -> io::Result<i32> {
    let mut upcoming = turns.iter();
    let mut turn = upcoming.next();
    let mut calls = 0;
    loop {
        match dialect.next_input(None)? {
            HostInput::Prompt(prompt) => {
                let steps = turn.map(|turn| turn.steps.as_slice()).unwrap_or_default();
                dialect.start_turn(&prompt)?;
                match run_steps(steps, &prompt, &mut calls, dialect)? {
                    StepsEnd::Exit(code) => return Ok(code),
                    StepsEnd::Turn(end) => dialect.end_turn(&end)?,
                }
                turn = upcoming.next().or(turn);
            }
            HostInput::Closed => return Ok(dialect.exit_code()),
            HostInput::Interrupt | HostInput::PermissionAnswer(_) | HostInput::Timeout => {}
        }
    }
}

enum StepsEnd {
    Turn(TurnEnd),
    Exit(i32),
}

fn run_steps(steps: &[Step], prompt: &str, calls: &mut u32, dialect: &mut dyn CliDialect) -> io::Result<StepsEnd> {
    for step in steps {
        if interrupted_before(dialect, Instant::now())? {
            return Ok(StepsEnd::Turn(TurnEnd::Interrupted));
        }
        match step {
            Step::Think(text) => dialect.write_thinking(text)?,
            Step::Text(text) => dialect.write_message(&text.replace("{prompt}", prompt))?,
            Step::WaitMs(milliseconds) => {
                let deadline = Instant::now() + Duration::from_millis(*milliseconds);
                if interrupted_before(dialect, deadline)? {
                    return Ok(StepsEnd::Turn(TurnEnd::Interrupted));
                }
            }
            Step::WaitForFile(file) => {
                if interrupted_before_file(dialect, file)? {
                    return Ok(StepsEnd::Turn(TurnEnd::Interrupted));
                }
            }
            Step::Run(_) | Step::Tool(_) => {
                *calls += 1;
                if !use_tool(step, *calls, dialect)? {
                    return Ok(StepsEnd::Turn(TurnEnd::Interrupted));
                }
            }
            Step::Fail(ProviderFailure { status, message }) => {
                return Ok(StepsEnd::Turn(TurnEnd::Failed { status: *status, message: message.clone() }));
            }
            Step::Exit(code) => return Ok(StepsEnd::Exit(*code)),
        }
    }
    Ok(StepsEnd::Turn(TurnEnd::Completed))
}

/// Performs a tool call. Returns `false` if the turn was interrupted meanwhile.
fn use_tool(step: &Step, number: u32, dialect: &mut dyn CliDialect) -> io::Result<bool> {
    let id = format!("call_{number}");
    let (call, output, exit, ask) = match step {
        Step::Run(CommandRun { command, output, exit, ask, .. }) => {
            let input = Map::from_iter([("command".to_owned(), command.as_str().into())]);
            let call = ToolCall { id, name: dialect.shell_tool().to_owned(), input, is_command: true };
            (call, output, *exit, *ask)
        }
        Step::Tool(ToolUse { name, input, output, failed, ask }) => {
            let call = ToolCall { id, name: name.clone(), input: input.clone(), is_command: false };
            (call, output, i32::from(*failed), *ask)
        }
        _ => return Ok(true),
    };
    dialect.start_tool_call(&call)?;
    let allowed = match ask.then(|| dialect.request_permission(&call)).transpose()? {
        None => true,
        Some(PermissionRequest::Unsupported) => false,
        Some(PermissionRequest::Sent) => loop {
            match dialect.next_input(None)? {
                HostInput::PermissionAnswer(allowed) => break allowed,
                HostInput::Interrupt => return Ok(false),
                // No answer can arrive any more.
                HostInput::Closed => break false,
                HostInput::Prompt(_) | HostInput::Timeout => {}
            }
        },
    };
    if let (true, Step::Run(run)) = (allowed, step)
        && !execute(&call, run, dialect)?
    {
        return Ok(false);
    }
    let outcome = if allowed { ToolOutcome::Done { output, exit } } else { ToolOutcome::Denied };
    dialect.finish_tool_call(&call, outcome)?;
    Ok(true)
}

/// Executes a command: reports its output line by line, and waits for its file. Returns `false` if the turn was interrupted
/// meanwhile.
fn execute(call: &ToolCall, run: &CommandRun, dialect: &mut dyn CliDialect) -> io::Result<bool> {
    let CommandRun { output, line_ms, wait_for_file, .. } = run;
    let mut end = 0;
    for line in output.split_inclusive('\n').filter(|_| *line_ms > 0) {
        if interrupted_before(dialect, Instant::now() + Duration::from_millis(*line_ms))? {
            return Ok(false);
        }
        end += line.len();
        dialect.write_command_output(call, output.get(..end).unwrap_or(output), line)?;
    }
    let interrupted = wait_for_file.as_deref().map(|file| interrupted_before_file(dialect, file)).transpose()?;
    Ok(interrupted != Some(true))
}

/// Waits until the file exists. Returns whether the host interrupts the turn.
fn interrupted_before_file(dialect: &mut dyn CliDialect, file: &Path) -> io::Result<bool> {
    while !file.exists() {
        if interrupted_before(dialect, Instant::now() + CHECK_INTERVAL)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Waits for input until the deadline. Returns whether the host interrupts the turn.
fn interrupted_before(dialect: &mut dyn CliDialect, deadline: Instant) -> io::Result<bool> {
    loop {
        match dialect.next_input(Some(deadline))? {
            HostInput::Interrupt => return Ok(true),
            HostInput::Timeout => return Ok(false),
            HostInput::Closed => {
                std::thread::sleep(deadline.saturating_duration_since(Instant::now()));
                return Ok(false);
            }
            HostInput::Prompt(_) | HostInput::PermissionAnswer(_) => {}
        }
    }
}
