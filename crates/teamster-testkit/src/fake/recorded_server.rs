//! Plays the recording of a CLI's own server. Each call gets the recorded response, and events are
//! sent once as many calls have arrived as in the recording.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::thread;

use serde_json::json;
use teamster_types::recording::{Entry, Payload, RecordedItem};

use super::cli_server::{LISTENING_PREFIX, PendingCall, Server};
use super::pace::Pace;
use super::play;
use super::script::{Script, Signal};

/// Returns whether a recorded process is a server that was called over HTTP.
pub(super) fn is_server(entries: &[&Entry]) -> bool {
    entries.iter().any(|entry| matches!(entry.item, RecordedItem::Call { .. }))
}

/// The state of the played server at the current entry of the recording.
struct Playback<'a> {
    server: Server,
    /// Calls that arrived before their place in the recording.
    early: Vec<PendingCall>,
    /// Calls that wait for their response, by the id in the recording.
    open: BTreeMap<u64, PendingCall>,
    /// The recorded calls that have not arrived yet, next one first.
    upcoming: Vec<(&'a str, &'a str)>,
    calls: u64,
}

impl Playback<'_> {
    /// Waits for this call. A call that the recording does not contain is rejected at once.
    fn await_call(&mut self, id: Option<u64>, method: &str, path: &str) {
        let call = loop {
            let at = self.early.iter().position(|call| call.method == method && call.path == path);
            if let Some(at) = at {
                break self.early.remove(at);
            }
            let Some(call) = self.server.next(None) else { return };
            if self.upcoming.iter().any(|(method, path)| call.method == *method && call.path == *path) {
                self.early.push(call);
            } else {
                reject(call);
            }
        };
        self.upcoming.remove(0);
        self.calls += 1;
        self.open.insert(id.unwrap_or(self.calls), call);
    }

    fn reply(&mut self, id: Option<u64>, status: u16, body: &Payload) {
        // A recording without ids: calls were answered in order.
        let oldest = || self.open.keys().next().copied();
        if let Some(call) = id.or_else(oldest).and_then(|id| self.open.remove(&id)) {
            call.answer_bytes(status, body.bytes().unwrap_or_default().into_owned());
        }
    }

    fn write_stdout(&self, text: &str) -> io::Result<()> {
        let text = match text.strip_prefix(LISTENING_PREFIX) {
            Some(_) => format!("{LISTENING_PREFIX}{}\n", self.server.address()),
            None => text.to_owned(),
        };
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }
}

fn reject(call: PendingCall) {
    call.answer(404, &json!({"name": "NotFoundError", "data": {"message": "this call is not in the recording"}}));
}

/// Plays the recording. Like a real server, it runs until it is killed.
pub(super) fn serve(entries: &[&Entry], pace: Pace, start_ms: f64) -> io::Result<()> {
    let upcoming = entries.iter().filter_map(|entry| match &entry.item {
        RecordedItem::Call { method, path, .. } => Some((method.as_str(), path.as_str())),
        _ => None,
    });
    let (early, open, upcoming) = (Vec::new(), BTreeMap::new(), upcoming.collect());
    let mut playback = Playback { server: Server::start()?, early, open, upcoming, calls: 0 };
    let mut last = start_ms;
    for entry in entries {
        let is_written_by_the_cli = !matches!(entry.item, RecordedItem::Call { .. } | RecordedItem::Event { .. });
        if is_written_by_the_cli {
            thread::sleep(pace.since(last, entry.at_ms));
            last = entry.at_ms;
        }
        match &entry.item {
            RecordedItem::Out(payload) => {
                playback.write_stdout(&String::from_utf8_lossy(&payload.bytes().unwrap_or_default()))?;
            }
            RecordedItem::Err(payload) => io::stderr().lock().write_all(&payload.bytes().unwrap_or_default())?,
            RecordedItem::Call { id, method, path, .. } => playback.await_call(*id, method, path),
            RecordedItem::Reply { call, status, body } => playback.reply(*call, *status, body),
            RecordedItem::ServerEvent(Payload::Text(event)) if !event.contains("\"server.connected\"") => {
                playback.server.emit(event);
            }
            RecordedItem::Exit { code: Some(code), .. } => std::process::exit(*code),
            // The recorded server was terminated when no work remained, so this one waits for its
            // termination.
            RecordedItem::Exit { signal: Some(signal), .. } if signal != "SIGTERM" => {
                if let Some(signal) = Signal::named(signal) {
                    play(&Script::new().raise(signal))?;
                }
            }
            _ => {}
        }
    }
    while let Some(call) = playback.server.next(None) {
        reject(call);
    }
    Ok(())
}
