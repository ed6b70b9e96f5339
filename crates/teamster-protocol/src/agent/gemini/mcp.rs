//! MCP servers as Gemini CLI 0.61.0's settings write them.
//!
//! The settings put variables in the place of `$NAME`; values of environments and headers are looked through a second time
//! when the server starts. Both are kept from it: a secret may hold any characters.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::settings::DOLLAR;
use super::unsupported;
use crate::request::{McpServer, RequestError, RunRequest};

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

pub(super) fn servers(request: &RunRequest) -> Result<Value, RequestError> {
    // A server that hangs holds up the start for so long (10 minutes, if nothing is said), and its calls are given up
    // after that.
    let timeout = request.limits.startup * 3 / 4;
    let mut servers = Map::new();
    for (name, server) in &request.mcp_servers {
        let mut entry = match server {
            McpServer::Stdio { command, args, env } => {
                if let Some(blocked) = env.keys().find(|name| BLOCKED.contains(&&*name.to_uppercase())) {
                    let why = format!("the CLI takes {blocked} out of the environment of server \"{name}\"");
                    return Err(unsupported("this variable of an MCP server", why));
                }
                let args: Vec<String> = args.iter().map(|arg| once(arg)).collect();
                json!({"command": once(command), "args": args, "env": twice_each(env)})
            }
            McpServer::Http { url, headers } => json!({"httpUrl": once(url), "headers": twice_each(headers)}),
            McpServer::Sse { url, headers } => json!({"url": once(url), "type": "sse", "headers": twice_each(headers)}),
        };
        if let Some(fields) = entry.as_object_mut().filter(|_| !timeout.is_zero()) {
            fields.insert("timeout".to_owned(), u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX).into());
        }
        servers.insert(name.clone(), entry);
    }
    Ok(Value::Object(servers))
}

/// Kept from being filled in once.
fn once(text: &str) -> String {
    text.replace('$', &format!("${{{DOLLAR}}}"))
}

/// Kept from being filled in by the settings, and then by dotenv's rules, where a backslash protects a `$`.
fn twice_each(values: &BTreeMap<String, String>) -> BTreeMap<&str, String> {
    values.iter().map(|(name, value)| (name.as_str(), value.replace('$', &format!("\\${{{DOLLAR}}}")))).collect()
}
