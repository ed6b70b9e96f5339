//! MCP servers that a run brings along.

mod document;
mod entry;
mod validate;
mod variables;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use entry::Entry;

/// An MCP server of a run: the same for every agent, whatever the agent's own configuration looks like.
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
/// Texts are taken as they are, on every agent: nothing in them is filled in. Documents that people write may hold
/// `${NAME}`: see [`from_json`](Self::from_json).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(description = "An MCP server: a program (`command`), or a URL (`url`)."))]
#[serde(try_from = "Entry", into = "Entry")]
#[non_exhaustive]
pub struct McpServer {
    /// How it is reached.
    pub transport: McpTransport,
    /// Whether the run fails without it. Otherwise a server that does not start is a warning, and its tools are missing.
    pub required: bool,
    /// How long it may take to start; the agent's own bound if left out.
    pub startup_timeout: Option<Duration>,
    /// How long a call of one of its tools may take; the agent's own bound if left out.
    pub tool_timeout: Option<Duration>,
    /// The tools that the model gets; all if left out.
    pub enabled_tools: Option<Vec<String>>,
    /// Tools that the model does not get, be they enabled or not.
    pub disabled_tools: Vec<String>,
}

/// How an MCP server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// A program that speaks MCP over its standard streams.
    Stdio {
        /// The program: a name that is looked up in PATH, or a path.
        command: String,
        /// Its arguments. Everybody on the machine can read them: a secret belongs into `env`.
        args: Vec<String>,
        /// Variables added to its environment. Values are secrets: they never stand in argv or in debug output.
        env: BTreeMap<String, String>,
        /// Where it works; the run's working directory if left out, and relative paths count from there.
        cwd: Option<String>,
    },
    /// A server behind streamable HTTP.
    Http(McpEndpoint),
    /// A server behind the older HTTP + SSE transport.
    Sse(McpEndpoint),
}

/// Where a server listens, and what it is told of the client.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpEndpoint {
    /// Where it listens.
    pub url: String,
    /// Headers of each request. Values are secrets.
    pub headers: BTreeMap<String, String>,
    /// The token of an `Authorization: Bearer` header. A secret.
    pub bearer_token: Option<String>,
}

impl McpEndpoint {
    /// All headers, the one that the token stands for among them.
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

    /// Adds arguments. Nothing where there is no program.
    #[must_use]
    pub fn args(mut self, more: impl IntoIterator<Item = impl Into<String>>) -> Self {
        if let McpTransport::Stdio { args, .. } = &mut self.transport {
            args.extend(more.into_iter().map(Into::into));
        }
        self
    }

    /// Adds a variable. Nothing where there is no program.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let McpTransport::Stdio { env, .. } = &mut self.transport {
            env.insert(name.into(), value.into());
        }
        self
    }

    /// Sets where the program works. Nothing where there is none.
    #[must_use]
    pub fn cwd(mut self, path: impl Into<String>) -> Self {
        if let McpTransport::Stdio { cwd, .. } = &mut self.transport {
            *cwd = Some(path.into());
        }
        self
    }

    /// Adds a header. Nothing where there is a program instead of a URL.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let McpTransport::Http(endpoint) | McpTransport::Sse(endpoint) = &mut self.transport {
            endpoint.headers.insert(name.into(), value.into());
        }
        self
    }

    /// Sets the token of an `Authorization: Bearer` header. Nothing where there is a program instead of a URL.
    #[must_use]
    pub fn bearer_token(mut self, token: impl Into<String>) -> Self {
        if let McpTransport::Http(endpoint) | McpTransport::Sse(endpoint) = &mut self.transport {
            endpoint.bearer_token = Some(token.into());
        }
        self
    }

    /// The run fails if it does not start.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Sets how long it may take to start.
    #[must_use]
    pub fn startup_timeout(mut self, timeout: Duration) -> Self {
        self.startup_timeout = Some(timeout);
        self
    }

    /// Sets how long a call of one of its tools may take.
    #[must_use]
    pub fn tool_timeout(mut self, timeout: Duration) -> Self {
        self.tool_timeout = Some(timeout);
        self
    }

    /// The model gets these tools, and no others but those of an earlier call.
    #[must_use]
    pub fn enable_tools(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.enabled_tools.get_or_insert_default().extend(names.into_iter().map(Into::into));
        self
    }

    /// The model does not get these tools.
    #[must_use]
    pub fn disable_tools(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.disabled_tools.extend(names.into_iter().map(Into::into));
        self
    }

    /// Where it listens, if it is no program.
    pub fn endpoint(&self) -> Option<&McpEndpoint> {
        match &self.transport {
            McpTransport::Stdio { .. } => None,
            McpTransport::Http(endpoint) | McpTransport::Sse(endpoint) => Some(endpoint),
        }
    }
}

impl std::fmt::Debug for McpTransport {
    /// Names without values: values are often secrets, and arguments and URLs can carry them too.
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
    /// Names without values.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("McpEndpoint")
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("bearer_token", &self.bearer_token.is_some())
            .finish_non_exhaustive()
    }
}
