//! `teamster fake`: plays the CLI of an agent, from a recording or a script.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueHint;
use teamster::recording::{Entry, Happening};
use teamster_testkit::fake::{EXIT_BROKEN, Pace, Script, play, read_script};

use crate::args::values;
use crate::exit;
use crate::render::write_error;
use crate::replay;

/// Play an agent's CLI without a model, from a recording
///
/// Says what the CLI said, each line when as many lines have come on standard input as had come then, and ends as it ended. To
/// test a program that drives agents, give it this as the agent's CLI (--cli-path):
///
///   #!/bin/sh
///   exec teamster fake --agent claude --script hello.recording -- "$@"
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct FakeArgs {
    /// Whose CLI is played: the recording must be of this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// A recording (teamster run --record FILE), or the testkit's steps as JSON
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    script: PathBuf,

    /// Which of the recording's processes is played [default: 1]
    #[arg(long, value_name = "NUMBER")]
    process: Option<usize>,

    /// How many times as fast as it was; 0, without pauses [default: 0]
    #[arg(long, value_name = "TIMES", value_parser = values::speed)]
    speed: Option<f64>,

    /// What the CLI was started with, which changes nothing
    #[arg(last = true, value_name = "ARGUMENTS")]
    _arguments: Vec<OsString>,
}

/// Carries out the command and tells its exit code.
pub(crate) fn main(args: &FakeArgs) -> u8 {
    let script = match script(args) {
        Ok(script) => script,
        Err(message) => {
            write_error(&mut anstream::stderr(), &message, None);
            return exit::USAGE;
        }
    };
    match play(&script) {
        Ok(()) => exit::SUCCESS,
        Err(error) => {
            write_error(&mut anstream::stderr(), &format!("the script cannot be played: {error}"), None);
            u8::try_from(EXIT_BROKEN).unwrap_or(exit::FAILURE)
        }
    }
}

fn script(args: &FakeArgs) -> Result<Script, String> {
    let file = args.script.display();
    let text = std::fs::read_to_string(&args.script).map_err(|error| format!("cannot read {file}: {error}"))?;
    if text.trim_start().starts_with('[') {
        if args.agent.is_some() || args.process.is_some() || args.speed.is_some() {
            return Err(format!("{file} is a script of steps: --agent, --process and --speed are for recordings"));
        }
        return read_script(&text).map_err(|error| format!("{file}: {error}"));
    }
    let entries = replay::read(&args.script)?;
    if let (Some(agent), Some(Entry { happening: Happening::Recording { agent: recorded, .. }, .. })) =
        (&args.agent, entries.first())
        && agent != recorded
    {
        return Err(format!("{file} is a recording of {recorded}, not of {agent}"));
    }
    let pace = args.speed.filter(|speed| *speed > 0.0).map_or(Pace::AtOnce, Pace::Times);
    Script::of_recording(&entries, args.process.unwrap_or(1), pace).map_err(|error| format!("{file}: {error}"))
}
