//! The command `teamster`: AI agent CLIs from a shell, with one output whichever agent works.
//!
//! - [`args`]: the command line as typed; [`job`]: what it asks for, checked.
//! - [`config`]: agents of the user's own.
//! - [`printable`]: text that may be written to a terminal.
//! - [`run`]: carries it out, under signals; [`render`]: shows it.
//! - [`chat`]: a conversation in the terminal.
//! - [`session`]: a conversation for a program, over standard input and output.
//! - [`doctor`]: looks which agents can be run.
//! - [`replay`]: shows a recording; [`fake`]: plays the CLI of one, or tells a story as a CLI.
//! - [`log`]: what happens inside, for who looks for a cause.
//! - [`exit`]: what exit codes mean.
//!
//! Invariants: for programs there is standard output, for people standard error beside it; nothing that an agent says
//! drives the terminal; whatever ends the command, no process of its run is left.

mod args;
mod begin;
mod chat;
mod config;
mod config_files;
mod doctor;
mod exit;
mod fake;
mod job;
mod leftovers;
mod log;
mod printable;
mod render;
mod replay;
mod run;
mod session;
mod signals;

use std::io::{self, Write as _};
use std::process::ExitCode;

use args::Command;
use teamster::startup::{self, StandardStream};

fn main() -> ExitCode {
    startup::prepare_command();
    if StandardStream::Output.was_closed() {
        return ExitCode::from(begin::fail(&io::Error::other(
            "standard output is closed: nobody could read what comes of this",
        )));
    }
    let code = match args::parse(std::env::args_os(), |name| std::env::var_os(name)) {
        Ok(cli) => match log::start(cli.log.as_deref()) {
            Err(error) => begin::refuse(&printable::Printable::message(&error), None),
            Ok(()) => carry_out(cli.command),
        },
        Err(error) => {
            printable::write_clap_error(&error);
            u8::try_from(error.exit_code()).unwrap_or(exit::USAGE)
        }
    };
    ExitCode::from(code)
}

fn carry_out(command: Command) -> u8 {
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
