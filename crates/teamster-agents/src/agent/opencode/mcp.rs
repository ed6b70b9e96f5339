//! MCP servers as OpenCode 1.18.33's configuration writes them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::NAME;
use super::config::{list, object, quote, secret};
use crate::agent::mcp::{Names, Style, fingerprint};
use crate::launch::{ConfigDirectory, ConfigFile, ConfigFormat, Launch};
use teamster_types::request::{McpServer, McpTransport, ProjectTrust, RequestError, RunRequest};

/// `SERVER_TOOL`: no server's name may hold a `_`.
pub(super) static STYLE: Style =
    Style { agent: NAME, prefix: "", separator: "_", all: "_*", filler: '-', longest: 40, reserved: &[] };

/// The servers as JSON text, if there are any.
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

/// Hands the servers over by the project's configuration.
pub(super) fn merge(launch: &mut Launch, request: &RunRequest, names: &Names) -> Result<(), RequestError> {
    if request.project_trust == ProjectTrust::Untrusted {
        let why = "the project's configuration is not read then";
        return Err(unsupported("--mcp-delivery merge-restore with --project-trust untrusted", why.to_owned()));
    }
    let mut entries = BTreeMap::new();
    for (name, server) in &request.mcp_servers {
        let before = launch.files.len();
        let mut text = entry(launch, name, server)?;
        let numbers: Vec<_> = (before + 1..=launch.files.len()).enumerate().collect();
        let own = |number: &usize| format!("{{env:TEAMSTER_FILE_{number}}}");
        let mut words = text.clone();
        for (place, number) in &numbers {
            words = words.replace(&format!("{{file:{}}}", own(number)), &format!("#{place}"));
        }
        // What a server is called with differs where servers do: others, who see the entry too, do not have its variables.
        let tag = fingerprint(&[names.wire(name), &words]);
        for (place, number) in &numbers {
            let variable = format!("TEAMSTER_FILE_{tag}_{place}");
            text = text.replace(&own(number), &format!("{{env:{variable}}}"));
            if let Some(path) = launch.env.remove(&format!("TEAMSTER_FILE_{number}")) {
                launch.env.insert(variable, path);
            }
        }
        let broken = |_| unsupported("this MCP server", format!("{name:?} cannot be written as JSON"));
        let words: Value = serde_json::from_str(&words).map_err(broken)?;
        if is_replaced(&words) {
            let why = format!("the CLI puts something else in the place of {{env:}} and {{file:}} in server {name:?}");
            return Err(unsupported("--mcp-delivery merge-restore", why));
        }
        entries.insert(names.wire(name).to_owned(), serde_json::from_str(&text).map_err(broken)?);
    }
    launch.config_files.push(ConfigFile {
        directory: ConfigDirectory::Project(""),
        names: &["opencode.json", "opencode.jsonc"],
        format: ConfigFormat::Json,
        key: "mcp",
        entries,
        // 1.18.33 adds it where it is missing.
        template: "{\"$schema\": \"https://opencode.ai/config.json\"}\n",
    });
    Ok(())
}

fn is_replaced(value: &Value) -> bool {
    let is = |text: &str| text.contains("{env:") || text.contains("{file:");
    match value {
        Value::String(text) => is(text),
        Value::Array(values) => values.iter().any(is_replaced),
        Value::Object(fields) => fields.iter().any(|(name, value)| is(name) || is_replaced(value)),
        _ => false,
    }
}

fn unsupported(option: &'static str, why: String) -> RequestError {
    RequestError::Unsupported { agent: NAME.to_owned(), option, why }
}

/// Values of variables and headers stand in files: the configuration itself is in the environment of every tool.
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

/// There is one for the start and for calls.
fn timeout(name: &str, server: &McpServer) -> Result<Option<Duration>, RequestError> {
    match (server.startup_timeout, server.tool_timeout) {
        (Some(start), Some(tool)) if start != tool => Err(unsupported(
            "different timeouts for the start and the tools of an MCP server",
            format!("it has one for both; give server {name:?} the same, or one of the two"),
        )),
        (start, tool) => Ok(start.or(tool)),
    }
}
