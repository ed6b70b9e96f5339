//! MCP servers that a run brings along.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RequestError;

/// An MCP server, as in the usual `{"mcpServers": {"name": {...}}}` documents.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
#[non_exhaustive]
pub enum McpServer {
    /// A program that speaks MCP over its standard streams.
    Stdio {
        /// The program: a name that is looked up in PATH, or a path.
        command: String,
        /// Its arguments.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        args: Vec<String>,
        /// Variables added to its environment. Values are secrets: they never stand in argv or in debug output.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
    },
    /// A server behind streamable HTTP.
    Http {
        /// Where it listens.
        url: String,
        /// Headers of each request. Values are secrets.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
    },
    /// A server behind the older HTTP + SSE transport.
    Sse {
        /// Where it listens.
        url: String,
        /// Headers of each request. Values are secrets.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
    },
}

impl McpServer {
    /// Reads `{"mcpServers": {...}}`, or the map inside it, from JSON text.
    ///
    /// `type` may be left out for a server with a `command`, as everywhere in the field; a server with only a `url` is
    /// refused, since Claude Code 2.1.197 drops such an entry without a word.
    ///
    /// # Errors
    /// When the text is not JSON, or an entry is not a server: the message names it.
    pub fn parse_map(text: &str) -> Result<BTreeMap<String, Self>, RequestError> {
        let wrong = |message: String| RequestError::McpConfig { message };
        let document: Value = serde_json::from_str(text).map_err(|error| wrong(format!("is not JSON: {error}")))?;
        let Value::Object(mut top) = document else {
            return Err(wrong("must be an object with \"mcpServers\"".into()));
        };
        let servers = match top.remove("mcpServers") {
            Some(Value::Object(servers)) => servers,
            Some(_) => return Err(wrong("\"mcpServers\" must be an object of servers by name".into())),
            None => top,
        };
        servers
            .into_iter()
            .map(|(name, mut entry)| {
                if let Value::Object(fields) = &mut entry
                    && !fields.contains_key("type")
                    && fields.contains_key("command")
                {
                    fields.insert("type".into(), "stdio".into());
                }
                let server = serde_json::from_value(entry)
                    .map_err(|error| wrong(format!("server \"{name}\": {}", without_values(&error))))?;
                Ok((name, server))
            })
            .collect()
    }

    pub(super) fn validate(&self, name: &str) -> Result<(), RequestError> {
        let wrong = |problem: &str| Err(RequestError::McpConfig { message: format!("server \"{name}\": {problem}") });
        let clean = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if !clean {
            return wrong("a name is made of letters, digits, '-', '_' and '.'");
        }
        let texts: Vec<&str> = match self {
            Self::Stdio { command, args, env } => {
                if command.is_empty() {
                    return wrong("\"command\" is empty");
                }
                if let Some(key) = env.keys().find(|key| key.is_empty() || key.contains('=')) {
                    return wrong(&format!("\"{key}\" cannot name an environment variable"));
                }
                let env = env.iter().flat_map(|(key, value)| [key, value]);
                std::iter::once(command).chain(args).chain(env).map(String::as_str).collect()
            }
            Self::Http { url, headers } | Self::Sse { url, headers } => {
                if !(url.starts_with("http://") || url.starts_with("https://")) {
                    return wrong("\"url\" must begin with http:// or https://");
                }
                if headers.iter().flat_map(|(key, value)| [key, value]).any(|text| text.contains(['\r', '\n'])) {
                    return wrong("a header holds a line break");
                }
                std::iter::once(url)
                    .chain(headers.iter().flat_map(|(key, value)| [key, value]))
                    .map(String::as_str)
                    .collect()
            }
        };
        if texts.iter().any(|text| text.contains('\0')) {
            return wrong("a value holds a NUL byte");
        }
        Ok(())
    }
}

/// What is wrong, without the value that is: it may be a secret in the wrong place.
fn without_values(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.split_once(", expected ") {
        Some((start, expected)) if start.starts_with("invalid") => format!("expected {expected}"),
        _ => text,
    }
}

impl std::fmt::Debug for McpServer {
    /// Names without values: values are often secrets, and arguments and URLs can carry them too.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stdio { command, args, env } => formatter
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", &format_args!("{} hidden", args.len()))
                .field("env", &env.keys().collect::<Vec<_>>())
                .finish(),
            Self::Http { headers, .. } => formatter
                .debug_struct("Http")
                .field("headers", &headers.keys().collect::<Vec<_>>())
                .finish_non_exhaustive(),
            Self::Sse { headers, .. } => formatter
                .debug_struct("Sse")
                .field("headers", &headers.keys().collect::<Vec<_>>())
                .finish_non_exhaustive(),
        }
    }
}
