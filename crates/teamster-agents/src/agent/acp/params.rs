//! The parameters of our calls to an agent.

use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::wire::{McpCapabilities, PromptCapabilities};
use teamster_types::request::{Attachment, AttachmentKind, McpEndpoint, McpServer, McpTransport, Prompt, RequestError};

/// The version of the protocol.
pub(super) const VERSION: u64 = 1;

/// Returns the parameters of `initialize`. They declare that the client offers neither files nor terminals. In a session, a caller
/// can answer questions.
pub(super) fn initialize(is_session: bool) -> Value {
    let files = json!({"readTextFile": false, "writeTextFile": false});
    let mut capabilities = json!({"fs": files, "terminal": false});
    if let (true, Some(fields)) = (is_session, capabilities.as_object_mut()) {
        fields.insert("elicitation".to_owned(), json!({"form": {}}));
    }
    json!({
        "protocolVersion": VERSION,
        "clientCapabilities": capabilities,
        "clientInfo": {"name": "teamster", "title": "Teamster", "version": env!("CARGO_PKG_VERSION")},
    })
}

/// Returns the parameters of the call that opens a session: a new one, or an old one by its id.
pub(super) fn session(cwd: &Path, servers: &[Value], old: Option<&str>) -> Value {
    let mut params = json!({"cwd": cwd.to_string_lossy(), "mcpServers": servers});
    if let (Some(id), Some(fields)) = (old, params.as_object_mut()) {
        fields.insert("sessionId".to_owned(), id.into());
    }
    params
}

/// Returns the entry of an MCP server, or why the agent does not support the server.
pub(super) fn mcp_server(name: &str, server: &McpServer, can: &McpCapabilities) -> Result<Value, String> {
    let remote = |kind: &str, can: bool, endpoint: &McpEndpoint| {
        if !can {
            return Err(format!("the agent does not support MCP servers of type {kind}; remove server {name:?}"));
        }
        let headers = endpoint.all_headers();
        Ok(json!({"type": kind, "name": name, "url": endpoint.url, "headers": pairs(headers)}))
    };
    match &server.transport {
        McpTransport::Stdio { command, args, env, .. } => {
            Ok(json!({"name": name, "command": command, "args": args, "env": pairs(env)}))
        }
        McpTransport::Http(endpoint) => remote("http", can.http, endpoint),
        McpTransport::Sse(endpoint) => remote("sse", can.sse, endpoint),
    }
}

fn pairs(values: impl IntoIterator<Item = (impl AsRef<str>, impl AsRef<str>)>) -> Vec<Value> {
    values.into_iter().map(|(name, value)| json!({"name": name.as_ref(), "value": value.as_ref()})).collect()
}

/// Rejects an MCP server that the protocol cannot represent.
pub(super) fn check_mcp_server(agent: &str, name: &str, server: &McpServer) -> Result<(), RequestError> {
    if let McpTransport::Stdio { cwd: Some(_), .. } = &server.transport {
        return Err(RequestError::Unsupported {
            agent: agent.to_owned(),
            option: "cwd of an MCP server",
            why: format!("the protocol has no such field for server {name:?}"),
        });
    }
    Ok(())
}

/// Returns the content blocks of a prompt. Attachments come first.
pub(super) fn prompt(prompt: &Prompt, can: &PromptCapabilities) -> Result<Vec<Value>, RequestError> {
    let mut blocks = prompt.attachments.iter().map(|file| attachment(file, can)).collect::<Result<Vec<_>, _>>()?;
    blocks.push(json!({"type": "text", "text": prompt.text}));
    Ok(blocks)
}

fn attachment(file: &Attachment, can: &PromptCapabilities) -> Result<Value, RequestError> {
    let invalid = |name: &str, problem: &str| {
        Err(RequestError::Attachment { name: name.to_owned(), problem: problem.to_owned() })
    };
    let (name, data) = match file {
        Attachment::Data { name, data } => (name, data),
        Attachment::Path(path) => {
            return invalid(
                &path.display().to_string(),
                "it has not been read: the caller that starts the run must read it first",
            );
        }
    };
    match AttachmentKind::of(data) {
        Some(AttachmentKind::Image(kind)) if can.image => {
            Ok(json!({"type": "image", "mimeType": kind, "data": BASE64_STANDARD.encode(data)}))
        }
        Some(AttachmentKind::Image(_)) => invalid(name, "the agent does not accept images"),
        // Every agent accepts text, and interprets nothing in it.
        Some(AttachmentKind::Text) => {
            let text = String::from_utf8_lossy(data);
            Ok(json!({"type": "text", "text": format!("Attached file {name}:\n{text}")}))
        }
        Some(AttachmentKind::Pdf) if can.embedded_context => Ok(json!({
            "type": "resource",
            "resource": {
                "uri": format!("attachment:{}", name.replace(char::is_whitespace, "_")),
                "mimeType": "application/pdf",
                "blob": BASE64_STANDARD.encode(data),
            },
        })),
        Some(AttachmentKind::Pdf) => invalid(name, "the agent does not accept documents"),
        None => invalid(name, "its type is not text, PNG, JPEG, GIF, WebP or PDF"),
    }
}
