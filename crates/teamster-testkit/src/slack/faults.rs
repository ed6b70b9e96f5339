//! What fails.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

/// How a call fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
#[non_exhaustive]
pub enum Fault {
    /// The call is refused with 429, and has no effect.
    #[serde(rename_all = "camelCase")]
    RateLimit {
        /// The time to wait.
        retry_after: u64,
    },
    /// The call is answered with `ok: false` and this code, and has no effect.
    Error {
        /// The code.
        error: String,
    },
    /// The call had its effect, and is answered with `ok: false` and this code.
    ErrorAfter {
        /// The code.
        error: String,
    },
    /// A proxy answers with 502 and HTML. The call has no effect.
    BadGateway,
    /// The connection is cut before the call has an effect.
    CutBefore,
    /// The connection is cut after the call had its effect.
    CutAfter,
    /// The call had its effect, and gets no answer.
    Hang,
}

/// The faults of the next calls, by method.
#[derive(Debug, Default)]
pub(super) struct Faults(BTreeMap<String, VecDeque<Fault>>);

impl Faults {
    pub(super) fn add(&mut self, method: &str, fault: &Fault, times: u32) {
        let queue = self.0.entry(method.to_owned()).or_default();
        queue.extend((0..times).map(|_| fault.clone()));
    }

    /// Takes the fault of a call.
    pub(super) fn take(&mut self, method: &str) -> Option<Fault> {
        self.0.get_mut(method)?.pop_front()
    }
}
