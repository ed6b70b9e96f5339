//! MCP servers in the settings of Gemini CLI 0.61.0.
//!
//! The CLI replaces `$NAME` in settings by the variable's value. In values of environments and headers it does so a second time when
//! the server starts. All `$` are escaped, because a secret may contain any character.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::error::unsupported;
use crate::agent::mcp::{Names, Style, fingerprint};
use crate::launch::{ConfigDirectory, ConfigFile, ConfigFormat, Launch};
use teamster_types::request::{McpEndpoint, McpServer, McpTransport, RequestError, RunRequest, UserMcpServers};

/// Variables that the CLI silently removes from a server's environment.
const BLOCKED: &[&str] = &[
    "NODE_OPTIONS",
    "NODE_CLI_FLAGS",
    "_FORCE_NODE_OPTIONS",
    "NODE_PATH",
    "ELECTRON_RUN_AS_NODE",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYOPT",
    "RUBYLIB",
    "PERL5OPT",
    "PERL5LIB",
    "PERL5DB",
    "LD_PRELOAD",
    "LD_AUDIT",
    "LD_DEBUG",
    "LD_PROFILE",
    "LD_LIBRARY_PATH",
    "BASH_ENV",
    "ENV",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "CLASSPATH",
    "DOTNET_STARTUP_HOOKS",
    "CORECLR_PROFILER_PATH",
    "CORECLR_ENABLE_PROFILING",
];

/// A tool's name is `mcp_SERVER_TOOL`, so a server's name must not contain `_`. The CLI shortens names of more than 63 characters.
pub(super) static STYLE: Style =
    Style { agent: "gemini", prefix: "mcp_", separator: "_", all: "_*", filler: '-', longest: 25, reserved: &[] };

/// A name that no server has.
const NO_SERVER: &str = "teamster-none";

/// An environment variable whose value is `$`.
pub(super) const DOLLAR: &str = "TEAMSTER_DOLLAR";

/// Restricts the CLI to the servers of the request, if the request excludes the user's servers.
pub(super) fn strict(launch: &mut Launch, request: &RunRequest, names: &Names) {
    if request.user_mcp_servers == UserMcpServers::Used {
        return;
    }
    let allowed = request.mcp_servers.keys().map(|name| names.wire(name));
    // The CLI ignores the flag if it has no value.
    let allowed = if request.mcp_servers.is_empty() { vec![NO_SERVER] } else { allowed.collect() };
    for name in allowed {
        launch.flag("--allowed-mcp-server-names", name);
    }
}

/// Returns the field `mcpServers` of the settings.
pub(super) fn servers(request: &RunRequest, names: &Names) -> Result<Value, RequestError> {
    let mut servers = Map::new();
    for (name, server) in &request.mcp_servers {
        let mut entry = match &server.transport {
            McpTransport::Stdio { command, args, env, cwd } => {
                if let Some(blocked) = env.keys().find(|name| BLOCKED.contains(&&*name.to_uppercase())) {
                    let why = format!("the CLI removes {blocked} from the environment of server {name:?}");
                    return Err(unsupported("this variable of an MCP server", why));
                }
                let args: Vec<String> = args.iter().map(|arg| escaped(arg)).collect();
                let env = escaped_values(env.iter().map(|(name, value)| (name.as_str(), value.as_str())));
                let mut entry = json!({"command": escaped(command), "args": args, "env": env});
                set(&mut entry, "cwd", cwd.as_ref().map(|cwd| escaped(cwd).into()));
                entry
            }
            McpTransport::Http(endpoint) => json!({"httpUrl": escaped(&endpoint.url), "headers": headers(endpoint)}),
            McpTransport::Sse(endpoint) => {
                json!({"url": escaped(&endpoint.url), "type": "sse", "headers": headers(endpoint)})
            }
        };
        let timeout = timeout(name, server, request)?;
        set(&mut entry, "timeout", timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX).into()));
        let tools = |tools: &[String]| tools.iter().map(|tool| escaped(tool)).collect::<Value>();
        set(&mut entry, "includeTools", server.enabled_tools.as_deref().map(tools));
        let disabled = Some(server.disabled_tools.as_slice()).filter(|tools| !tools.is_empty());
        set(&mut entry, "excludeTools", disabled.map(tools));
        servers.insert(names.wire(name).to_owned(), entry);
    }
    Ok(Value::Object(servers))
}

