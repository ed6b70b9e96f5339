//! OpenCode, as seen in version 1.18.33.
//!
//! A run is one `opencode run --format json`: the prompt goes to standard input, and each line tells one part of the
//! answer when it is whole. What the run asks for goes to an agent configuration of its own, named `teamster`, which is
//! laid over the user's in the environment; no file of the user's is touched.

mod abilities;
mod config;
mod failure;
mod launch;
mod logs;
mod mcp;
mod permissions;
mod protocol;
mod tally;
mod tools;
mod wire;

use super::mcp::Health;
use super::{Abilities, Agent, Plan};
use crate::request::{RequestError, RunRequest};

/// The name, for requests that are refused.
const NAME: &str = "opencode";

/// The agent `opencode`.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenCode;

impl Agent for OpenCode {
    fn name(&self) -> &'static str {
        NAME
    }

    fn abilities(&self) -> Option<&'static Abilities> {
        Some(&abilities::ABILITIES)
    }

    fn plan(&self, request: &RunRequest) -> Result<Plan, RequestError> {
        let servers = Health::new(&mcp::STYLE, &request.mcp_servers)?;
        let launch = launch::launch(request, &servers.names)?;
        let protocol = Box::new(protocol::Stream::new(request, servers));
        Ok(Plan { launch, protocol })
    }
}
