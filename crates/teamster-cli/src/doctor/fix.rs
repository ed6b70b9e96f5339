//! `teamster doctor --fix`: offers the steps that make agents ready, one by one.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use rustix::termios::{QueueSelector, tcflush};
use teamster::{Inspection, Runtime};
use tokio::sync::oneshot;

use super::args::{AgentOrigin, DoctorArgs};
use super::inspection::{inspect, inspect_one, verdict};
use super::login;
use super::npm::{self, NpmError};
use super::step::Step;
use crate::exit;
use crate::option_names;
use crate::printable::{Printable, printable};
use crate::render::write_error;
use crate::runtime::{Threads, report_usage_error, run_command};
use crate::signals::Signals;
use crate::vendor;

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    /// It failed, or the user refused it.
    NotDone,
    /// The user wants no further step.
    Left,
    Interrupted,
}

/// Executes the steps that the user accepts, and prints the state of all agents. Returns the exit code.
pub(super) fn main(runtime: &Runtime, args: &DoctorArgs) -> u8 {
    let can_ask = io::stdin().is_terminal() && io::stdout().is_terminal();
    if !(args.yes || can_ask) {
        let hint = "--yes installs and updates without asking";
        return report_usage_error(&"--fix asks before each step, so it needs a terminal".into(), Some(hint.into()));
    }
    let code = run_command(Threads::Workers, async {
        let mut signals = Signals::catch()?;
        let outcome = fix_all(runtime, args, &mut signals).await;
        Ok(if outcome == Outcome::Interrupted { exit::INTERRUPTED } else { exit::SUCCESS })
    });
    if code != exit::SUCCESS {
        return code;
    }
    println(&Printable::default());
    // An agent that is installed now may be the default one.
    match args.agent_origin {
        AgentOrigin::Machine => inspect(runtime, args, vendor::default_agent()),
        AgentOrigin::Configuration | AgentOrigin::CommandLine => inspect(runtime, args, &args.agent),
    }
}

async fn fix_all(runtime: &Runtime, args: &DoctorArgs, signals: &mut Signals) -> Outcome {
    let is_chosen =
        |name: &&str| args.agent_origin != AgentOrigin::CommandLine || name.eq_ignore_ascii_case(&args.agent);
    // Other agents are defined by the user, who knows how to install them.
    let is_known = |name: &&str| vendor::package(name).is_some();
    let names = runtime.registry().names().filter(is_chosen);
    let (known, others): (Vec<&str>, Vec<&str>) = names.partition(is_known);
    if known.is_empty() {
        for name in others {
            println(&printable!("{}: teamster does not know how to install it", Printable::exact(name)));
        }
    }
    let mut has_steps = false;
    for name in &known {
        let Some(inspection) = inspect_one(runtime, args, name).await else { continue };
        match fix(runtime, args, inspection, &mut has_steps, signals).await {
            outcome @ (Outcome::Interrupted | Outcome::Left) => return outcome,
            Outcome::Done | Outcome::NotDone => {}
        }
    }
    if !known.is_empty() && !has_steps {
        println(&"there is nothing to fix".into());
    }
    Outcome::Done
}

/// Offers the steps of an agent, each once.
async fn fix(
    runtime: &Runtime,
    args: &DoctorArgs,
    mut inspection: Inspection,
    has_steps: &mut bool,
    signals: &mut Signals,
) -> Outcome {
    let name = inspection.agent.clone();
    let is_named_program = args.cli_path.is_some() && name.eq_ignore_ascii_case(&args.agent);
    let mut step = Step::next(&inspection, is_named_program);
    if step.is_some() {
        *has_steps = true;
        println(&verdict(&inspection));
    }
    while let Some(current) = step {
        let mut outcome = offer(&current, args, signals).await;
        if outcome == Outcome::Done {
            let Some(after) = inspect_one(runtime, args, &name).await else { return Outcome::NotDone };
            inspection = after;
            outcome = check(&current, &inspection);
        }
        step = match (outcome, current) {
            (outcome @ (Outcome::Interrupted | Outcome::Left), _) => return outcome,
            // An older version can log in too.
            (_, Step::Npm { .. }) => Step::login(&inspection),
            (_, Step::Login { .. }) => None,
        };
    }
    Outcome::Done
}

