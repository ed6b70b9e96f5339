//! MCP servers as Gemini CLI 0.61.0's settings write them.
//!
//! The settings put variables in the place of `$NAME`; values of environments and headers are looked through a second time
//! when the server starts. Both are kept from it: a secret may hold any characters.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::settings::DOLLAR;
use super::unsupported;
use crate::agent::mcp::{Names, Style, fingerprint};
use crate::launch::{ConfigDirectory, ConfigFile, ConfigFormat, Launch};
use teamster_types::request::{McpEndpoint, McpServer, McpTransport, RequestError, RunRequest, UserMcpServers};

/// Variables that the CLI takes out of a server's environment without a word.
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

/// `mcp_SERVER_TOOL`: no server's name may hold a `_`. What is longer than 63 characters is cut in its middle.
pub(super) static STYLE: Style =
    Style { agent: "gemini", prefix: "mcp_", separator: "_", all: "_*", filler: '-', longest: 25, reserved: &[] };

/// A name that no server has.
const NOBODY: &str = "teamster-none";

/// Servers of no other name are started, wherever they are configured.
pub(super) fn strict(launch: &mut Launch, request: &RunRequest, names: &Names) {
    if request.user_mcp_servers == UserMcpServers::Used {
        return;
    }
    let allowed = request.mcp_servers.keys().map(|name| names.wire(name));
    // Without a value the flag is as good as none.
    let allowed = if request.mcp_servers.is_empty() { vec![NOBODY] } else { allowed.collect() };
    for name in allowed {
        launch.flag("--allowed-mcp-server-names", name);
    }
}

pub(super) fn servers(request: &RunRequest, names: &Names) -> Result<Value, RequestError> {
    let mut servers = Map::new();
    for (name, server) in &request.mcp_servers {
        let mut entry = match &server.transport {
            McpTransport::Stdio { command, args, env, cwd } => {
                if let Some(blocked) = env.keys().find(|name| BLOCKED.contains(&&*name.to_uppercase())) {
                    let why = format!("the CLI takes {blocked} out of the environment of server {name:?}");
                    return Err(unsupported("this variable of an MCP server", why));
                }
                let args: Vec<String> = args.iter().map(|arg| once(arg)).collect();
                let env = twice_each(env.iter().map(|(name, value)| (name.as_str(), value.as_str())));
                let mut entry = json!({"command": once(command), "args": args, "env": env});
                set(&mut entry, "cwd", cwd.as_ref().map(|cwd| once(cwd).into()));
                entry
            }
            McpTransport::Http(endpoint) => json!({"httpUrl": once(&endpoint.url), "headers": headers(endpoint)}),
            McpTransport::Sse(endpoint) => {
                json!({"url": once(&endpoint.url), "type": "sse", "headers": headers(endpoint)})
            }
        };
        let timeout = timeout(name, server, request)?;
        set(&mut entry, "timeout", timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX).into()));
        let tools = |tools: &[String]| tools.iter().map(|tool| once(tool)).collect::<Value>();
        set(&mut entry, "includeTools", server.enabled_tools.as_deref().map(tools));
        let disabled = Some(server.disabled_tools.as_slice()).filter(|tools| !tools.is_empty());
        set(&mut entry, "excludeTools", disabled.map(tools));
        servers.insert(names.wire(name).to_owned(), entry);
    }
    Ok(Value::Object(servers))
}

/// Hands the servers over by the project's settings, in which values of environments and headers are the names of variables.
pub(super) fn merge(launch: &mut Launch, request: &RunRequest, names: &Names) -> Result<(), RequestError> {
    let Value::Object(mut entries) = servers(request, names)? else { return Ok(()) };
    for (name, entry) in &mut entries {
        let mut values = Vec::new();
        for field in ["env", "headers"] {
            let fields = entry.get_mut(field).and_then(Value::as_object_mut);
            // An empty value is no secret, and an empty variable is as good as none.
            let secret = fields.into_iter().flatten().filter(|(_, value)| value.as_str() != Some(""));
            for (_, value) in secret {
                values.extend(value.as_str().map(|text| text.replace(&dollar(), "$")));
                *value = Value::from(values.len());
            }
        }
        // What a server is called with differs where servers do. (By this name the CLI keeps it from servers.)
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

/// There is one for the start and for calls. A server that hangs would hold up the start for 10 minutes, if nothing were
/// said.
fn timeout(name: &str, server: &McpServer, request: &RunRequest) -> Result<Option<Duration>, RequestError> {
    match (server.startup_timeout, server.tool_timeout) {
        (Some(start), Some(tool)) if start != tool => {
            let why = format!("it has one for both; give server {name:?} the same, or one of the two");
            Err(unsupported("different timeouts for the start and the tools of an MCP server", why))
        }
        (None, None) => Ok(Some(request.limits.startup * 3 / 4).filter(|timeout| !timeout.is_zero())),
        (start, tool) => Ok(start.or(tool)),
    }
}

fn headers(endpoint: &McpEndpoint) -> BTreeMap<String, String> {
    let headers = endpoint.all_headers();
    twice_each(headers.iter().map(|(&name, value)| (name, value.as_str())))
}

/// Kept from being filled in once.
fn once(text: &str) -> String {
    text.replace('$', &dollar())
}

/// What the settings fill in as `$`.
fn dollar() -> String {
    format!("${{{DOLLAR}}}")
}

/// Kept from being filled in by the settings, and then by dotenv's rules, where a backslash protects a `$`.
fn twice_each<'a>(values: impl Iterator<Item = (&'a str, &'a str)>) -> BTreeMap<String, String> {
    values.map(|(name, value)| (name.to_owned(), value.replace('$', &format!("\\${{{DOLLAR}}}")))).collect()
}
