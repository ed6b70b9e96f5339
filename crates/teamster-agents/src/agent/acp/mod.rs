//! Any agent that supports the Agent Client Protocol (ACP), version 1, over its standard streams.
//!
//! A run is one turn of a session. A `dialect` describes how a known agent differs. Of an unknown agent only its own reports are
//! known. The protocol leaves some decisions to the agent, and nothing is guaranteed for them: which calls need permission, what a
//! mode permits, and what a slash at the start of a prompt does.

mod client;

mod call;
mod calls;
mod capabilities;
pub(super) mod dialect;
mod failure;
mod messages;
mod modes;
mod params;
mod permissions;
mod questions;
mod settings;
mod usage;
mod wire;

pub(super) use call::{Call, Tool, kind_of};
pub(super) use client::Client;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Agent, Capabilities, Plan};
use crate::launch::{Launch, Stdin};
use dialect::UnknownAgent;
use teamster_types::request::{McpServer, RequestError, RunRequest};

/// An agent that supports ACP: `acp`, whose program each request names, or an agent with its own name and program.
///
/// ```
/// use teamster_agents::agent::acp::Acp;
///
/// let agent = Acp::named("goose", "goose").arg("acp").env("GOOSE_MODE", "approve");
/// ```
#[derive(Clone)]
pub struct Acp {
    name: Cow<'static, str>,
    program: Option<PathBuf>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
}

impl Acp {
    /// Returns the agent `acp`, whose program each request names.
    pub const fn any() -> Self {
        Self { name: Cow::Borrowed("acp"), program: None, args: Vec::new(), env: BTreeMap::new() }
    }

    /// Returns an agent with this name and program. The program is a path, or a name that is searched in PATH.
    pub fn named(name: impl Into<String>, program: impl Into<PathBuf>) -> Self {
        Self { name: Cow::Owned(name.into()), program: Some(program.into()), ..Self::any() }
    }

    /// Adds an argument. It precedes those of the request.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.args.push(argument.into());
        self
    }

    /// Sets an environment variable. A variable of the request with the same name overrides it.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    fn launch(&self, request: &RunRequest) -> Result<Launch, RequestError> {
        let Some(program) = request.cli_path.clone().or_else(|| self.program.clone()) else {
            return Err(RequestError::Unsupported {
                agent: self.name.to_string(),
                option: "a request without `cli_path`",
                why: "name the program that supports ACP there, and its arguments in `cli_args`".to_owned(),
            });
        };
        let mut launch = Launch::new(program);
        launch.cwd.clone_from(&request.cwd);
        launch.stdin = Stdin::Open;
        for argument in self.args.iter().chain(&request.cli_args) {
            launch.arg(argument.as_str());
        }
        for (name, value) in self.env.iter().chain(&request.env) {
            launch.env(name.as_str(), value.as_str());
        }
        Ok(launch)
    }

    fn plan_for(&self, request: &RunRequest, is_session: bool) -> Result<Plan, RequestError> {
        let launch = self.launch(request)?;
        let servers: Vec<(String, McpServer)> = request.mcp_servers.clone().into_iter().collect();
        let names = servers.iter().map(|(name, _)| name.clone()).collect();
        let dialect = UnknownAgent { agent: self.name.to_string(), servers: names };
        let client = Client::new(Box::new(dialect), request, servers, is_session)?;
        Ok(Plan { launch, protocol: Box::new(client) })
    }
}

impl Agent for Acp {
    fn name(&self) -> &str {
        &self.name
    }

    fn program(&self) -> Option<&Path> {
        self.program.as_deref()
    }

    fn capabilities(&self) -> Option<&'static Capabilities> {
        Some(&capabilities::CAPABILITIES)
    }

    fn plan(&self, request: &RunRequest) -> Result<Plan, RequestError> {
        self.plan_for(request, false)
    }

    fn plan_session(&self, request: &RunRequest) -> Result<Option<Plan>, RequestError> {
        self.plan_for(request, true).map(Some)
    }
}

impl std::fmt::Debug for Acp {
    /// Shows no arguments and no values, because they may be secrets.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Acp")
            .field("name", &self.name)
            .field("program", &self.program)
            .field("args", &self.args.len())
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .finish()
    }
}
