//! The MCP servers of a run, in the format of `--mcp-config` of Claude Code 2.1.197.
//!
//! The CLI replaces `${NAME}` and `${NAME:-default}` in all texts of an entry, and in headers again at each connection. So texts
//! are escaped here.

use serde_json::{Map, Value, json};

use crate::agent::mcp::{Names, Style};
use crate::launch::Launch;
use teamster_types::request::{McpServer, McpTransport, RequestError, RunRequest};

/// `mcp__SERVER__TOOL`, in letters, digits, `-` and `_`.
pub(super) static STYLE: Style = Style {
    agent: "claude",
    prefix: "mcp__",
    separator: "__",
    all: "",
    filler: '_',
    longest: 40,
    reserved: &["claude-in-chrome", "claude-preview", "computer-use", "workspace"],
};

pub(super) fn servers(launch: &mut Launch, request: &RunRequest, names: &Names) -> Result<(), RequestError> {
    if request.mcp_servers.is_empty() {
        return Ok(());
    }
    let entries = request.mcp_servers.iter().map(|(name, server)| (names.wire(name).to_owned(), entry(server)));
    let document = json!({ "mcpServers": entries.collect::<Map<_, _>>() });
    launch.flag_file("--mcp-config", "mcp.json", document.to_string());
    // Otherwise the first turn waits only about 2 s, and the tools of a slower server are missing. The test
    // `the_first_turn_waits_for_a_slow_server_on_every_agent` covers it.
    launch.env("MCP_CONNECTION_NONBLOCKING", "0");
    let mut timeouts = request.mcp_servers.iter().filter_map(|(name, server)| Some((name, server.startup_timeout?)));
    if let Some((first, timeout)) = timeouts.next() {
        if let Some((other, _)) = timeouts.find(|(_, other)| *other != timeout) {
            return Err(RequestError::Unsupported {
                agent: "claude".to_owned(),
                option: "different start-up timeouts of MCP servers",
                why: format!("it has one for all; give {first:?} and {other:?} the same"),
            });
        }
        launch.env("MCP_TIMEOUT", timeout.as_millis().to_string());
    }
    Ok(())
}

fn entry(server: &McpServer) -> Value {
    let (kind, endpoint) = match &server.transport {
        McpTransport::Stdio { command, args, env, cwd } => {
            let words = std::iter::once(command).chain(args).map(|word| literal(word));
            let (command, args) = match cwd {
                // The format has no field for the directory.
                Some(cwd) => {
                    let script = ["-c", "cd -- \"$0\" && exec \"$@\""].map(str::to_owned);
                    ("/bin/sh".to_owned(), script.into_iter().chain([literal(cwd)]).chain(words).collect())
                }
                None => (literal(command), words.skip(1).collect::<Vec<_>>()),
            };
            let env: Map<_, _> = env.iter().map(|(name, value)| (name.clone(), literal(value).into())).collect();
            return timed(server, json!({"type": "stdio", "command": command, "args": args, "env": env}));
        }
        McpTransport::Http(endpoint) => ("http", endpoint),
        McpTransport::Sse(endpoint) => ("sse", endpoint),
    };
    let headers = endpoint.all_headers();
    let twice = |value: &str| literal(&literal(value));
    let headers: Map<_, _> = headers.iter().map(|(&name, value)| (name.to_owned(), twice(value).into())).collect();
    timed(server, json!({"type": kind, "url": literal(&endpoint.url), "headers": headers}))
}

fn timed(server: &McpServer, mut entry: Value) -> Value {
    if let (Some(timeout), Some(fields)) = (server.tool_timeout, entry.as_object_mut()) {
        fields.insert("timeout".to_owned(), u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX).into());
    }
    entry
}

/// Escapes a text: the dollar of `${` becomes the default value of a variable that does not exist. The CLI does not replace
/// variables in a replaced value.
fn literal(text: &str) -> String {
    text.replace("${", "${TEAMSTER_DOLLAR:-$}{")
}
