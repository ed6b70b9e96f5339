//! OpenCode, tested with version 1.18.33.
//!
//! It has two interfaces. `serve::serves` selects one for a request.
//! - `serve` (`opencode serve`): sessions, and runs by default. The CLI is an HTTP server that reports events as they occur.
//! - `one_shot` (`opencode run --format json`): runs that only this interface can serve. The prompt is standard input. Each line
//!   reports one complete part of the answer.
//!
//! Both pass the options of a request as an agent configuration named `teamster` (`environment`). It is in the environment and
//! overrides the user's configuration. The user's files do not change.

mod serve;

mod one_shot;

mod capabilities;
mod config;
mod credential;
mod environment;
mod error;
mod failure;
mod finish_reason;
mod logs;
mod mcp;
mod permissions;
mod session;
mod session_store;
mod tools;
mod usage;
mod wire;

use super::{Agent, Capabilities, CredentialPlaces, Plan, SessionStore};
use teamster_types::event::Credential;
use teamster_types::request::{RequestError, RunRequest};

/// The agent `opencode`.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenCode;

impl Agent for OpenCode {
    fn name(&self) -> &'static str {
        error::NAME
    }

    fn capabilities(&self) -> Option<&'static Capabilities> {
        Some(&capabilities::CAPABILITIES)
    }

    fn session_store(&self) -> Option<SessionStore> {
        Some(SessionStore::Database(&session_store::STORE))
    }

    fn credential(&self, request: &RunRequest, places: &CredentialPlaces<'_>) -> Option<Credential> {
        credential::find(request, places)
    }

    fn plan(&self, request: &RunRequest) -> Result<Plan, RequestError> {
        if serve::serves(request) {
            return serve::run(request);
        }
        one_shot::run(request)
    }

    fn plan_session(&self, request: &RunRequest) -> Result<Option<Plan>, RequestError> {
        serve::serves(request).then(|| serve::session(request)).transpose()
    }
}
