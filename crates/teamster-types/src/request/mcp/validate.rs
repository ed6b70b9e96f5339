//! Checks MCP servers before the start.

use std::time::Duration;

use super::{McpEndpoint, McpServer, McpTransport};
use crate::request::RequestError;

/// The maximum characters of a name. All agents truncate much shorter names for their model.
const LONGEST_NAME: usize = 128;

/// The minimum time limit. No server starts faster, and some agents use whole seconds.
const SHORTEST_TIMEOUT: Duration = Duration::from_secs(1);

/// The maximum time limit. All agents support it.
const LONGEST_TIMEOUT: Duration = Duration::from_hours(24);

impl McpServer {
    pub(in crate::request) fn validate(&self, name: &str) -> Result<(), RequestError> {
        let problem = name_problem(name).or_else(|| self.problem());
        problem
            .map_or(Ok(()), |problem| Err(RequestError::McpConfig { message: format!("server {name:?}: {problem}") }))
    }

    fn problem(&self) -> Option<String> {
        let of_transport = match &self.transport {
            McpTransport::Stdio { command, args, env, cwd } => {
                let texts = args.iter().chain(env.values()).chain(cwd);
                stdio_problem(command, env.keys(), cwd.as_deref())
                    .or_else(|| nul(std::iter::once(command).chain(texts)))
            }
            McpTransport::Http(endpoint) | McpTransport::Sse(endpoint) => endpoint.problem(),
        };
        of_transport.or_else(|| self.timeout_problem()).or_else(|| self.tools_problem())
    }

    fn timeout_problem(&self) -> Option<String> {
        let timeouts = [("startupTimeoutMs", self.startup_timeout), ("toolTimeoutMs", self.tool_timeout)];
        timeouts.into_iter().find_map(|(field, timeout)| match timeout {
            Some(timeout) if timeout < SHORTEST_TIMEOUT => Some(format!("\"{field}\" must be at least 1000")),
            Some(timeout) if timeout > LONGEST_TIMEOUT => {
                Some(format!("\"{field}\" must be at most 24 hours, 86400000"))
            }
            _ => None,
        })
    }

    fn tools_problem(&self) -> Option<String> {
        let enabled = self.enabled_tools.as_deref();
        if enabled.is_some_and(<[String]>::is_empty) {
            return Some("\"enabledTools\" is empty: name tools, or leave the server out".to_owned());
        }
        let lists = [("enabledTools", enabled.unwrap_or_default()), ("disabledTools", &self.disabled_tools)];
        lists.into_iter().find_map(|(field, tools)| {
            let wrong = tools.iter().find(|tool| {
                tool.is_empty() || tool.chars().any(|c| c.is_control() || c.is_whitespace() || "*?()".contains(c))
            })?;
            Some(format!("{wrong:?} in \"{field}\" is no name of a tool: patterns are not possible"))
        })
    }
}

impl McpEndpoint {
    fn problem(&self) -> Option<String> {
        let host = self.url.strip_prefix("http://").or_else(|| self.url.strip_prefix("https://"));
        if host.is_none_or(|host| host.is_empty() || host.starts_with('/')) {
            return Some("\"url\" must begin with http:// or https:// and a host".to_owned());
        }
        if self.url.chars().any(|c| c.is_control() || c == ' ') {
            return Some("\"url\" holds a blank or a control character: write it as %20".to_owned());
        }
        let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if let Some(name) = self.headers.keys().find(|name| name.is_empty() || !name.chars().all(token)) {
            return Some(format!("{name:?} in \"headers\" is no name of a header"));
        }
        if let Some((name, _)) = self.headers.iter().find(|(_, value)| value.contains(['\r', '\n', '\0'])) {
            return Some(format!("the header {name:?} holds a line break or a NUL byte"));
        }
        let token = self.bearer_token.as_deref()?;
        if token.is_empty() || token.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Some(
                "\"bearerToken\" is empty or holds blanks: it is the token alone, without \"Bearer\"".to_owned(),
            );
        }
        let twice = self.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        twice.then(|| "\"bearerToken\" and an Authorization header exclude each other".to_owned())
    }
}

fn stdio_problem<'a>(
    command: &str,
    mut variables: impl Iterator<Item = &'a String>,
    cwd: Option<&str>,
) -> Option<String> {
    if command.trim().is_empty() {
        return Some("\"command\" is empty".to_owned());
    }
    if cwd.is_some_and(str::is_empty) {
        return Some("\"cwd\" is empty: omit it instead".to_owned());
    }
    let wrong = variables.find(|name| name.is_empty() || name.contains(['=', '\0']))?;
    Some(format!("{wrong:?} in \"env\" cannot name an environment variable"))
}

fn nul<'a>(mut texts: impl Iterator<Item = &'a String>) -> Option<String> {
    texts.any(|text| text.contains('\0')).then(|| "a value contains a NUL byte".to_owned())
}

fn name_problem(name: &str) -> Option<String> {
    if name.trim().is_empty() || name.trim() != name {
        return Some("a name must not be empty, nor begin or end with a blank".to_owned());
    }
    if name.chars().any(char::is_control) {
        return Some("a name must not hold control characters".to_owned());
    }
    (name.chars().count() > LONGEST_NAME).then(|| format!("a name has at most {LONGEST_NAME} characters"))
}
