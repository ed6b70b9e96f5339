//! MCP servers as OpenCode 1.18.33's configuration writes them.

use std::time::Duration;

use super::NAME;
use super::config::{list, object, quote, secret};
use crate::agent::mcp::{Names, Style};
use crate::launch::Launch;
use crate::request::{McpServer, McpTransport, RequestError, RunRequest};

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
        (Some(start), Some(tool)) if start != tool => Err(RequestError::Unsupported {
            agent: NAME.to_owned(),
            option: "different timeouts for the start and the tools of an MCP server",
            why: format!("it has one for both; give server {name:?} the same, or one of the two"),
        }),
        (start, tool) => Ok(start.or(tool)),
    }
}
