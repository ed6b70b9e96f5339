//! Converts servers from and to their JSON form.

use std::time::Duration;

use super::entry::{Entry, Kind};
use super::server::{McpEndpoint, McpServer, McpTransport};

impl TryFrom<Entry> for McpServer {
    type Error = String;

    fn try_from(entry: Entry) -> Result<Self, String> {
        let transport = entry.transport()?;
        Ok(Self {
            transport,
            required: entry.required,
            startup_timeout: entry.startup_timeout_ms.map(Duration::from_millis),
            tool_timeout: entry.tool_timeout_ms.map(Duration::from_millis),
            enabled_tools: entry.enabled_tools,
            disabled_tools: entry.disabled_tools,
        })
    }
}

impl Entry {
    /// Returns the transport, or an error that names a missing or excess field.
    fn transport(&self) -> Result<McpTransport, String> {
        let of_url = [
            ("url", self.url.is_some()),
            ("headers", !self.headers.is_empty()),
            ("bearerToken", self.bearer_token.is_some()),
        ];
        let of_program = [
            ("command", self.command.is_some()),
            ("args", !self.args.is_empty()),
            ("env", !self.env.is_empty()),
            ("cwd", self.cwd.is_some()),
        ];
        let stray = |fields: &[(&str, bool)], kind: &str| match fields.iter().find(|(_, given)| *given) {
            Some((field, _)) => Err(format!("\"{field}\" is not for a server with {kind}")),
            None => Ok(()),
        };
        match (self.kind, &self.command, &self.url) {
            (Some(Kind::Stdio) | None, Some(command), _) => {
                stray(&of_url, "a command")?;
                let (command, args) = (command.clone(), self.args.clone());
                Ok(McpTransport::Stdio { command, args, env: self.env.clone(), cwd: self.cwd.clone() })
            }
            (Some(Kind::Stdio), None, _) => Err("\"command\" is missing: the program that is the server".to_owned()),
            (Some(Kind::Http | Kind::Sse) | None, _, Some(url)) => {
                stray(&of_program, "a URL")?;
                let (headers, bearer_token) = (self.headers.clone(), self.bearer_token.clone());
                let endpoint = McpEndpoint { url: url.clone(), headers, bearer_token };
                match self.kind {
                    Some(Kind::Sse) => Ok(McpTransport::Sse(endpoint)),
                    // Both transports have URLs with this ending, so the type must be given.
                    None if url.trim_end_matches('/').ends_with("/sse") => {
                        Err("\"type\" is missing: is it \"http\" (streamable HTTP) or \"sse\"?".to_owned())
                    }
                    _ => Ok(McpTransport::Http(endpoint)),
                }
            }
            (Some(Kind::Http | Kind::Sse), _, None) => Err("\"url\" is missing: where the server listens".to_owned()),
            (None, None, None) => Err("\"command\" or \"url\" is missing".to_owned()),
        }
    }
}

impl From<McpServer> for Entry {
    fn from(server: McpServer) -> Self {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let mut entry = Self {
            required: server.required,
            startup_timeout_ms: server.startup_timeout.map(millis),
            tool_timeout_ms: server.tool_timeout.map(millis),
            enabled_tools: server.enabled_tools,
            disabled_tools: server.disabled_tools,
            ..Self::default()
        };
        let (kind, endpoint) = match server.transport {
            McpTransport::Stdio { command, args, env, cwd } => {
                return Self { kind: Some(Kind::Stdio), command: Some(command), args, env, cwd, ..entry };
            }
            McpTransport::Http(endpoint) => (Kind::Http, endpoint),
            McpTransport::Sse(endpoint) => (Kind::Sse, endpoint),
        };
        entry.kind = Some(kind);
        entry.url = Some(endpoint.url);
        entry.headers = endpoint.headers;
        entry.bearer_token = endpoint.bearer_token;
        entry
    }
}
