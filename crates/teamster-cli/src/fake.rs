//! `teamster fake`: plays the CLI of an agent, from a story, a recording or a script.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueHint;
use teamster::recording::{Entry, Happening};
use teamster_testkit::fake::{
    EXIT_BROKEN, Pace, Play, Script, Story, answer_version, play, play_recording, read_script,
};

use crate::args::values;
use crate::exit;
use crate::printable::{Printable, printable};
use crate::render::write_error;
use crate::replay;

/// Play an agent's CLI without a model, from a story or a recording
///
/// To test a program that drives agents, give it this as the agent's CLI (--cli-path):
///
///   #!/bin/sh
///   exec teamster fake --agent claude --script FILE -- "$@"
///
/// A story (docs/fake.md) says what the agent does turn by turn, in TOML or JSON, and is told as the CLI of any of the four
/// agents. A recording (teamster run --record FILE) says what a CLI said then, when as much has been said to it.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct FakeArgs {
    /// Whose CLI is played: claude, codex, gemini or opencode. A recording must be of this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// A story, a recording, or the testkit's steps as JSON
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    script: PathBuf,

    /// Which of the recording's processes is played [default: 1]
    #[arg(long, value_name = "NUMBER")]
    process: Option<usize>,

    /// How many times as fast as it was; 0, without pauses [default: 0]
    #[arg(long, value_name = "TIMES", value_parser = values::speed)]
    speed: Option<f64>,

    /// What the CLI is started with: a story goes by it, and nothing else does
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

/// What is played.
enum Played {
    Story(Play),
    Recording { entries: Vec<Entry>, process: usize, pace: Pace },
    Steps(Script),
}

/// Carries out the command and tells its exit code.
pub(crate) fn main(args: &FakeArgs) -> u8 {
    let played = match read(args) {
        Ok(played) => played,
        Err(message) => {
            write_error(&mut anstream::stderr(), &message, None);
            return exit::USAGE;
        }
    };
    let end = match played {
        Played::Story(story) => story.play(),
        Played::Recording { entries, process, pace } => match recorded_version(&entries, &args.arguments) {
            Some(answered) => answered,
            None => play_recording(&entries, process, pace).map(|()| 0),
        },
        Played::Steps(script) => play(&script).map(|()| 0),
    };
    match end {
        // As the system takes it from a process.
        Ok(code) => u8::try_from(code & 0xff).unwrap_or(exit::FAILURE),
        Err(error) => {
            write_error(
                &mut anstream::stderr(),
                &printable!("the script cannot be played: {}", Printable::error(&error)),
                None,
            );
            u8::try_from(EXIT_BROKEN).unwrap_or(exit::FAILURE)
        }
    }
}

fn read(args: &FakeArgs) -> Result<Played, Printable> {
    let file = &args.script;
    let text = std::fs::read_to_string(&args.script)
        .map_err(|error| printable!("cannot read {}: {}", file, Printable::error(&error)))?;
    let is_timed = args.process.is_some() || args.speed.is_some();
    match Kind::of(&text) {
        Kind::Steps if args.agent.is_some() || is_timed => {
            Err(printable!("{} is a script of steps: --agent, --process and --speed are for others", file))
        }
        Kind::Steps => {
            read_script(&text).map(Played::Steps).map_err(|error| printable!("{}: {}", file, Printable::error(&error)))
        }
        Kind::Story if is_timed => Err(printable!("{} is a story: --process and --speed are for recordings", file)),
        Kind::Story => {
            let story = Story::read(&text).map_err(|error| printable!("{}: {}", file, Printable::error(&error)))?;
            let Some(agent) = &args.agent else { return Err(printable!("{} is a story: --agent is needed", file)) };
            story
                .told_by(agent, &args.arguments)
                .map(Played::Story)
                .map_err(|error| printable!("{}: {}", file, Printable::error(&error)))
        }
        Kind::Recording => recording(args),
    }
}

/// Answers for the agent of a recording, if the arguments ask for its version.
fn recorded_version(entries: &[Entry], arguments: &[OsString]) -> Option<std::io::Result<i32>> {
    let Happening::Recording { agent, .. } = &entries.first()?.happening else { return None };
    answer_version(agent, arguments).transpose()
}

fn recording(args: &FakeArgs) -> Result<Played, Printable> {
    let file = &args.script;
    let entries = replay::read(&args.script)?;
    if let (Some(agent), Some(Entry { happening: Happening::Recording { agent: recorded, .. }, .. })) =
        (&args.agent, entries.first())
        && agent != recorded
    {
        return Err(printable!("{} is a recording of {}, not of {}", file, recorded, agent));
    }
    let pace = args.speed.filter(|speed| *speed > 0.0).map_or(Pace::AtOnce, Pace::Times);
    let process = args.process.unwrap_or(1);
    // What it has not is told before anything is played.
    Script::of_recording(&entries, process, pace)
        .map_err(|error| printable!("{}: {}", file, Printable::error(&error)))?;
    Ok(Played::Recording { entries, process, pace })
}

/// What a file holds, by how it begins.
enum Kind {
    Story,
    Recording,
    Steps,
}

impl Kind {
    fn of(text: &str) -> Self {
        let text = text.trim_start();
        if text.starts_with('{') {
            // Each line of a recording has a time.
            let first = text.lines().next().unwrap_or_default();
            if first.contains("\"atMs\"") { Self::Recording } else { Self::Story }
        } else if text.starts_with('[') && !text.starts_with("[[") {
            Self::Steps
        } else {
            Self::Story
        }
    }
}
