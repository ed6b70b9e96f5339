//! OpenCode, as seen in version 1.18.33.
//!
//! A run or a session is driven by the CLI's own server (`serve`), which tells what happens as it happens. In `mode: exec`,
//! with arguments of the caller's, which are those of `opencode run`, and where its background is kept, a run is one `opencode run --format json`: the
//! prompt goes to standard input, and each line tells one part of the answer when it is whole. Either way, what the
//! request asks for goes to an agent configuration of its own, named `teamster`, which is laid over the user's in the
//! environment; no file of the user's is touched.

mod capabilities;
mod config;
mod failure;
mod launch;
mod logs;
mod mcp;
mod permissions;
mod protocol;
mod reason;
mod serve;
mod tally;
mod tools;
mod wire;

use super::mcp::Health;
use super::{Agent, Capabilities, Plan};
use permissions::Asking;
use teamster_types::request::{AgentInterface, OrphanPolicy, RequestError, RunRequest};

/// The name, for requests that are refused.
const NAME: &str = "opencode";

/// The agent `opencode`.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenCode;

impl Agent for OpenCode {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Option<&'static Capabilities> {
        Some(&capabilities::CAPABILITIES)
    }

    fn plan(&self, request: &RunRequest) -> Result<Plan, RequestError> {
        let servers = Health::new(&mcp::STYLE, &request.mcp_servers)?;
        if is_served(request) {
            let launch = launch::server(request, &servers.names, Asking::Nobody)?;
            let protocol = Box::new(serve::Stream::run(request, servers)?);
            return Ok(Plan { launch, protocol });
        }
        if request.schema.is_some() {
            let why = "`opencode run` has no schema, and nothing would enforce it; the server has";
            return Err(RequestError::Unsupported { agent: NAME.to_owned(), option: "--schema", why: why.to_owned() });
        }
        let launch = launch::launch(request, &servers.names)?;
        let protocol = Box::new(protocol::Stream::new(request, servers));
        Ok(Plan { launch, protocol })
    }

    fn plan_session(&self, request: &RunRequest) -> Result<Option<Plan>, RequestError> {
        if !is_served(request) {
            return Ok(None);
        }
        let servers = Health::new(&mcp::STYLE, &request.mcp_servers)?;
        let launch = launch::server(request, &servers.names, Asking::Caller)?;
        let protocol = Box::new(serve::Stream::session(request, servers)?);
        Ok(Some(Plan { launch, protocol }))
    }
}

/// Whether the server is the form for it. The caller's own arguments are those of `opencode run`; and where what a run
/// leaves in the background is to be kept, the CLI has to go by itself.
fn is_served(request: &RunRequest) -> bool {
    request.interface != AgentInterface::Exec && request.cli_args.is_empty() && request.orphans != OrphanPolicy::Keep
}
