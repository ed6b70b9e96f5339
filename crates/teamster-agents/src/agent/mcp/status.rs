//! Servers that the model cannot use: a warning each, once, and the end of the run where the server is required.

use std::collections::{BTreeMap, BTreeSet};

use super::{Names, Style};
use crate::bounded::Ids;
use crate::protocol::{Action, Outcome};
use teamster_types::event::{ErrorCode, Failure, Warning, WarningCode};
use teamster_types::request::{McpServer, RequestError};

/// Characters of a reason that are told: some CLIs print whole types.
const LONGEST_REASON: usize = 300;

/// The servers of a run, and what has been told of them.
#[derive(Debug)]
pub(in crate::agent) struct Health {
    pub(in crate::agent) names: Names,
    required: BTreeSet<String>,
    told: Ids,
}

impl Health {
    pub(in crate::agent) fn new(
        style: &'static Style,
        servers: &BTreeMap<String, McpServer>,
    ) -> Result<Self, RequestError> {
        let required = servers.iter().filter(|(_, server)| server.required).map(|(name, _)| name.clone()).collect();
        Ok(Self { names: Names::new(style, servers)?, required, told: Ids::default() })
    }

    /// Tells of a server, named as the CLI names it, that the model cannot use. `status` is a word of the CLI's. Gives the
    /// failure of the run, if it cannot do without it.
    pub(in crate::agent) fn failed(
        &mut self,
        wire: &str,
        status: &str,
        reason: &str,
        actions: &mut Vec<Action>,
    ) -> Option<Failure> {
        let server = self.names.given(wire).to_owned();
        if !self.told.add(server.clone()) {
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

    /// Whether anything was told of any server.
    pub(in crate::agent) fn has_told(&self) -> bool {
        !self.told.is_empty()
    }

    /// Ends a run that cannot do without a server.
    pub(in crate::agent) fn end(failure: Failure, actions: &mut Vec<Action>) {
        actions.push(Action::Outcome(Box::new(Outcome { failure: Some(failure), ..Outcome::default() })));
        // The answer would be one without the tools that the caller cannot do without.
        actions.push(Action::Stop);
    }
}
