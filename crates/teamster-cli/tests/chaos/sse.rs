//! Reads event streams.

use std::time::Duration;

use reqwest::Response;
use serde_json::Value;
use tokio::time::timeout;

/// The longest silence of a stream. The gateway sends a comment every ten seconds.
const SILENCE: Duration = Duration::from_secs(20);

/// An event of a stream.
pub(crate) struct Frame {
    pub(crate) id: Option<String>,
    pub(crate) data: Value,
}

/// Reads the events of a response.
pub(crate) struct EventReader {
    response: Response,
    buffer: Vec<u8>,
}

impl EventReader {
    pub(crate) const fn new(response: Response) -> Self {
        Self { response, buffer: Vec::new() }
    }

    /// Returns the next event. `None`: the stream has ended, or its connection has.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        loop {
            while let Some(end) = self.buffer.windows(2).position(|bytes| bytes == b"\n\n") {
                let frame: Vec<u8> = self.buffer.drain(..end + 2).collect();
                if let Some(frame) = parse(&String::from_utf8(frame).expect("UTF-8")) {
                    return Some(frame);
                }
            }
            let chunk = timeout(SILENCE, self.response.chunk()).await.expect("a stream is never silent for long");
            self.buffer.extend_from_slice(&chunk.ok()??);
        }
    }
}

/// Returns the event of a frame. `None`: it is a comment.
fn parse(frame: &str) -> Option<Frame> {
    let field = |name: &str| {
        let line = frame.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(line.strip_prefix(' ').unwrap_or(line))
    };
    let data = serde_json::from_str(field("data")?).expect("JSON");
    Some(Frame { id: field("id").map(str::to_owned), data })
}
