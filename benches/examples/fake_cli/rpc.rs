//! JSON-RPC lines on standard input.

use std::io::{self, BufRead as _};

use serde_json::Value;

/// A request or a notification.
pub(crate) struct Call {
    pub(crate) method: String,
    /// Absent in a notification.
    pub(crate) id: Option<Value>,
}

/// Returns the calls, to the end of standard input.
pub(crate) fn calls() -> impl Iterator<Item = Call> {
    io::stdin().lock().lines().map_while(Result::ok).filter_map(|line| {
        let message: Value = serde_json::from_str(&line).ok()?;
        let method = message.get("method")?.as_str()?.to_owned();
        Some(Call { method, id: message.get("id").cloned() })
    })
}