/// Offers a step, and executes it if the user accepts it.
async fn offer(step: &Step, args: &DoctorArgs, signals: &mut Signals) -> Outcome {
    match step {
        Step::Login { .. } if args.yes => {
            println(&printable!("  to log in, run {}", step.command()));
            return Outcome::NotDone;
        }
        Step::Npm { .. } if args.yes => {
            let prefix = tokio::select! {
                prefix = npm::prefix() => prefix,
                _ = signals.next() => return Outcome::Interrupted,
            };
            let place = prefix.map(|prefix| printable!(", into {}", Printable::exact(&prefix))).unwrap_or_default();
            println(&printable!("  {}{}", step.command(), place));
        }
        // Before a question whose answer would have no effect.
        Step::Npm { .. } if !vendor::has_npm() => return report(&NpmError::NotInPath),
        Step::Npm { .. } | Step::Login { .. } => {
            match ask(&printable!("  Run {}? [y/N, q to quit] ", step.command()), signals).await {
                Some(Reply::Yes) => {}
                Some(Reply::No) => return Outcome::NotDone,
                Some(Reply::Quit) => return Outcome::Left,
                None => {
                    println(&Printable::default());
                    return Outcome::Interrupted;
                }
            }
        }
    }
    match step {
        Step::Npm { package } => match npm::install(package, signals).await {
            Ok(()) => Outcome::Done,
            Err(error) => report(&error),
        },
        Step::Login { program, arguments, .. } => match login::run(program, arguments, signals).await {
            Ok(Some(_)) => Outcome::Done,
            Ok(None) => Outcome::Interrupted,
            Err(error) => {
                let problem = printable!("cannot start {}: {}", step.command(), Printable::error(&error));
                write_error(&mut anstream::stderr(), &problem, None);
                Outcome::NotDone
            }
        },
    }
}

/// Reports why npm failed.
fn report(error: &NpmError) -> Outcome {
    let mut err = anstream::stderr();
    if let NpmError::Failed { stderr, .. } = error {
        // Write errors are ignored: the exit code reports the failure too.
        _ = Printable::prose(stderr.trim_end()).write_line(&mut err);
    }
    let message = match error {
        // The names of the directories that were searched do not help.
        NpmError::Missing(_) | NpmError::NotInPath | NpmError::Failed { .. } => Printable::message(&error.to_string()),
        _ => option_names::in_error(error),
    };
    write_error(&mut err, &message, error.hint().as_ref());
    if matches!(error, NpmError::Interrupted) { Outcome::Interrupted } else { Outcome::NotDone }
}

/// Checks what a successful step has changed.
fn check(step: &Step, after: &Inspection) -> Outcome {
    let Some(name) = vendor::program(&after.agent) else { return Outcome::Done };
    match (step, &after.program) {
        (Step::Npm { .. }, None) => {
            let problem = printable!("npm succeeded, but {} is not in PATH", name);
            let hint = "add the directory bin of `npm prefix -g` to PATH";
            write_error(&mut anstream::stderr(), &problem, Some(&hint.into()));
            Outcome::NotDone
        }
        (Step::Npm { .. }, Some(program)) if after.version_status == Some(teamster::VersionStatus::Older) => {
            let problem = printable!("npm succeeded, but PATH still finds an older {}: {}", name, program);
            write_error(&mut anstream::stderr(), &problem, Some(&"remove it, or change the order of PATH".into()));
            Outcome::NotDone
        }
        (Step::Login { .. }, _) if after.credentials.is_empty() => {
            println(&"  still no login found".into());
            Outcome::NotDone
        }
        _ => {
            println(&verdict(after));
            Outcome::Done
        }
    }
}

/// The answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reply {
    Yes,
    No,
    Quit,
}

impl Reply {
    fn read(line: &str) -> Self {
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => Self::Yes,
            "q" | "quit" | "exit" => Self::Quit,
            _ => Self::No,
        }
    }
}

/// Asks a question. Returns `None` after a signal. What was typed before the question does not answer it.
async fn ask(question: &Printable, signals: &mut Signals) -> Option<Reply> {
    _ = tcflush(io::stdin(), QueueSelector::IFlush);
    let mut out = anstream::stdout();
    _ = question.write(&mut out).and_then(|()| out.flush());
    let (sender, answer) = oneshot::channel();
    let read = move || {
        let mut line = String::new();
        // The end of input and an error end the questions: no further one would get an answer.
        let reply = match io::stdin().lock().read_line(&mut line) {
            Ok(0) | Err(_) => Reply::Quit,
            Ok(_) => Reply::read(&line),
        };
        _ = sender.send(reply);
    };
    if std::thread::Builder::new().name("answer".to_owned()).spawn(read).is_err() {
        return Some(Reply::No);
    }
    tokio::select! {
        answer = answer => Some(answer.unwrap_or(Reply::No)),
        _ = signals.next() => None,
    }
}

/// Prints a line. An error is ignored: the reader has closed the output.
fn println(line: &Printable) {
    _ = line.write_line(&mut anstream::stdout());
}
