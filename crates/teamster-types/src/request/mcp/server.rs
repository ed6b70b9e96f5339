//! The types of MCP servers.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::entry::Entry;

/// An MCP server of a run. It does not depend on the agent and its configuration format.
///
/// ```
/// use std::time::Duration;
/// use teamster_types::request::{McpServer, RunRequest};
///
/// let mut request = RunRequest::new("Which issues are open?");
/// let issues = McpServer::http("https://issues.example.com/mcp").bearer_token("t0ken").required();
/// let files = McpServer::stdio("files-server").args(["--read-only"]).env("ROOT", "/srv").disable_tools(["delete"]);
/// request.mcp_servers.insert("issues".into(), issues);
/// request.mcp_servers.insert("files".into(), files.tool_timeout(Duration::from_secs(20)));
/// request.permissions.allow.push("mcp__issues".into());
/// request.validate()?;
/// # Ok::<(), teamster_types::request::RequestError>(())
/// ```
///
/// No agent expands variables in the texts. Documents may contain `${NAME}`: see [`from_json`](Self::from_json).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(description = "An MCP server: a program (`command`), or a URL (`url`)."))]
#[serde(try_from = "Entry", into = "Entry")]
#[non_exhaustive]
pub struct McpServer {
    /// The transport.
    pub transport: McpTransport,
    /// Whether the run fails if the server does not start. Otherwise a warning is emitted, and the tools are missing.
    pub required: bool,
    /// The time limit of its start; `None` for the agent's default.
    pub startup_timeout: Option<Duration>,
    /// The time limit of a tool call; `None` for the agent's default.
    pub tool_timeout: Option<Duration>,
    /// The tools that the model receives; `None` for all.
    pub enabled_tools: Option<Vec<String>>,
    /// Tools that the model does not receive, even if they are enabled.
    pub disabled_tools: Vec<String>,
}

/// The transport of an MCP server.
#[derive(Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// A program that speaks MCP over its standard streams.
    Stdio {
        /// The program: a path, or a name that is searched in PATH.
        command: String,
        /// Its arguments. All users of the machine can read them, so secrets belong into `env`.
        args: Vec<String>,
        /// Variables that are added to its environment. Values are secrets: they are never in argv or debug output.
        env: BTreeMap<String, String>,
        /// Its working directory, relative to that of the run; `None` for that of the run.
        cwd: Option<String>,
    },
    /// A server with the streamable HTTP transport.
    Http(McpEndpoint),
    /// A server with the older HTTP + SSE transport.
    Sse(McpEndpoint),
}

/// The URL of a server, and the headers of requests to it.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpEndpoint {
    /// The URL.
    pub url: String,
    /// Headers of each request. Values are secrets.
    pub headers: BTreeMap<String, String>,
    /// The token of an `Authorization: Bearer` header. A secret.
    pub bearer_token: Option<String>,
}

impl McpEndpoint {
    /// Returns all headers, including the one of the token.
    pub fn all_headers(&self) -> BTreeMap<&str, String> {
        let mut headers: BTreeMap<_, _> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        if let Some(token) = &self.bearer_token {
            headers.insert("Authorization", format!("Bearer {token}"));
        }
        headers
    }
}

impl McpServer {
    /// A program that speaks MCP over its standard streams.
    pub fn stdio(command: impl Into<String>) -> Self {
        let (args, env) = (Vec::new(), BTreeMap::new());
        Self::new(McpTransport::Stdio { command: command.into(), args, env, cwd: None })
    }

    /// A server behind streamable HTTP.
    pub fn http(url: impl Into<String>) -> Self {
        Self::new(McpTransport::Http(McpEndpoint { url: url.into(), ..McpEndpoint::default() }))
    }

    /// A server behind the older HTTP + SSE transport.
    pub fn sse(url: impl Into<String>) -> Self {
        Self::new(McpTransport::Sse(McpEndpoint { url: url.into(), ..McpEndpoint::default() }))
    }

    fn new(transport: McpTransport) -> Self {
        Self {
            transport,
            required: false,
            startup_timeout: None,
            tool_timeout: None,
            enabled_tools: None,
            disabled_tools: Vec::new(),
        }
    }

    /// Adds arguments. Has no effect without a program.
    #[must_use]
    pub fn args(mut self, more: impl IntoIterator<Item = impl Into<String>>) -> Self {
        if let McpTransport::Stdio { args, .. } = &mut self.transport {
            args.extend(more.into_iter().map(Into::into));
        }
        self
    }

    /// Adds a variable. Has no effect without a program.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let McpTransport::Stdio { env, .. } = &mut self.transport {
            env.insert(name.into(), value.into());
        }
        self
    }

    /// Sets the program's working directory. Has no effect without a program.
    #[must_use]
    pub fn cwd(mut self, path: impl Into<String>) -> Self {
        if let McpTransport::Stdio { cwd, .. } = &mut self.transport {
            *cwd = Some(path.into());
        }
        self
    }

    /// Adds a header. Has no effect without a URL.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let McpTransport::Http(endpoint) | McpTransport::Sse(endpoint) = &mut self.transport {
            endpoint.headers.insert(name.into(), value.into());
        }
        self
    }

    /// Sets the token of an `Authorization: Bearer` header. Has no effect without a URL.
    #[must_use]
    pub fn bearer_token(mut self, token: impl Into<String>) -> Self {
        if let McpTransport::Http(endpoint) | McpTransport::Sse(endpoint) = &mut self.transport {
            endpoint.bearer_token = Some(token.into());
        }
        self
    }

    /// Makes the run fail if the server does not start.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Sets the time limit of the start.
    #[must_use]
    pub fn startup_timeout(mut self, timeout: Duration) -> Self {
        self.startup_timeout = Some(timeout);
        self
    }

    /// Sets the time limit of a tool call.
    #[must_use]
    pub fn tool_timeout(mut self, timeout: Duration) -> Self {
        self.tool_timeout = Some(timeout);
        self
    }

    /// Adds tools that the model receives. Tools that are not added are then excluded.
    #[must_use]
    pub fn enable_tools(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.enabled_tools.get_or_insert_default().extend(names.into_iter().map(Into::into));
        self
    }

    /// Adds tools that the model does not receive.
    #[must_use]
    pub fn disable_tools(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.disabled_tools.extend(names.into_iter().map(Into::into));
        self
    }

    /// Returns the remote endpoint, if it is not a program.
    pub fn endpoint(&self) -> Option<&McpEndpoint> {
        match &self.transport {
            McpTransport::Stdio { .. } => None,
            McpTransport::Http(endpoint) | McpTransport::Sse(endpoint) => Some(endpoint),
        }
    }
}

impl std::fmt::Debug for McpTransport {
    /// Shows names without values, because values, arguments and URLs may contain secrets.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stdio { command, args, env, cwd } => formatter
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", &format_args!("{} hidden", args.len()))
                .field("env", &env.keys().collect::<Vec<_>>())
                .field("cwd", cwd)
                .finish(),
            Self::Http(endpoint) => formatter.debug_tuple("Http").field(endpoint).finish(),
            Self::Sse(endpoint) => formatter.debug_tuple("Sse").field(endpoint).finish(),
        }
    }
}

impl std::fmt::Debug for McpEndpoint {
    /// Shows names without values.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("McpEndpoint")
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("bearer_token", &self.bearer_token.is_some())
            .finish_non_exhaustive()
    }
}
