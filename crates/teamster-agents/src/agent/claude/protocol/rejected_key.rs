//! The end of a run or turn whose credentials the vendor rejects.
//!
//! The CLI repeats a request that was answered with 401 up to 10 times, for about 3 minutes. A key stays wrong. After the first
//! rejection of a login the CLI renews its token, so only the second one is final (2.1.197).

use super::{Actions, Phase, StreamJson};
use crate::agent::claude::failure;
use crate::agent::claude::wire::SystemLine;
use crate::protocol::{Action, ProcessAction};

const UNAUTHORIZED: u16 = 401;

impl StreamJson {
    /// Whether an `api_retry` line reports that the vendor rejects the credentials, and the CLI cannot renew them.
    pub(super) fn is_key_rejected(&self, line: &SystemLine) -> bool {
        let has_key = self.key_source.as_deref().is_some_and(|source| source != "none");
        line.error_status == Some(UNAUTHORIZED.into()) && (has_key || line.attempt.is_none_or(|attempt| attempt > 1))
    }

    /// Ends the run or turn. The next turn of a session has another process.
    pub(super) fn key_rejected(&mut self, actions: &mut Actions) {
        actions.push(Action::Outcome(Box::new(failure::of_status(UNAUTHORIZED).into())));
        actions.push(Action::Process(ProcessAction::Stop));
        self.phase = Phase::Rejected;
    }
}
