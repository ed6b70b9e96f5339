//! The command `teamster`: runs AI agent CLIs from a shell, with the same output for every agent.
//!
//! - [`args`]: the command line as typed; [`plan`]: the validated request that it describes.
//! - [`settings`]: the values of files, variables and the command line; [`config`]: the configuration files.
//! - [`printable`]: text that is safe to write to a terminal.
//! - [`run`]: `teamster run`, with its signal handling; [`render`]: the output formats; [`live_area`]: the lines below
//!   the output that are redrawn.
//! - [`chat`]: `teamster chat`, a conversation in the terminal.
//! - [`session`]: `teamster session`, a conversation with a program over standard input and output.
//! - [`sessions`]: `teamster sessions`, which lists the agents' stored sessions; how `--resume` finds one of them.
//! - [`doctor`]: `teamster doctor`, which reports the agents that can run; [`ledger_report`] and [`restore_report`]
//!   report the leftovers of crashes.
//! - [`usage`]: the usage journal, and `teamster usage`, which sums it.
//! - [`replay`]: `teamster replay`, which prints a recording; [`fake`]: `teamster fake`, which imitates a CLI.
//! - `serve`: `teamster serve`, the gateway; `client`: its shell clients; `store`: backups of its store.
//! - [`runtime`]: the Tokio runtime; [`signals`]: the signals that stop a command; [`terminal`]: keys
//!   and settings of the terminal; [`log`]: diagnostic logs.
//! - [`welcome`]: the command without arguments; [`vendor`]: how agents are installed and logged in.
//! - [`preflight`]: notices on a request before its agent starts.
//! - [`man`]: `teamster man`, which shows the manual pages.
//! - [`verbose`]: `teamster run --verbose`; [`version`]: `teamster --version --verbose`; [`completion`]: completion of
//!   values in a shell.
//! - [`exit`]: the exit codes; [`option_names`]: options instead of the library's fields.
//!
//! Invariants: results go to standard output, diagnostics to standard error; no output of an agent can send control
//! sequences to the terminal; when the command ends, for any reason, no process of its run remains.

mod args;
mod chat;
#[cfg(feature = "serve")]
mod client;
mod completion;
mod config;
mod doctor;
mod exit;
mod fake;
mod input;
mod ledger_report;
mod live_area;
mod log;
mod man;
mod option_names;
mod path_text;
mod plan;
mod preflight;
mod printable;
mod render;
mod replay;
mod restore_report;
mod run;
mod runtime;
#[cfg(feature = "serve")]
mod serve;
mod session;
mod sessions;
mod settings;
mod signals;
#[cfg(feature = "serve")]
mod store;
mod terminal;
mod trace_export;
mod usage;
mod vendor;
mod verbose;
mod version;
mod welcome;

use std::io::{self, Write as _};
use std::process::ExitCode;

use args::{Command, Invocation};
use config::ConfigError;
use settings::Refusal;
use teamster::supervision::startup::{self, StandardStream};
use trace_export::TraceExport;

fn main() -> ExitCode {
    startup::prepare_command();
    if StandardStream::Output.was_closed() {
        return ExitCode::from(runtime::report_failure(&io::Error::other(
            "standard output is closed: the result could not be read",
        )));
    }
    // It ends the process if the shell requests candidates.
    clap_complete::CompleteEnv::with_factory(args::command).var(completion::VARIABLE).complete();
    let argv: Vec<_> = std::env::args_os().collect();
    if argv.len() == 1 {
        return ExitCode::from(welcome::main());
    }
    if let Some(request) = version::requested(&argv) {
        return ExitCode::from(version::main(request));
    }
    let code = match args::parse(&argv, &mut plan::SystemInputs, vendor::default_agent) {
        Ok(invocation) => execute(invocation),
        Err(Refusal::Usage(error)) => {
            printable::write_clap_error(&error);
            u8::try_from(error.exit_code()).unwrap_or(exit::USAGE)
        }
        Err(Refusal::Config(problems)) => report_config_problems(&problems),
    };
    ExitCode::from(code)
}

fn execute(Invocation { cli, notes, problems }: Invocation) -> u8 {
    let is_verbose = matches!(&cli.command, Command::Run(args) if args.verbose);
    let (lines, activity) = is_verbose.then(verbose::log_lines).unzip();
    let destination = log::Destination { file: cli.log_file.as_deref(), is_json: has_json_log(&cli.command) };
    let report = |error: String| runtime::report_usage_error(&printable::Printable::message(&error), None);
    let export = match TraceExport::start(&cli.command) {
        Ok(export) => export,
        Err(error) => return report(error),
    };
    if let Err(error) = log::start(log_filter(&cli).as_deref(), destination, lines, &export) {
        return report(error);
    }
    notes.iter().for_each(render::write_notice);
    let code = dispatch(cli.command, &problems, activity);
    render::release_logs();
    export.stop();
    code
}

/// Whether log lines are JSON documents.
#[cfg(feature = "serve")]
fn has_json_log(command: &Command) -> bool {
    matches!(command, Command::Serve(args) if args.log_format == serve::LogFormat::Json)
}

/// Whether log lines are JSON documents.
#[cfg(not(feature = "serve"))]
fn has_json_log(_command: &Command) -> bool {
    false
}

/// Returns the filter of the log. A gateway always has a log.
fn log_filter(cli: &args::Cli) -> Option<String> {
    #[cfg(feature = "serve")]
    if matches!(cli.command, Command::Serve(_)) && cli.log.is_none() {
        let variable = std::env::var("RUST_LOG").ok().filter(|filter| !filter.trim().is_empty());
        return Some(variable.unwrap_or_else(|| serve::LOG_FILTER.to_owned()));
    }
    cli.log.clone()
}

fn dispatch(command: Command, problems: &[ConfigError], activity: Option<verbose::Activity>) -> u8 {
    match command {
        Command::Run(args) => run::main(*args, activity),
        Command::Chat(args) => chat::main(*args),
        Command::Session(args) => session::main(*args),
        Command::Sessions(args) => sessions::main(&args),
        Command::Doctor(args) => doctor::main(&args, problems),
        Command::Usage(args) => usage::main(&args),
        #[cfg(feature = "serve")]
        Command::Serve(args) => serve::main(&args, &args::command()),
        #[cfg(feature = "serve")]
        Command::Send(args) => client::send(args),
        #[cfg(feature = "serve")]
        Command::Conversations(args) => client::conversations(args),
        #[cfg(feature = "serve")]
        Command::Tail(args) => client::tail(args),
        #[cfg(feature = "serve")]
        Command::Approve(args) => client::approve(args),
        #[cfg(feature = "serve")]
        Command::Store(args) => store::main(args, &args::command()),
        Command::Config(args) => config::main(args, &args::command()),
        Command::Replay(args) => replay::main(&args),
        Command::Fake(args) => fake::main(&args),
        Command::Man { command } => man::main(command.as_deref(), args::command()),
        Command::Completions { shell } => completions(shell),
    }
}

/// Prints the problems of the configuration. Returns the exit code.
fn report_config_problems(problems: &[ConfigError]) -> u8 {
    for problem in problems {
        render::write_error(&mut anstream::stderr(), &printable::Printable::error(problem), None);
    }
    exit::USAGE
}

fn completions(shell: clap_complete::Shell) -> u8 {
    match completion::script(shell) {
        Ok(script) if io::stdout().write_all(&script).is_ok() => exit::SUCCESS,
        Ok(_) => exit::NO_READER,
        Err(error) => runtime::report_failure(&error),
    }
}
