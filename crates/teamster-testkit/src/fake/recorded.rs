//! Converts the recording of a CLI into a script.

use std::io;

use teamster_types::recording::{Entry, Payload, RecordedItem};

use super::pace::Pace;
use super::script::{Script, Signal};

/// An error: the recording contains fewer processes than requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the recording has no process {requested}: it contains {available}")]
pub struct NoSuchProcess {
    /// The requested process, counted from 1.
    pub requested: usize,
    /// The number of processes in the recording.
    pub available: usize,
}

impl Script {
    /// Converts one process of a recording, counted from 1, into a script. The script writes the
    /// same output and ends in the same way. Each part is written once as many lines have arrived
    /// on stdin as in the recording; their content does not matter.
    ///
    /// # Errors
    /// Fails if the recording has no such process.
    pub fn of_recording(entries: &[Entry], process: usize, pace: Pace) -> Result<Self, NoSuchProcess> {
        let (start_ms, its_entries) = entries_of_process(entries, process)?;
        Ok(Self::of_process(&its_entries, pace, start_ms))
    }

    fn of_process(its_entries: &[&Entry], pace: Pace, start_ms: f64) -> Self {
        let mut script = Self::new();
        let mut last = start_ms;
        for entry in its_entries {
            if pace != Pace::Immediate && is_written_by_the_cli(&entry.item) {
                script = script.sleep(pace.since(last, entry.at_ms));
                last = entry.at_ms;
            }
            script = script.add_item(&entry.item);
        }
        script
    }

    fn add_item(self, item: &RecordedItem) -> Self {
        match item {
            RecordedItem::In(payload) => lines(payload).fold(self, |script, ()| script.await_line("")),
            RecordedItem::InEnd => self.read_to_end(),
            RecordedItem::Out(Payload::Text(text)) => self.text(text),
            RecordedItem::Out(payload) => self.bytes(payload.bytes().unwrap_or_default()),
            RecordedItem::Err(payload) => self.stderr(String::from_utf8_lossy(&payload.bytes().unwrap_or_default())),
            RecordedItem::Exit { signal: Some(signal), .. } => match Signal::named(signal) {
                Some(signal) => self.raise(signal),
                None => self.hang(),
            },
            RecordedItem::Exit { code, .. } => self.exit(code.unwrap_or_default()),
            _ => self,
        }
    }
}

/// Plays one process of a recording, counted from 1, like [`Script::of_recording`]. If the recorded
/// process was a CLI's own server, this one also serves, on another port: each call gets the
/// recorded response, and events are sent once as many calls have arrived as in the recording. A
/// server runs until it is killed.
///
/// # Errors
/// Fails if the recording has no such process, if nothing reads the output, or if no server can be
/// started.
pub fn play_recording(entries: &[Entry], process: usize, pace: Pace) -> io::Result<()> {
    let (start_ms, its_entries) = entries_of_process(entries, process).map_err(io::Error::other)?;
    #[cfg(feature = "servers")]
    if super::recorded_server::is_server(&its_entries) {
        return super::recorded_server::serve(&its_entries, pace, start_ms);
    }
    super::play(&Script::of_process(&its_entries, pace, start_ms))
}

/// Returns the entries of one process of a recording, and its start time.
fn entries_of_process(entries: &[Entry], process: usize) -> Result<(f64, Vec<&Entry>), NoSuchProcess> {
    let is_start = |entry: &&Entry| matches!(entry.item, RecordedItem::Start { .. });
    let available = entries.iter().filter(is_start).count();
    let missing = NoSuchProcess { requested: process, available };
    let skipped = process.checked_sub(1).ok_or(missing)?;
    let mut starts = entries.iter().enumerate().filter(|(_, entry)| is_start(entry)).skip(skipped);
    let (at, start) = starts.next().ok_or(missing)?;
    Ok((start.at_ms, entries.iter().skip(at + 1).take_while(|entry| !is_start(entry)).collect()))
}

fn is_written_by_the_cli(item: &RecordedItem) -> bool {
    matches!(item, RecordedItem::Out(_) | RecordedItem::Err(_) | RecordedItem::Exit { .. })
}

/// Returns one item for each complete line.
fn lines(payload: &Payload) -> impl Iterator<Item = ()> {
    let ends = String::from_utf8_lossy(&payload.bytes().unwrap_or_default()).matches('\n').count();
    std::iter::repeat_n((), ends)
}
