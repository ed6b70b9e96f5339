//! The MCP servers of a run, as entries of Codex's configuration.
//!
//! Values of variables and headers are secrets. The configuration contains only the names of environment variables that contain
//! them. A stdio server inherits the variables that its entry names, and few others.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::config::{self, Settings, Table};
use super::error::unsupported;
use crate::agent::mcp::{Names, Style, fingerprint};
use crate::launch::{Arg, ConfigDirectory, ConfigFile, ConfigFormat, Launch};
use teamster_types::request::{
    McpDelivery, McpEndpoint, McpServer, McpTransport, PermissionMode, RequestError, RunRequest,
};

/// Codex drops servers whose names contain other characters, without a warning.
pub(super) static STYLE: Style =
    Style { agent: "codex", prefix: "mcp__", separator: "__", all: "", filler: '_', longest: 40, reserved: &[] };

/// The default time for a server's start. Codex's default is 10 s, which is too short for some servers. The run's watchdog limits
/// the wait.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// The log setting that makes `exec` report that a server failed.
const LOG: (&str, &str) = ("RUST_LOG", "error,codex_mcp::rmcp_client=warn");

/// Variables that Codex, its loader or its shell use. A server cannot have other values of them.
const OWN_VARIABLES: &[&str] =
    &["PATH", "HOME", "PWD", "SHELL", "USER", "TMPDIR", "LANG", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];
const OWN_PREFIXES: &[&str] = &["CODEX_", "OPENAI_", "LD_", "RUST_", "NODE_", "TEAMSTER_MCP_"];

/// Where the agent reports that a server failed to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureChannel {
    /// In the protocol.
    Protocol,
    /// Only in the log.
    Log,
}

/// Whether the agent sends permission requests. If it does, allow rules may name tools other than those of the run's servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApprovalRequests {
    Sent,
    NotSent,
}

/// Adds the servers of a request to the launch and the settings.
pub(super) fn servers(
    launch: &mut Launch,
    settings: &mut Settings,
    request: &RunRequest,
    names: &Names,
    failures: FailureChannel,
    approvals: ApprovalRequests,
) -> Result<(), RequestError> {
    let rules = Rules::read(request, names, approvals)?;
    if request.mcp_servers.is_empty() {
        return Ok(());
    }
    let mut values = Values { taken: &request.env, set: BTreeMap::new() };
    if request.mcp_delivery == McpDelivery::MergeRestore {
        let mut entries = BTreeMap::new();
        for (name, server) in &request.mcp_servers {
            // The variable's name depends on the entry, because other runs see the entry without the variable.
            let plain = entry("", name, server, &rules, &mut Values { taken: &request.env, set: BTreeMap::new() })?;
            let tag = fingerprint(&[names.wire(name), &plain.to_string()]);
            let table = entry(&tag, name, server, &rules, &mut values)?;
            let no_data = || unsupported("this MCP server", format!("{name:?} cannot be written as TOML"));
            entries.insert(names.wire(name).to_owned(), table.to_json().ok_or_else(no_data)?);
        }
        launch.config_files.push(ConfigFile {
            directory: ConfigDirectory::Home(&[("CODEX_HOME", ""), ("HOME", ".codex")]),
            names: &["config.toml"],
            format: ConfigFormat::Toml,
            key: "mcp_servers",
            entries,
            template: "",
        });
    } else {
        let mut table = Table::default();
        for (number, (name, server)) in request.mcp_servers.iter().enumerate() {
            table = table.entry(names.wire(name), entry(&number.to_string(), name, server, &rules, &mut values)?);
        }
        // A table is merged with the servers of the user's configuration.
        settings.set("mcp_servers", table);
    }
    // Otherwise the first turn would wait only about a second, and miss the tools of a slower server.
    let patience = request.mcp_servers.values().map(start_timeout).max().unwrap_or(START_TIMEOUT);
    settings.set("mcp_optional_startup_grace_ms", patience.as_millis());
    let mut hidden = Table::default();
    if failures == FailureChannel::Log {
        let (variable, level) = LOG;
        launch.env(variable, level);
        hidden = hidden.entry(variable, "\"\"");
    }
    for (name, value) in values.set {
        // Commands of the model inherit the environment, and must not see values for servers.
        hidden = hidden.entry(&name, "\"\"");
        launch.env.insert(name, Some(Arg::Text(value)));
    }
    settings.set("shell_environment_policy.set", hidden);
    Ok(())
}

fn start_timeout(server: &McpServer) -> Duration {
    server.startup_timeout.unwrap_or(START_TIMEOUT)
}

