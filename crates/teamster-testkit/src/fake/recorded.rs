//! A script that does what a CLI did when it was recorded.

use std::io;
use std::time::Duration;

use teamster_protocol::recording::{Entry, Happening, Said};

use super::script::{Script, Signal};

/// How fast a recording is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Without waiting.
    AtOnce,
    /// So many times as fast as it was. It must be above zero.
    Times(f64),
}

impl Pace {
    /// How long is waited between two moments of the recording, in milliseconds since it began.
    pub(super) fn since(self, last: f64, now: f64) -> Duration {
        match self {
            Self::AtOnce => Duration::ZERO,
            Self::Times(times) => Duration::try_from_secs_f64((now - last) / 1000.0 / times).unwrap_or_default(),
        }
    }
}

/// A recording has fewer processes than that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the recording has no process {asked}: it has {there}")]
pub struct NoSuchProcess {
    /// Which one was asked for, counted from 1.
    pub asked: usize,
    /// How many there are.
    pub there: usize,
}

impl Script {
    /// What one of a recording's processes did, counted from 1: what it said, and how it ended, each when as many lines had
    /// come on its standard input as had come then. What they say does not matter.
    ///
    /// # Errors
    /// When the recording has no such process.
    pub fn of_recording(entries: &[Entry], process: usize, pace: Pace) -> Result<Self, NoSuchProcess> {
        let (began, its_own) = process_of(entries, process)?;
        Ok(Self::of_process(&its_own, pace, began))
    }

    fn of_process(its_own: &[&Entry], pace: Pace, began: f64) -> Self {
        let mut script = Self::new();
        let mut last = began;
        for entry in its_own {
            if pace != Pace::AtOnce && is_done_by_the_cli(&entry.happening) {
                script = script.sleep(pace.since(last, entry.at_ms));
                last = entry.at_ms;
            }
            script = script.happens(&entry.happening);
        }
        script
    }

    fn happens(self, happening: &Happening) -> Self {
        match happening {
            Happening::In(said) => lines(said).fold(self, |script, ()| script.await_line("")),
            Happening::InEnd => self.read_to_end(),
            Happening::Out(Said::Text(text)) => self.text(text),
            Happening::Out(said) => self.bytes(said.bytes().unwrap_or_default()),
            Happening::Err(said) => self.stderr(String::from_utf8_lossy(&said.bytes().unwrap_or_default())),
            Happening::Exit { signal: Some(signal), .. } => match Signal::named(signal) {
                Some(signal) => self.raise(signal),
                None => self.hang(),
            },
            Happening::Exit { code, .. } => self.exit(code.unwrap_or_default()),
            _ => self,
        }
    }
}

/// Plays one of a recording's processes, counted from 1, as [`Script::of_recording`] has it. A server of the CLI's own is one
/// here too, on another port: each call gets the answer that it got then, and events come when as many calls have come as had
/// come then. It does not end before it is ended.
///
/// # Errors
/// When the recording has no such process, nobody reads the output, or no server can be started.
pub fn play_recording(entries: &[Entry], process: usize, pace: Pace) -> io::Result<()> {
    let (began, its_own) = process_of(entries, process).map_err(io::Error::other)?;
    #[cfg(feature = "servers")]
    if super::served::is_server(&its_own) {
        return super::served::serve(&its_own, pace, began);
    }
    super::play(&Script::of_process(&its_own, pace, began))
}

/// What one of a recording's processes did, and when it began.
fn process_of(entries: &[Entry], process: usize) -> Result<(f64, Vec<&Entry>), NoSuchProcess> {
    let is_start = |entry: &&Entry| matches!(entry.happening, Happening::Start { .. });
    let there = entries.iter().filter(is_start).count();
    let missing = NoSuchProcess { asked: process, there };
    let skipped = process.checked_sub(1).ok_or(missing)?;
    let mut starts = entries.iter().enumerate().filter(|(_, entry)| is_start(entry)).skip(skipped);
    let (at, start) = starts.next().ok_or(missing)?;
    Ok((start.at_ms, entries.iter().skip(at + 1).take_while(|entry| !is_start(entry)).collect()))
}

fn is_done_by_the_cli(happening: &Happening) -> bool {
    matches!(happening, Happening::Out(_) | Happening::Err(_) | Happening::Exit { .. })
}

/// One for each whole line.
fn lines(said: &Said) -> impl Iterator<Item = ()> {
    let ends = String::from_utf8_lossy(&said.bytes().unwrap_or_default()).matches('\n').count();
    std::iter::repeat_n((), ends)
}
