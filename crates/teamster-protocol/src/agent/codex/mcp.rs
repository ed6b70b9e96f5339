//! MCP servers of a run, as entries of Codex's configuration for this run alone.
//!
//! Values of variables and headers are secrets: the configuration in argv holds only the names of variables in which they
//! travel. A stdio server gets the variables that it names and hardly any others.

use std::collections::BTreeMap;

use super::config::{self, Table};
use super::unsupported;
use crate::launch::{Arg, Launch};
use crate::request::{McpServer, PermissionMode, RequestError, RunRequest};

/// A server may need more than the 10 s that Codex gives it: the run's own watchdog is there too.
const START_TIMEOUT_SECONDS: u32 = 60;

/// Variables that Codex itself, its loader or its shell go by: for a server they cannot be others.
const OWN_VARIABLES: &[&str] =
    &["PATH", "HOME", "PWD", "SHELL", "USER", "TMPDIR", "LANG", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];
const OWN_PREFIXES: &[&str] = &["CODEX_", "OPENAI_", "LD_", "RUST_", "NODE_", "TEAMSTER_MCP_"];

pub(super) fn servers(launch: &mut Launch, request: &RunRequest) -> Result<(), RequestError> {
    let rules = Rules::read(request)?;
    if request.mcp_servers.is_empty() {
        return Ok(());
    }
    let mut table = Table::default();
    let mut values = Values { taken: &request.env, set: BTreeMap::new() };
    for (number, (name, server)) in request.mcp_servers.iter().enumerate() {
        table = table.entry(name, entry(number, name, server, &rules, &mut values)?);
    }
    // A table merges with the servers of the user's own configuration, and takes names with dots, which keys do not.
    config::set(launch, "mcp_servers", table);
    let mut hidden = Table::default();
    for (name, value) in values.set {
        // Commands of the model get the whole environment: not what is meant for a server.
        hidden = hidden.entry(&name, "\"\"");
        launch.env.insert(name, Some(Arg::Text(value)));
    }
    if !hidden.is_empty() {
        config::set(launch, "shell_environment_policy.set", hidden);
    }
    Ok(())
}

fn entry(
    number: usize,
    name: &str,
    server: &McpServer,
    rules: &Rules<'_>,
    values: &mut Values<'_>,
) -> Result<Table, RequestError> {
    let mut table = match server {
        McpServer::Stdio { command, args, env } => {
            for (variable, value) in env {
                values.variable(name, variable, value)?;
            }
            Table::default()
                .entry("command", config::string(command))
                .entry("args", config::strings(args.iter().map(String::as_str)))
                .entry("env_vars", config::strings(env.keys().map(String::as_str)))
        }
        McpServer::Http { url, headers } => {
            let mut names = Table::default();
            for (place, (header, value)) in headers.iter().enumerate() {
                let variable = format!("TEAMSTER_MCP_{number}_{place}");
                names = names.entry(header, config::string(&variable));
                values.set.insert(variable, value.clone());
            }
            Table::default().entry("url", config::string(url)).entry("env_http_headers", names)
        }
        McpServer::Sse { .. } => {
            return Err(unsupported("an MCP server of type sse", "it speaks streamable HTTP only; use type http"));
        }
    };
    // Without it a server that fails is left out without a word, and a slow one misses the first turn.
    table = table.entry("required", "true").entry("startup_timeout_sec", START_TIMEOUT_SECONDS);
    let allowed = rules.of(name);
    if rules.all || allowed.contains(&None) {
        table = table.entry("default_tools_approval_mode", "\"approve\"");
    } else if !allowed.is_empty() {
        let approve = || Table::default().entry("approval_mode", "\"approve\"");
        let tools = allowed.into_iter().flatten().fold(Table::default(), |tools, tool| tools.entry(tool, approve()));
        table = table.entry("tools", tools);
    }
    Ok(table)
}

/// Variables with which values travel to servers.
struct Values<'a> {
    taken: &'a BTreeMap<String, String>,
    set: BTreeMap<String, String>,
}

impl Values<'_> {
    fn variable(&mut self, server: &str, variable: &str, value: &str) -> Result<(), RequestError> {
        let refuse = |why: &str| {
            let why = format!("server \"{server}\", variable {variable}: {why}");
            Err(unsupported("this environment of an MCP server", why))
        };
        let own = OWN_VARIABLES.iter().any(|own| own.eq_ignore_ascii_case(variable))
            || OWN_PREFIXES.iter().any(|prefix| variable.to_ascii_uppercase().starts_with(prefix));
        if own {
            return refuse("it would change the agent itself, through whose environment values go to servers");
        }
        let other = self.set.get(variable).or_else(|| self.taken.get(variable));
        if other.is_some_and(|other| other != value) {
            return refuse("it has another value elsewhere, and all values share one environment");
        }
        if !self.taken.contains_key(variable) {
            self.set.insert(variable.to_owned(), value.to_owned());
        }
        Ok(())
    }
}

/// Which MCP tools need no approval, which a run could not give.
struct Rules<'a> {
    all: bool,
    /// By server; `None` for all of its tools.
    allowed: Vec<(&'a str, Option<&'a str>)>,
}

impl<'a> Rules<'a> {
    fn read(request: &'a RunRequest) -> Result<Self, RequestError> {
        let rule = |rule: &'a String| {
            let names = rule.strip_prefix("mcp__").and_then(|rest| {
                let servers =
                    request.mcp_servers.keys().filter_map(|server| match rest.strip_prefix(server.as_str())? {
                        "" => Some((server.as_str(), None)),
                        tool => Some((server.as_str(), Some(tool.strip_prefix("__").filter(|tool| !tool.is_empty())?))),
                    });
                // With servers `a` and `a__b`, `mcp__a__b__c` is tool `c` of `a__b`.
                servers.max_by_key(|(server, _)| server.len())
            });
            names.ok_or_else(|| {
                let why = format!("only mcp__SERVER and mcp__SERVER__TOOL of the run's own servers, not {rule:?}");
                unsupported("--allow-tool", why)
            })
        };
        let allowed = request.permissions.allow.iter().map(rule).collect::<Result<_, _>>()?;
        Ok(Self { all: request.permissions.mode == PermissionMode::Full, allowed })
    }

    fn of(&self, server: &str) -> Vec<Option<&'a str>> {
        self.allowed.iter().filter(|(name, _)| *name == server).map(|(_, tool)| *tool).collect()
    }
}
