//! `teamster replay`: prints a recording as the recorded run was printed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::ValueHint;
use teamster::Registry;
use teamster::recording::{self, Entry, RecordedItem};
use teamster::text::without_bom;

use crate::args::{Format, values};
use crate::exit;
use crate::printable::{Printable, printable};
use crate::render::{Output, write_error};

/// Print a recording (teamster run --record FILE)
///
/// Prints the recorded events in the same order and with the same pauses. The exit code is that of the recorded run. If the
/// recording is cut, its events are printed and the exit code is 1.
#[derive(Debug, clap::Args)]
pub(crate) struct ReplayArgs {
    /// The recording
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// Set the speed factor; 0 means without pauses [default: 1]
    #[arg(long, value_name = "TIMES", value_parser = values::speed)]
    speed: Option<f64>,

    /// Print as: pretty (default), text, ndjson or json
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "pretty",
        hide_default_value = true,
        hide_possible_values = true
    )]
    output: Format,
}

/// Runs the command and returns the exit code that the recorded run had.
pub(crate) fn main(args: &ReplayArgs) -> u8 {
    let entries = match read(&args.file) {
        Ok(entries) => entries,
        Err(message) => {
            write_error(&mut anstream::stderr(), &message, None);
            return exit::USAGE;
        }
    };
    let speed = args.speed.unwrap_or(1.0);
    let began = Instant::now();
    let mut output = Output::new(args.output, Registry::DEFAULT, None);
    // `None` while a run's end is missing.
    let mut code = None;
    for Entry { at_ms, item } in entries {
        let RecordedItem::Event { event } = item else { continue };
        if speed > 0.0 {
            let due = Duration::try_from_secs_f64(at_ms / 1000.0 / speed).unwrap_or_default();
            std::thread::sleep(due.saturating_sub(began.elapsed()));
        }
        code = match &*event {
            teamster::Event::Done(done) => Some(exit::of_result(&done.result)),
            _ => None,
        };
        if output.event(&event, Instant::now()).is_err() {
            return exit::NO_READER;
        }
        if code.is_some() {
            // The recording of a session can contain further turns.
            output = Output::new(args.output, Registry::DEFAULT, None);
        }
    }
    code.unwrap_or_else(|| {
        let cut = printable!("{}: the recording is cut: the end of the run is missing", &args.file);
        match output.notice(&cut) {
            Ok(()) => exit::FAILURE,
            Err(_) => exit::NO_READER,
        }
    })
}

/// Reads a recording.
pub(crate) fn read(file: &Path) -> Result<Vec<Entry>, Printable> {
    let bytes =
        std::fs::read(file).map_err(|error| printable!("cannot read {}: {}", file, Printable::error(&error)))?;
    // A recording can be cut inside a character.
    let text = String::from_utf8_lossy(&bytes);
    let entries =
        recording::read(without_bom(&text)).map_err(|error| printable!("{}: {}", file, Printable::error(&error)))?;
    match entries.first().map(|entry| &entry.item) {
        Some(RecordedItem::Recording { version, .. }) if *version > recording::VERSION => {
            Err(printable!("{}: unsupported recording version {}", file, *version))
        }
        Some(RecordedItem::Recording { .. }) => Ok(entries),
        _ => Err(printable!("{}: not a recording", file)),
    }
}
