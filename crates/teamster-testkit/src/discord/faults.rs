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
        /// The time to wait in milliseconds.
        after_ms: u64,
        /// Whether all calls must wait.
        is_global: bool,
    },
    /// The call is refused with this error, and has no effect.
    Error {
        /// The status.
        status: u16,
        /// The code of the service.
        code: u64,
        /// The text.
        message: String,
    },
    /// A proxy answers with 502 and HTML. The call has no effect.
    BadGateway,
    /// A proxy answers with 502 and HTML after the call had its effect.
    BadGatewayAfter,
    /// A proxy answers with 429 and HTML. The call has no effect.
    #[serde(rename_all = "camelCase")]
    Blocked {
        /// The seconds to wait.
        retry_after: u64,
    },
    /// The connection is cut before the call has an effect.
    CutBefore,
    /// The connection is cut after the call had its effect.
    CutAfter,
    /// The call had its effect, and gets no answer.
    Hang,
}

/// The faults of the next calls, by the name of the route.
#[derive(Debug, Default)]
pub(super) struct Faults(BTreeMap<String, VecDeque<Fault>>);

impl Faults {
    pub(super) fn add(&mut self, route: &str, fault: &Fault, times: u32) {
        let queue = self.0.entry(route.to_owned()).or_default();
        queue.extend((0..times).map(|_| fault.clone()));
    }

    /// Takes the fault of a call.
    pub(super) fn take(&mut self, route: &str) -> Option<Fault> {
        self.0.get_mut(route)?.pop_front()
    }
}