/// Adds the servers to the project's settings. Values of environments and headers are replaced by the names of variables.
pub(super) fn merge(launch: &mut Launch, request: &RunRequest, names: &Names) -> Result<(), RequestError> {
    let Value::Object(mut entries) = servers(request, names)? else { return Ok(()) };
    for (name, entry) in &mut entries {
        let mut values = Vec::new();
        for field in ["env", "headers"] {
            let fields = entry.get_mut(field).and_then(Value::as_object_mut);
            // An empty value is not a secret. The CLI treats an empty variable like a missing one.
            let secret = fields.into_iter().flatten().filter(|(_, value)| value.as_str() != Some(""));
            for (_, value) in secret {
                values.extend(value.as_str().map(|text| text.replace(&dollar(), "$")));
                *value = Value::from(values.len());
            }
        }
        // The tag differs if the entry differs. The CLI does not pass variables with SECRET in their names to servers.
        let tag = fingerprint(&[name, &entry.to_string()]);
        let variable = |number: u64| format!("TEAMSTER_MCP_SECRET_{tag}_{number}");
        for field in ["env", "headers"] {
            for (_, value) in entry.get_mut(field).and_then(Value::as_object_mut).into_iter().flatten() {
                if let Some(number) = value.as_u64() {
                    *value = format!("${{{}}}", variable(number)).into();
                }
            }
        }
        for (number, value) in (1..).zip(values) {
            launch.env(variable(number), value);
        }
    }
    launch.config_files.push(ConfigFile {
        directory: ConfigDirectory::Project(".gemini"),
        names: &["settings.json"],
        format: ConfigFormat::Json,
        key: "mcpServers",
        entries: entries.into_iter().collect(),
        template: "",
    });
    Ok(())
}

fn set(entry: &mut Value, field: &str, value: Option<Value>) {
    if let (Some(fields), Some(value)) = (entry.as_object_mut(), value) {
        fields.insert(field.to_owned(), value);
    }
}

/// Returns the timeout of a server, which applies to its start and to its calls. By default it is three quarters of the run's startup
/// limit. The CLI's default would delay the start by 10 minutes if the server hangs.
fn timeout(name: &str, server: &McpServer, request: &RunRequest) -> Result<Option<Duration>, RequestError> {
    match (server.startup_timeout, server.tool_timeout) {
        (Some(start), Some(tool)) if start != tool => {
            let why =
                format!("the agent has one timeout for both; set the same for server {name:?}, or only one of them");
            Err(unsupported("different timeouts for the start and the tools of an MCP server", why))
        }
        (None, None) => Ok(Some(request.limits.startup * 3 / 4).filter(|timeout| !timeout.is_zero())),
        (start, tool) => Ok(start.or(tool)),
    }
}

fn headers(endpoint: &McpEndpoint) -> BTreeMap<String, String> {
    let headers = endpoint.all_headers();
    escaped_values(headers.iter().map(|(&name, value)| (name, value.as_str())))
}

/// Escapes a text for one replacement of variables.
fn escaped(text: &str) -> String {
    text.replace('$', &dollar())
}

/// Returns the text that the CLI replaces by `$`.
fn dollar() -> String {
    format!("${{{DOLLAR}}}")
}

/// Escapes values for two replacements: that of the settings, and then that of dotenv, in which a backslash escapes a `$`.
fn escaped_values<'a>(values: impl Iterator<Item = (&'a str, &'a str)>) -> BTreeMap<String, String> {
    values.map(|(name, value)| (name.to_owned(), value.replace('$', &format!("\\${{{DOLLAR}}}")))).collect()
}
