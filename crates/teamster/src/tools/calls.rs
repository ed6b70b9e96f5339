//! The running calls, so that an agent can cancel one of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::NumberOrString;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::callers::Caller;

/// The running calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls(Arc<Mutex<Vec<Call>>>);

#[derive(Clone, Debug)]
struct Call {
    caller: Arc<Caller>,
    request: NumberOrString,
    given_up: CancellationToken,
}

/// A running call. Dropping it removes the call.
#[derive(Debug)]
pub(super) struct Entered {
    calls: Calls,
    pub(super) given_up: CancellationToken,
}

/// An MCP message that cancels a call.
#[derive(Deserialize)]
struct Notification {
    method: String,
    params: Canceled,
}

#[derive(Deserialize)]
struct Canceled {
    #[serde(rename = "requestId")]
    request: NumberOrString,
}

impl Calls {
    /// Adds a call.
    pub(super) fn enter(&self, caller: Arc<Caller>, request: NumberOrString) -> Entered {
        let given_up = CancellationToken::new();
        self.lock().push(Call { caller, request, given_up: given_up.clone() });
        Entered { calls: self.clone(), given_up }
    }

    /// Cancels the call that a message of the caller cancels. Ignores other messages.
    pub(super) fn read(&self, caller: &Arc<Caller>, message: &[u8]) {
        let Ok(Notification { method, params }) = serde_json::from_slice(message) else { return };
        if method != "notifications/cancelled" {
            return;
        }
        let calls = self.lock();
        let mut meant = calls.iter().filter(|call| Arc::ptr_eq(&call.caller, caller) && call.request == params.request);
        // Two processes that use the same offer may use the same ids. Then it is unknown which call is meant.
        if let (Some(call), None) = (meant.next(), meant.next()) {
            call.given_up.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Call>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        // Tokens of two calls are never equal.
        self.given_up.cancel();
        self.calls.lock().retain(|call| !call.given_up.is_cancelled());
    }
}
