//! MCP servers of a run, as entries of Codex's configuration for this run alone.
//!
//! Values of variables and headers are secrets: the configuration holds only the names of variables in which they travel. A stdio server gets the variables that it names and hardly any others.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::config::{self, Settings, Table};
use super::unsupported;
use crate::agent::mcp::{Names, Style, fingerprint};
use crate::launch::{Arg, ConfigDirectory, ConfigFile, ConfigFormat, Launch};
use teamster_types::request::{
    McpDelivery, McpEndpoint, McpServer, McpTransport, PermissionMode, RequestError, RunRequest,
};

/// Names with other characters are dropped without a word (trap 10).
pub(super) static STYLE: Style =
    Style { agent: "codex", prefix: "mcp__", separator: "__", all: "", filler: '_', longest: 40, reserved: &[] };

/// A server may need more than the 10 s that Codex gives it: the run's own watchdog is there too.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// Where it says that a server failed: `exec` says it nowhere else.
const LOG: (&str, &str) = ("RUST_LOG", "error,codex_mcp::rmcp_client=warn");

/// Variables that Codex itself, its loader or its shell go by: for a server they cannot be others.
const OWN_VARIABLES: &[&str] =
    &["PATH", "HOME", "PWD", "SHELL", "USER", "TMPDIR", "LANG", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];
const OWN_PREFIXES: &[&str] = &["CODEX_", "OPENAI_", "LD_", "RUST_", "NODE_", "TEAMSTER_MCP_"];

/// Who tells that a server did not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// The protocol.
    ByProtocol,
    /// Nobody but the log.
    ByLog,
}

/// Whether the agent asks for leave, so that rules for other tools than those of the run's servers can answer it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asks {
    ForLeave,
    ForNothing,
}

pub(super) fn servers(
    launch: &mut Launch,
    settings: &mut Settings,
    request: &RunRequest,
    names: &Names,
    told: Told,
    asks: Asks,
) -> Result<(), RequestError> {
    let rules = Rules::read(request, names, asks)?;
    if request.mcp_servers.is_empty() {
        return Ok(());
    }
    let mut values = Values { taken: &request.env, set: BTreeMap::new() };
    if request.mcp_delivery == McpDelivery::MergeRestore {
        let mut entries = BTreeMap::new();
        for (name, server) in &request.mcp_servers {
            // What a variable is for stands in its name: others, who see the entry too, do not have it.
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
        // A table merges with the servers of the user's own configuration.
        settings.set("mcp_servers", table);
    }
    // The first turn would wait for about a second only, and be without the tools of a slower server (trap 9).
    let patience = request.mcp_servers.values().map(start_timeout).max().unwrap_or(START_TIMEOUT);
    settings.set("mcp_optional_startup_grace_ms", patience.as_millis());
    let mut hidden = Table::default();
    if told == Told::ByLog {
        let (variable, level) = LOG;
        launch.env(variable, level);
        hidden = hidden.entry(variable, "\"\"");
    }
    for (name, value) in values.set {
        // Commands of the model get the whole environment: not what is meant for a server.
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
            return Err(unsupported("an MCP server of type sse", "it speaks streamable HTTP only; use type http"));
        }
    };
    table = table
        // Fields of a server of the user's with the same name are there too: one that is switched off would stay off.
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
    for (place, (header, value)) in endpoint.headers.iter().enumerate() {
        let variable = format!("TEAMSTER_MCP_{tag}_{place}");
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

/// What a line of the log says of a server that failed: its name, and why.
pub(super) fn failed(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once("MCP server startup failed server_name=\"")?;
    rest.split_once("\" error=")
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

/// Which tools of the run's servers need no approval, which a run could not give; and which the model does not get.
struct Rules<'a> {
    all: bool,
    allowed: Vec<Tools<'a>>,
    denied: Vec<Tools<'a>>,
}

/// A server, and one of its tools; `None` for all of them.
type Tools<'a> = (&'a str, Option<&'a str>);

/// What the agent asks for, by the name of the tool, beside tools of MCP servers (`app_server/approvals.rs`).
const ASKED_FOR: [&str; 2] = ["command_execution", "file_change"];

impl<'a> Rules<'a> {
    fn read(request: &'a RunRequest, names: &'a Names, asks: Asks) -> Result<Self, RequestError> {
        let own = |rule: &'a str| names.named(rule).map(|named| (named.server, named.tool));
        let mut allowed = Vec::new();
        for rule in &request.permissions.allow {
            match own(rule) {
                Some(tools) => allowed.push(tools),
                None if asks == Asks::ForLeave && is_asked_for(rule) => {}
                None if asks == Asks::ForLeave => {
                    let why = format!("it asks for command_execution, file_change and mcp__SERVER__TOOL, not {rule:?}");
                    return Err(unsupported("--allow-tool", why));
                }
                None => {
                    let why = format!("only mcp__SERVER and mcp__SERVER__TOOL of the run's own servers, not {rule:?}");
                    return Err(unsupported("--allow-tool", why));
                }
            }
        }
        let denied = request.permissions.deny.iter().map(|rule| {
            own(rule).ok_or_else(|| {
                let why = format!(
                    "only mcp__SERVER and mcp__SERVER__TOOL of the run's own servers, not {rule:?}: it asks for nothing that \
                     its sandbox lets through, so that no other rule would hold"
                );
                unsupported("--deny-tool", why)
            })
        });
        let denied = denied.collect::<Result<_, _>>()?;
        Ok(Self { all: request.permissions.mode == PermissionMode::Full, allowed, denied })
    }

    fn of(&self, server: &str) -> Vec<Option<&'a str>> {
        self.allowed.iter().filter(|(name, _)| *name == server).map(|(_, tool)| *tool).collect()
    }

    /// Whether a server is denied with all of its tools.
    fn denies(&self, server: &str) -> bool {
        self.denied.contains(&(server, None))
    }

    /// The tools of a server that are denied.
    fn denied_of(&self, server: &str) -> impl Iterator<Item = &'a str> {
        self.denied.iter().filter(move |(name, _)| *name == server).filter_map(|(_, tool)| *tool)
    }
}

/// Whether a rule is about what the agent asks for: its name may hold `*`.
fn is_asked_for(rule: &str) -> bool {
    let tool = rule.split('(').next().unwrap_or_default().trim();
    tool.starts_with("mcp__") || tool.contains('*') || ASKED_FOR.contains(&tool)
}
