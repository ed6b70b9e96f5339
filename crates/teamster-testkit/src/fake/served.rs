//! A recording of a CLI's own server, played: each call gets the answer that it got then, and events come when as many calls
//! have come as had come then.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::thread;

use serde_json::json;
use teamster_protocol::recording::{Entry, Happening, Said};

use super::http::{Called, LISTENS, Server};
use super::play;
use super::recorded::Pace;
use super::script::{Script, Signal};

/// Whether a process of a recording is a server that was asked over HTTP.
pub(super) fn is_server(entries: &[&Entry]) -> bool {
    entries.iter().any(|entry| matches!(entry.happening, Happening::Call { .. }))
}

/// What the server has been asked, as far as the recording has come to it.
struct Desk<'a> {
    server: Server,
    /// Calls that the recording comes to later.
    early: Vec<Called>,
    /// Calls that wait for their answers, by the numbers that they had then.
    open: BTreeMap<u64, Called>,
    /// Calls of the recording that have not come yet, the next one first.
    upcoming: Vec<(&'a str, &'a str)>,
    calls: u64,
}

impl Desk<'_> {
    /// Waits for this call. What the recording knows nothing of is answered at once.
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
                refuse(call);
            }
        };
        self.upcoming.remove(0);
        self.calls += 1;
        self.open.insert(id.unwrap_or(self.calls), call);
    }

    fn reply(&mut self, id: Option<u64>, status: u16, body: &Said) {
        // A recording without numbers: they were answered in order.
        let oldest = || self.open.keys().next().copied();
        if let Some(call) = id.or_else(oldest).and_then(|id| self.open.remove(&id)) {
            call.answer_bytes(status, body.bytes().unwrap_or_default().into_owned());
        }
    }

    fn said(&self, text: &str) -> io::Result<()> {
        let text = match text.strip_prefix(LISTENS) {
            Some(_) => format!("{LISTENS}{}\n", self.server.address()),
            None => text.to_owned(),
        };
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }
}

fn refuse(call: Called) {
    call.answer(404, &json!({"name": "NotFoundError", "data": {"message": "it is not in the recording"}}));
}

/// Plays it until it is ended, as such a server is.
pub(super) fn serve(entries: &[&Entry], pace: Pace, began_ms: f64) -> io::Result<()> {
    let upcoming = entries.iter().filter_map(|entry| match &entry.happening {
        Happening::Call { method, path, .. } => Some((method.as_str(), path.as_str())),
        _ => None,
    });
    let (early, open, upcoming) = (Vec::new(), BTreeMap::new(), upcoming.collect());
    let mut desk = Desk { server: Server::start()?, early, open, upcoming, calls: 0 };
    let mut last = began_ms;
    for entry in entries {
        let is_done_by_the_cli = !matches!(entry.happening, Happening::Call { .. } | Happening::Event { .. });
        if is_done_by_the_cli {
            thread::sleep(pace.since(last, entry.at_ms));
            last = entry.at_ms;
        }
        match &entry.happening {
            Happening::Out(said) => desk.said(&String::from_utf8_lossy(&said.bytes().unwrap_or_default()))?,
            Happening::Err(said) => io::stderr().lock().write_all(&said.bytes().unwrap_or_default())?,
            Happening::Call { id, method, path, .. } => desk.await_call(*id, method, path),
            Happening::Reply { call, status, body } => desk.reply(*call, *status, body),
            Happening::ServerEvent(Said::Text(event)) if !event.contains("\"server.connected\"") => {
                desk.server.tell(event);
            }
            Happening::Exit { code: Some(code), .. } => std::process::exit(*code),
            // It was ended when there was no more to do: so it waits for that.
            Happening::Exit { signal: Some(signal), .. } if signal != "SIGTERM" => {
                if let Some(signal) = Signal::named(signal) {
                    play(&Script::new().raise(signal))?;
                }
            }
            _ => {}
        }
    }
    while let Some(call) = desk.server.next(None) {
        refuse(call);
    }
    Ok(())
}
