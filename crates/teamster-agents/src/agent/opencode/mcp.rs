//! MCP servers in OpenCode 1.18.33's configuration.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::config::{list, object, quote, secret};
use super::error::{NAME, unsupported};
use crate::agent::mcp::{Names, Style, fingerprint};
use crate::launch::{ConfigDirectory, ConfigFile, ConfigFormat, Launch};
use teamster_types::request::{McpServer, McpTransport, ProjectTrust, RequestError, RunRequest};

/// The names of tools: `SERVER_TOOL`. A server name cannot contain `_`.
pub(super) static STYLE: Style =
    Style { agent: NAME, prefix: "", separator: "_", all: "_*", filler: '-', longest: 40, reserved: &[] };

/// Returns the servers as JSON text, if there are any.
pub(super) fn servers(
    launch: &mut Launch,
    request: &RunRequest,
    names: &Names,
) -> Result<Option<String>, RequestError> {
    let mut servers = Vec::new();
    for (name, server) in &request.mcp_servers {
        servers.push((quote(names.wire(name)), entry(launch, name, server)?));
    }
    Ok((!servers.is_empty()).then(|| object(servers)))
}

/// Adds the servers to the project's configuration file.
pub(super) fn merge(launch: &mut Launch, request: &RunRequest, names: &Names) -> Result<(), RequestError> {
    if request.project_trust == ProjectTrust::Untrusted {
        let why = "the CLI does not read the configuration of an untrusted project";
        return Err(unsupported("mcp_delivery=merge-restore with project_trust=untrusted", why));
    }
    let mut entries = BTreeMap::new();
    for (name, server) in &request.mcp_servers {
        let before = launch.files.len();
        let mut text = entry(launch, name, server)?;
        let numbers: Vec<_> = (before + 1..=launch.files.len()).enumerate().collect();
        let reference = |number: &usize| format!("{{env:TEAMSTER_FILE_{number}}}");
        let mut normalized = text.clone();
        for (index, number) in &numbers {
            normalized = normalized.replace(&format!("{{file:{}}}", reference(number)), &format!("#{index}"));
        }
        // The name of a server's variables depends on its entry. Other processes also read the entry, and do not have these
        // variables.
        let tag = fingerprint(&[names.wire(name), &normalized]);
        for (index, number) in &numbers {
            let variable = format!("TEAMSTER_FILE_{tag}_{index}");
            text = text.replace(&reference(number), &format!("{{env:{variable}}}"));
            if let Some(path) = launch.env.remove(&format!("TEAMSTER_FILE_{number}")) {
                launch.env.insert(variable, path);
            }
        }
        let invalid = |_| unsupported("this MCP server", format!("{name:?} cannot be written as JSON"));
        let normalized: Value = serde_json::from_str(&normalized).map_err(invalid)?;
        if has_reference(&normalized) {
            let why = format!("the CLI would replace {{env:}} and {{file:}} in server {name:?}");
            return Err(unsupported("mcp_delivery=merge-restore", why));
        }
        entries.insert(names.wire(name).to_owned(), serde_json::from_str(&text).map_err(invalid)?);
    }
    launch.config_files.push(ConfigFile {
        directory: ConfigDirectory::Project(""),
        names: &["opencode.json", "opencode.jsonc"],
        format: ConfigFormat::Json,
        key: "mcp",
        entries,
        // 1.18.33 adds the schema if it is missing.
        template: "{\"$schema\": \"https://opencode.ai/config.json\"}\n",
    });
    Ok(())
}

/// Returns whether the CLI would replace a part of a value.
fn has_reference(value: &Value) -> bool {
    let is = |text: &str| text.contains("{env:") || text.contains("{file:");
    match value {
        Value::String(text) => is(text),
        Value::Array(values) => values.iter().any(has_reference),
        Value::Object(fields) => fields.iter().any(|(name, value)| is(name) || has_reference(value)),
        _ => false,
    }
}

/// Returns the entry of a server. Values of variables and headers are in private files, because every tool can read the
/// configuration in its environment.
fn entry(launch: &mut Launch, name: &str, server: &McpServer) -> Result<String, RequestError> {
    let mut fields = vec![(quote("enabled"), "true".to_owned())];
    match &server.transport {
        McpTransport::Stdio { command, args, env, cwd } => {
            let words = std::iter::once(command).chain(args).map(String::as_str);
            let values: Vec<_> = env.iter().map(|(name, value)| (quote(name), secret(launch, value))).collect();
            fields.push((quote("type"), quote("local")));
            fields.push((quote("command"), list(words)));
            fields.push((quote("environment"), object(values)));
            fields.extend(cwd.iter().map(|cwd| (quote("cwd"), quote(cwd))));
        }
        McpTransport::Http(endpoint) | McpTransport::Sse(endpoint) => {
            let headers = endpoint.all_headers();
            let values: Vec<_> = headers.iter().map(|(name, value)| (quote(name), secret(launch, value))).collect();
            fields.push((quote("type"), quote("remote")));
            fields.push((quote("url"), quote(&endpoint.url)));
            fields.push((quote("headers"), object(values)));
        }
    }
    let timeout = timeout(name, server)?;
    fields.extend(timeout.map(|timeout| (quote("timeout"), timeout.as_millis().to_string())));
    Ok(object(fields))
}

/// Returns the timeout of a server. OpenCode has one for its start and its calls.
fn timeout(name: &str, server: &McpServer) -> Result<Option<Duration>, RequestError> {
    match (server.startup_timeout, server.tool_timeout) {
        (Some(start), Some(tool)) if start != tool => Err(unsupported(
            "different timeouts for the start and the tools of an MCP server",
            format!("the agent has one timeout for both; set the same for server {name:?}, or only one of them"),
        )),
        (start, tool) => Ok(start.or(tool)),
    }
}
