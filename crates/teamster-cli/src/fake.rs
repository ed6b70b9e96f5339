//! `teamster fake`: imitates the CLI of an agent, driven by a scenario, a recording or a script of steps.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueHint;
use teamster::recording::{Entry, RecordedItem};
use teamster::text::without_bom;
use teamster_testkit::fake::{
    EXIT_SCRIPT_ERROR, Pace, Scenario, ScenarioRun, Script, answer_version, play, play_recording, read_script,
};

use crate::args::values;
use crate::exit;
use crate::printable::{Printable, printable};
use crate::render::write_error;
use crate::replay;

/// Imitate an agent's CLI, from a scenario or a recording
///
/// Use it to test a program that drives agents. Pass this script as the agent's CLI (--cli-path):
///
///   #!/bin/sh
///   exec teamster fake --agent claude --script FILE -- "$@"
///
/// A scenario (docs/fake.md) is a TOML or JSON file that lists the agent's steps
/// turn by turn. It works for each of the four CLIs. A recording (teamster run
/// --record FILE) contains the output of a CLI. Each part of the output is played
/// back once the CLI has received as much input as in the recording.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct FakeArgs {
    /// Imitate the CLI of claude, codex, gemini or opencode
    ///
    /// A recording must be of this agent.
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// Play a scenario, a recording, or the testkit's JSON steps
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    script: PathBuf,

    /// Play this process of the recording [default: 1]
    #[arg(long, value_name = "NUMBER")]
    process: Option<usize>,

    /// Set the speed factor; 0 means without pauses [default: 0]
    #[arg(long, value_name = "TIMES", value_parser = values::speed)]
    speed: Option<f64>,

    /// The CLI's own arguments; only a scenario uses them
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

/// The content of the script file.
enum Content {
    Scenario(ScenarioRun),
    Recording { entries: Vec<Entry>, process: usize, pace: Pace },
    Steps(Script),
}

/// Runs the command and returns its exit code.
pub(crate) fn main(args: &FakeArgs) -> u8 {
    let content = match read(args) {
        Ok(content) => content,
        Err(message) => {
            write_error(&mut anstream::stderr(), &message, None);
            return exit::USAGE;
        }
    };
    let end = match content {
        Content::Scenario(run) => run.run(),
        Content::Recording { entries, process, pace } => match recorded_version(&entries, &args.arguments) {
            Some(printed) => printed,
            None => play_recording(&entries, process, pace).map(|()| 0),
        },
        Content::Steps(script) => play(&script).map(|()| 0),
    };
    match end {
        // The system also uses only the lowest byte of an exit code.
        Ok(code) => u8::try_from(code & 0xff).unwrap_or(exit::FAILURE),
        Err(error) => {
            write_error(
                &mut anstream::stderr(),
                &printable!("the script cannot be played: {}", Printable::error(&error)),
                None,
            );
            u8::try_from(EXIT_SCRIPT_ERROR).unwrap_or(exit::FAILURE)
        }
    }
}

fn read(args: &FakeArgs) -> Result<Content, Printable> {
    let file = &args.script;
    let text = std::fs::read_to_string(&args.script)
        .map_err(|error| printable!("cannot read {}: {}", file, Printable::error(&error)))?;
    let text = without_bom(&text);
    let is_timed = args.process.is_some() || args.speed.is_some();
    match Kind::of(text) {
        Kind::Steps if args.agent.is_some() || is_timed => {
            Err(printable!("{} is a script of steps: --agent, --process and --speed do not apply to it", file))
        }
        Kind::Steps => {
            read_script(text).map(Content::Steps).map_err(|error| printable!("{}: {}", file, Printable::error(&error)))
        }
        Kind::Scenario if is_timed => {
            Err(printable!("{} is a scenario: --process and --speed apply to recordings only", file))
        }
        Kind::Scenario => {
            let scenario =
                Scenario::read(text).map_err(|error| printable!("{}: {}", file, Printable::error(&error)))?;
            let Some(agent) = &args.agent else { return Err(printable!("{} is a scenario: --agent is needed", file)) };
            scenario
                .for_cli(agent, &args.arguments)
                .map(Content::Scenario)
                .map_err(|error| printable!("{}: {}", file, Printable::error(&error)))
        }
        Kind::Recording => recording(args),
    }
}

/// Prints the version of the recorded agent, if the arguments request it.
fn recorded_version(entries: &[Entry], arguments: &[OsString]) -> Option<std::io::Result<i32>> {
    let RecordedItem::Recording { agent, .. } = &entries.first()?.item else { return None };
    answer_version(agent, arguments).transpose()
}

fn recording(args: &FakeArgs) -> Result<Content, Printable> {
    let file = &args.script;
    let entries = replay::read(&args.script)?;
    if let (Some(agent), Some(Entry { item: RecordedItem::Recording { agent: recorded, .. }, .. })) =
        (&args.agent, entries.first())
        && agent != recorded
    {
        return Err(printable!("{} is a recording of {}, not of {}", file, recorded, agent));
    }
    let pace = args.speed.filter(|speed| *speed > 0.0).map_or(Pace::Immediate, Pace::Factor);
    let process = args.process.unwrap_or(1);
    // A process that the recording does not contain is an error before anything is played.
    Script::of_recording(&entries, process, pace)
        .map_err(|error| printable!("{}: {}", file, Printable::error(&error)))?;
    Ok(Content::Recording { entries, process, pace })
}

/// The kind of a script file, determined by its beginning.
enum Kind {
    Scenario,
    Recording,
    Steps,
}

impl Kind {
    fn of(text: &str) -> Self {
        let text = text.trim_start();
        if text.starts_with('{') {
            // Only a recording has a time on its first line.
            let first = text.lines().next().unwrap_or_default();
            if first.contains("\"atMs\"") { Self::Recording } else { Self::Scenario }
        } else if text.starts_with('[') && !text.starts_with("[[") {
            Self::Steps
        } else {
            Self::Scenario
        }
    }
}
