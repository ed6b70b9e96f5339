//! Claude Code 2.1.197.
//!
//! A run is one turn of the CLI's session mode (`stream-json`): the prompt is a line of JSON on standard input, which stays open until
//! the result was read, and an interrupt is a control request. The folder `one_shot` has the interface for one prompt, whose output is
//! one JSON document or lines. Both have the same protocol.

mod assembler;
mod background;
mod capabilities;
mod control;
mod counters;
mod credential;
mod edits;
mod failure;
mod hooks;
mod launch;
mod mcp;
mod notices;
mod one_shot;
mod outcome;
mod plan;
mod protocol;
mod requests;
mod session;
mod session_id;
mod session_store;
mod tasks;
mod tools;
mod wire;

use super::mcp::Health;
use super::{Agent, Capabilities, CredentialPlaces, Plan, SessionStore};
use teamster_types::event::Credential;
use teamster_types::request::{RequestError, RunRequest};

/// The agent `claude`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Claude;

impl Agent for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn capabilities(&self) -> Option<&'static Capabilities> {
        Some(&capabilities::CAPABILITIES)
    }

    fn session_store(&self) -> Option<SessionStore> {
        Some(SessionStore::Files(&session_store::STORE))
    }

    fn credential(&self, _: &RunRequest, places: &CredentialPlaces<'_>) -> Option<Credential> {
        credential::find(places)
    }

    fn plan(&self, request: &RunRequest) -> Result<Plan, RequestError> {
        let servers = Health::new(&mcp::STYLE, &request.mcp_servers)?;
        let launch = launch::run(request, &servers.names)?;
        let protocol = Box::new(protocol::StreamJson::new(request, servers)?);
        Ok(Plan { launch, protocol })
    }

    fn plan_session(&self, request: &RunRequest) -> Result<Option<Plan>, RequestError> {
        let servers = Health::new(&mcp::STYLE, &request.mcp_servers)?;
        let launch = launch::session(request, &servers.names)?;
        let protocol = Box::new(protocol::StreamJson::session(request, servers));
        Ok(Some(Plan { launch, protocol }))
    }
}
