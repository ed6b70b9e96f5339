//! The command `teamster`: runs AI agent CLIs from a shell, with the same output for every agent.
//!
//! - [`args`]: the command line as typed; [`plan`]: the validated request that it describes.
//! - [`config`]: the configuration file, which defines further agents.
//! - [`printable`]: text that is safe to write to a terminal.
//! - [`run`]: `teamster run`, with its signal handling; [`render`]: the output formats; [`live_area`]: the lines below
//!   the output that are redrawn.
//! - [`chat`]: `teamster chat`, a conversation in the terminal.
//! - [`session`]: `teamster session`, a conversation with a program over standard input and output.
//! - [`doctor`]: `teamster doctor`, which reports the agents that can run; [`ledger_report`] and [`restore_report`]
//!   report the leftovers of crashes.
//! - [`replay`]: `teamster replay`, which prints a recording; [`fake`]: `teamster fake`, which imitates a CLI.
//! - [`runtime`]: the Tokio runtime; [`signals`]: the signals that stop a command; [`log`]: diagnostic logs.
//! - [`welcome`]: the command without arguments; [`vendor`]: how agents are installed and logged in.
//! - [`version`]: `teamster --version --verbose`.
//! - [`exit`]: the exit codes; [`option_names`]: options instead of the library's fields.
//!
//! Invariants: results go to standard output, diagnostics to standard error; no output of an agent can send control
//! sequences to the terminal; when the command ends, for any reason, no process of its run remains.

mod args;
mod chat;
mod config;
mod doctor;
mod exit;
mod fake;
mod input;
mod ledger_report;
mod live_area;
mod log;
mod option_names;
mod path_text;
mod plan;
mod printable;
mod render;
mod replay;
mod restore_report;
mod run;
mod runtime;
mod session;
mod signals;
mod vendor;
mod version;
mod welcome;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use args::Command;
use teamster::Runtime;
use teamster::backend::variables;
use teamster::supervision::startup::{self, StandardStream};

fn main() -> ExitCode {
    startup::prepare_command();
    if StandardStream::Output.was_closed() {
        return ExitCode::from(runtime::report_failure(&io::Error::other(
            "standard output is closed: the result could not be read",
        )));
    }
    if std::env::args_os().len() == 1 {
        return ExitCode::from(welcome::main());
    }
    if version::is_requested(std::env::args_os()) {
        return ExitCode::from(version::main());
    }
    let code = match args::parse(std::env::args_os(), variable) {
        Ok(cli) => match log::start(cli.log.as_deref(), cli.log_file.as_deref()) {
            Err(error) => runtime::report_usage_error(&printable::Printable::message(&error), None),
            Ok(()) => dispatch(cli.command),
        },
        Err(error) => {
            printable::write_clap_error(&error);
            u8::try_from(error.exit_code()).unwrap_or(exit::USAGE)
        }
    };
    ExitCode::from(code)
}

/// Returns the value of an environment variable. If no variable names the agent or a program, the agent is the best one
/// that is installed.
fn variable(name: &str) -> Option<OsString> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
    let names_program = || {
        std::env::var_os(variables::CLI_PATH).is_some_and(|path| !path.is_empty())
            || std::env::args_os().any(|argument| argument.to_string_lossy().starts_with("--cli-path"))
    };
    if name != variables::AGENT || value.is_some() || names_program() {
        return value;
    }
    Some(vendor::default_agent(&Runtime::new()).into())
}

fn dispatch(command: Command) -> u8 {
    match command {
        Command::Run(args) => run::main(*args),
        Command::Chat(args) => chat::main(*args),
        Command::Session(args) => session::main(*args),
        Command::Doctor(args) => doctor::main(&args),
        Command::Replay(args) => replay::main(&args),
        Command::Fake(args) => fake::main(&args),
        Command::Completions { shell } => completions(shell),
    }
}

fn completions(shell: clap_complete::Shell) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::command(|_| None), "teamster", &mut script);
    match io::stdout().write_all(&script) {
        Ok(()) => exit::SUCCESS,
        Err(_) => exit::NO_READER,
    }
}