fn entry(
    tag: &str,
    name: &str,
    server: &McpServer,
    rules: &Rules<'_>,
    values: &mut Values<'_>,
) -> Result<Table, RequestError> {
    let mut table = match &server.transport {
        McpTransport::Stdio { command, args, env, cwd } => {
            for (variable, value) in env {
                values.variable(name, variable, value)?;
            }
            let table = Table::default()
                .entry("command", config::string(command))
                .entry("args", config::strings(args.iter().map(String::as_str)))
                .entry("env_vars", config::strings(env.keys().map(String::as_str)));
            cwd.iter().fold(table, |table, cwd| table.entry("cwd", config::string(cwd)))
        }
        McpTransport::Http(endpoint) => http(tag, endpoint, values),
        McpTransport::Sse(_) => {
            return Err(unsupported("an MCP server of type sse", "it supports streamable HTTP only; use type http"));
        }
    };
    table = table
        // The entry is merged with the user's server of the same name, which may be disabled.
        .entry("enabled", !rules.denies(name))
        .entry("required", server.required && !rules.denies(name))
        .entry("startup_timeout_sec", format_args!("{:?}", start_timeout(server).as_secs_f64()));
    if let Some(timeout) = server.tool_timeout {
        table = table.entry("tool_timeout_sec", format_args!("{:?}", timeout.as_secs_f64()));
    }
    if let Some(tools) = &server.enabled_tools {
        table = table.entry("enabled_tools", config::strings(tools.iter().map(String::as_str)));
    }
    let disabled: BTreeSet<_> = server.disabled_tools.iter().map(String::as_str).chain(rules.denied_of(name)).collect();
    if !disabled.is_empty() {
        table = table.entry("disabled_tools", config::strings(disabled));
    }
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

fn http(tag: &str, endpoint: &McpEndpoint, values: &mut Values<'_>) -> Table {
    let mut names = Table::default();
    for (index, (header, value)) in endpoint.headers.iter().enumerate() {
        let variable = format!("TEAMSTER_MCP_{tag}_{index}");
        names = names.entry(header, config::string(&variable));
        values.set.insert(variable, value.clone());
    }
    let table = Table::default().entry("url", config::string(&endpoint.url)).entry("env_http_headers", names);
    let Some(token) = &endpoint.bearer_token else { return table };
    let variable = format!("TEAMSTER_MCP_{tag}_TOKEN");
    let table = table.entry("bearer_token_env_var", config::string(&variable));
    values.set.insert(variable, token.clone());
    table
}

/// Returns the server and the reason, if a line of the log reports that a server failed.
pub(super) fn failed(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once("MCP server startup failed server_name=\"")?;
    rest.split_once("\" error=")
}

/// The environment variables that contain values for servers.
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

/// The rules for tools of the run's servers: which ones need no approval, and which ones the model does not receive.
struct Rules<'a> {
    all: bool,
    allowed: Vec<Tools<'a>>,
    denied: Vec<Tools<'a>>,
}

/// A server, and one of its tools; `None` for all of them.
type Tools<'a> = (&'a str, Option<&'a str>);

/// The tools other than MCP tools for which the agent requests permission (`app_server/approvals.rs`).
const REQUESTED_TOOLS: [&str; 2] = ["command_execution", "file_change"];

impl<'a> Rules<'a> {
    fn read(request: &'a RunRequest, names: &'a Names, approvals: ApprovalRequests) -> Result<Self, RequestError> {
        let own = |rule: &'a str| names.named(rule).map(|named| (named.server, named.tool));
        let mut allowed = Vec::new();
        for rule in &request.permissions.allow {
            match own(rule) {
                Some(tools) => allowed.push(tools),
                None if approvals == ApprovalRequests::Sent && can_be_requested(rule) => {}
                None if approvals == ApprovalRequests::Sent => {
                    let why = format!(
                        "it requests permission for command_execution, file_change and mcp__SERVER__TOOL, not {rule:?}"
                    );
                    return Err(unsupported("permissions.allow", why));
                }
                None => {
                    let why = format!("only mcp__SERVER and mcp__SERVER__TOOL of the run's own servers, not {rule:?}");
                    return Err(unsupported("permissions.allow", why));
                }
            }
        }
        let denied = request.permissions.deny.iter().map(|rule| {
            own(rule).ok_or_else(|| {
                let why = format!(
                    "only mcp__SERVER and mcp__SERVER__TOOL of the run's own servers, not {rule:?}: it does not request \
                     permission for actions that its sandbox permits, so another rule could not be enforced"
                );
                unsupported("permissions.deny", why)
            })
        });
        let denied = denied.collect::<Result<_, _>>()?;
        Ok(Self { all: request.permissions.mode == PermissionMode::Full, allowed, denied })
    }

    fn of(&self, server: &str) -> Vec<Option<&'a str>> {
        self.allowed.iter().filter(|(name, _)| *name == server).map(|(_, tool)| *tool).collect()
    }

    /// Returns whether a whole server is denied.
    fn denies(&self, server: &str) -> bool {
        self.denied.contains(&(server, None))
    }

    /// Returns the denied tools of a server.
    fn denied_of(&self, server: &str) -> impl Iterator<Item = &'a str> {
        self.denied.iter().filter(move |(name, _)| *name == server).filter_map(|(_, tool)| *tool)
    }
}

/// Returns whether the agent requests permission for the tools of a rule. The rule's tool may contain `*`.
fn can_be_requested(rule: &str) -> bool {
    let tool = rule.split('(').next().unwrap_or_default().trim();
    tool.starts_with("mcp__") || tool.contains('*') || REQUESTED_TOOLS.contains(&tool)
}
