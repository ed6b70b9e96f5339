//! Failed MCP servers: one warning for each, and the end of the run if the server is required.

use std::collections::{BTreeMap, BTreeSet};

use super::{Names, Style};
use crate::bounded::Ids;
use crate::protocol::{Action, Outcome, ProcessAction};
use teamster_types::event::{ErrorCode, Failure, Warning, WarningCode};
use teamster_types::request::{McpServer, RequestError};

/// The maximum characters of a reason. Some CLIs print a whole data structure.
const LONGEST_REASON: usize = 300;

/// The servers of a run, and the failures that have been reported.
#[derive(Debug)]
pub(in crate::agent) struct Health {
    pub(in crate::agent) names: Names,
    required: BTreeSet<String>,
    reported: Ids,
}

impl Health {
    pub(in crate::agent) fn new(
        style: &'static Style,
        servers: &BTreeMap<String, McpServer>,
    ) -> Result<Self, RequestError> {
        let required = servers.iter().filter(|(_, server)| server.required).map(|(name, _)| name.clone()).collect();
        Ok(Self { names: Names::new(style, servers)?, required, reported: Ids::default() })
    }

    /// Reports a server that the model cannot use. `wire` is the CLI's name of the server, `status` the CLI's status. Returns
    /// the failure of the run if the server is required.
    pub(in crate::agent) fn failed(
        &mut self,
        wire: &str,
        status: &str,
        reason: &str,
        actions: &mut Vec<Action>,
    ) -> Option<Failure> {
        let server = self.names.given(wire).to_owned();
        if !self.reported.add(server.clone()) {
            return None;
        }
        let reason: String = match reason.char_indices().nth(LONGEST_REASON) {
            Some((end, _)) => reason.get(..end).unwrap_or_default().to_owned() + "…",
            None => reason.to_owned(),
        };
        let message = format!("MCP server {server:?} {reason}");
        let warning = Warning::new(WarningCode::McpServerFailed, message.clone());
        let warning = warning.with("server", server.as_str()).with("status", status).with("reason", reason.as_str());
        actions.push(Action::Emit(warning.into()));
        self.required.contains(&server).then(|| Failure::new(ErrorCode::Config, format!("required {message}")))
    }

    /// Whether the failure of any server was reported.
    pub(in crate::agent) fn has_reported(&self) -> bool {
        !self.reported.is_empty()
    }

    /// Ends a run that requires a failed server.
    pub(in crate::agent) fn end(failure: Failure, actions: &mut Vec<Action>) {
        actions.push(Action::Outcome(Box::new(Outcome { failure: Some(failure), ..Outcome::default() })));
        // The answer would lack the tools that the caller requires.
        actions.push(Action::Process(ProcessAction::Stop));
    }
}
