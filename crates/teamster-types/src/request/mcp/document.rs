//! Reads MCP servers from configuration documents: `{"mcpServers": {...}}` in JSON, `[mcp_servers.NAME]` in TOML.
//!
//! Agents and editors have different names for the same fields. All unambiguous names are accepted. Any other field is an error,
//! because a server must not run without an option that its author set.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::McpServer;
use super::variables::{Lookup, expand};
use crate::request::RequestError;
use crate::text::without_bom;

type Fields = Map<String, Value>;
type Servers = BTreeMap<String, McpServer>;

/// Other names of our fields, and their units.
const SPELLINGS: &[(&str, &str, Unit)] = &[
    ("environment", "env", Unit::Same),          // OpenCode
    ("httpUrl", "url", Unit::Same),              // Gemini CLI
    ("serverUrl", "url", Unit::Same),            // Windsurf
    ("http_headers", "headers", Unit::Same),     // Codex
    ("bearer_token", "bearerToken", Unit::Same), //
    ("startup_timeout_ms", "startupTimeoutMs", Unit::Same),
    ("tool_timeout_ms", "toolTimeoutMs", Unit::Same),
    ("startup_timeout_sec", "startupTimeoutMs", Unit::Seconds), // Codex
    ("tool_timeout_sec", "toolTimeoutMs", Unit::Seconds),       // Codex
    ("timeout", "toolTimeoutMs", Unit::Milliseconds),           // Claude Code, Gemini CLI, OpenCode
    ("enabled_tools", "enabledTools", Unit::Same),              // Codex
    ("disabled_tools", "disabledTools", Unit::Same),            // Codex
    ("includeTools", "enabledTools", Unit::Same),               // Gemini CLI
    ("excludeTools", "disabledTools", Unit::Same),              // Gemini CLI
];

/// Other names of the transports.
const TRANSPORTS: &[(&str, &str)] = &[
    ("streamable-http", "http"),
    ("streamableHttp", "http"),
    ("streamable_http", "http"),
    ("local", "stdio"),
    ("remote", "http"),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Same,
    Seconds,
    /// Milliseconds. A value below 1000 is an error, because the author probably meant seconds.
    Milliseconds,
}

impl McpServer {
    /// Reads `{"mcpServers": {...}}`, or the map inside it, from JSON text.
    ///
    /// `${NAME}` and `${NAME:-default}` are replaced by the result of `variable` for the name. This applies to commands, arguments,
    /// values of variables and headers, directories, URLs and tokens. A disabled server (`"enabled": false`, `"disabled": true`)
    /// is omitted.
    ///
    /// ```
    /// use teamster_types::request::McpServer;
    ///
    /// let text = r#"{"mcpServers": {"issues": {"url": "https://x.example/mcp", "headers": {"X-Key": "${KEY}"}}}}"#;
    /// let servers = McpServer::from_json(text, |name| (name == "KEY").then(|| "k3y".to_owned()))?;
    /// assert_eq!(servers["issues"], McpServer::http("https://x.example/mcp").header("X-Key", "k3y"));
    /// # Ok::<(), teamster_types::request::RequestError>(())
    /// ```
    ///
    /// # Errors
    /// If the text is not JSON or an entry is not a server. The message names the server and the field.
    pub fn from_json(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Servers, RequestError> {
        let text = without_bom(text);
        let document = crate::json::parse(text).map_err(|error| wrong(format!("is not JSON: {error}")))?;
        servers(document, &variable)
    }

    /// Reads `[mcp_servers.NAME]` or `[mcpServers.NAME]` from TOML text, as [`from_json`](Self::from_json) does from JSON.
    /// Other tables are ignored, so that the configuration file of Codex can be read.
    ///
    /// # Errors
    /// The same as for [`from_json`](Self::from_json).
    pub fn from_toml(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Servers, RequestError> {
        let text = without_bom(text);
        let document: Value = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text.get(..span.start).unwrap_or_default().matches('\n').count() + 1);
            let line = line.map(|line| format!(" at line {line}")).unwrap_or_default();
            wrong(format!("is not TOML: {}{line}", error.message()))
        })?;
        if !document.as_object().is_some_and(|top| NAMES_OF_THE_MAP.iter().any(|name| top.contains_key(*name))) {
            return Err(wrong("has no table [mcp_servers.NAME]".to_owned()));
        }
        servers(document, &variable)
    }
}

const NAMES_OF_THE_MAP: [&str; 2] = ["mcpServers", "mcp_servers"];

fn wrong(message: String) -> RequestError {
    RequestError::McpConfig { message }
}

fn servers(document: Value, variable: Lookup<'_>) -> Result<Servers, RequestError> {
    let Value::Object(mut top) = document else {
        return Err(wrong("must be an object with \"mcpServers\"".to_owned()));
    };
    let inner: Vec<_> = NAMES_OF_THE_MAP.iter().filter_map(|name| Some((*name, top.remove(*name)?))).collect();
    let entries = match <[_; 1]>::try_from(inner) {
        Ok([(_, Value::Object(entries))]) => entries,
        Ok([(name, _)]) => return Err(wrong(format!("\"{name}\" must be an object of servers by name"))),
        Err(inner) if inner.is_empty() => top,
        Err(_) => return Err(wrong("has both \"mcpServers\" and \"mcp_servers\"".to_owned())),
    };
    let mut servers = Servers::new();
    for (name, entry) in entries {
        let server = server(entry, variable).map_err(|problem| wrong(format!("server {name:?}: {problem}")))?;
        servers.extend(server.map(|server| (name, server)));
    }
    Ok(servers)
}

/// Reads a server; `None` if it is disabled.
fn server(entry: Value, variable: Lookup<'_>) -> Result<Option<McpServer>, String> {
    let Value::Object(mut fields) = entry else { return Err("must be an object".to_owned()) };
    let enabled = switch(&mut fields, "enabled")?.unwrap_or(true);
    if switch(&mut fields, "disabled")?.unwrap_or(false) || !enabled {
        return Ok(None);
    }
    rename(&mut fields)?;
    transport(&mut fields)?;
    split_command(&mut fields)?;
    fill_in(&mut fields, variable)?;
    from_environment(&mut fields, variable)?;
    shapes(&fields)?;
    // The remaining errors are unknown, missing and excess fields.
    serde_json::from_value(Value::Object(fields)).map(Some).map_err(|error| error.to_string())
}

/// Checks the types of the fields. Unlike serde's, its errors name the field.
fn shapes(fields: &Fields) -> Result<(), String> {
    let wrong = |name: &str, what: &str| Err(format!("\"{name}\" must be {what}"));
    for (name, value) in fields {
        let text = value.is_string();
        let texts = value.as_array().is_some_and(|texts| texts.iter().all(Value::is_string));
        let map = value.as_object().is_some_and(|texts| texts.values().all(Value::is_string));
        match name.as_str() {
            "type" if !["stdio", "http", "sse"].iter().any(|kind| value == kind) => {
                return wrong(name, "stdio, http or sse");
            }
            "command" | "cwd" | "url" | "bearerToken" if !text => return wrong(name, "a text"),
            "args" | "enabledTools" | "disabledTools" if !texts => return wrong(name, "a list of texts"),
            "env" | "headers" if !map => return wrong(name, "an object of texts by name"),
            "required" if !value.is_boolean() => return wrong(name, "true or false"),
            "startupTimeoutMs" | "toolTimeoutMs" if !value.is_u64() => {
                return wrong(name, "a whole number of milliseconds");
            }
            _ => {}
        }
    }
    Ok(())
}

fn switch(fields: &mut Fields, name: &str) -> Result<Option<bool>, String> {
    match fields.remove(name) {
        None => Ok(None),
        Some(Value::Bool(on)) => Ok(Some(on)),
        Some(_) => Err(format!("\"{name}\" must be true or false")),
    }
}

fn put(fields: &mut Fields, name: &str, spelling: &str, value: Value) -> Result<(), String> {
    match fields.insert(name.to_owned(), value) {
        None => Ok(()),
        Some(_) => Err(format!("\"{spelling}\" and \"{name}\" are the same field: omit one of them")),
    }
}

fn rename(fields: &mut Fields) -> Result<(), String> {
    for (spelling, name, unit) in SPELLINGS {
        let Some(value) = fields.remove(*spelling) else { continue };
        let value = match unit {
            Unit::Same => value,
            Unit::Seconds => match value.as_f64() {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "checked, and it saturates"
                )]
                Some(seconds) if seconds >= 0.0 => ((seconds * 1000.0).round() as u64).into(),
                _ => return Err(format!("\"{spelling}\" must be a number of seconds")),
            },
            Unit::Milliseconds => match value.as_u64() {
                Some(milliseconds @ 1000..) => milliseconds.into(),
                Some(short) => {
                    let why = format!("\"{spelling}\" counts milliseconds, so {short} is too short");
                    return Err(format!("{why}: for {short} seconds write {short}000"));
                }
                None => return Err(format!("\"{spelling}\" must be a whole number of milliseconds")),
            },
        };
        put(fields, name, spelling, value)?;
        if *spelling == "httpUrl" && !fields.contains_key("type") {
            fields.insert("type".to_owned(), "http".into());
        }
    }
    Ok(())
}

fn transport(fields: &mut Fields) -> Result<(), String> {
    if let Some(value) = fields.remove("transport") {
        put(fields, "type", "transport", value)?;
    }
    if let Some(Value::String(kind)) = fields.get_mut("type")
        && let Some((_, ours)) = TRANSPORTS.iter().find(|(theirs, _)| theirs == kind)
    {
        *kind = (*ours).to_owned();
    }
    Ok(())
}

/// `"command": ["program", "argument"]`
fn split_command(fields: &mut Fields) -> Result<(), String> {
    let Some(Value::Array(words)) = fields.get_mut("command") else { return Ok(()) };
    if words.is_empty() {
        return Err("\"command\" is empty".to_owned());
    }
    let args = words.split_off(1);
    let program = words.pop().unwrap_or_default();
    fields.insert("command".to_owned(), program);
    if fields.contains_key("args") {
        return Err("\"command\" is a list: its further words are the arguments, so omit \"args\"".to_owned());
    }
    fields.insert("args".to_owned(), args.into());
    Ok(())
}

fn fill_in(fields: &mut Fields, variable: Lookup<'_>) -> Result<(), String> {
    let in_text = |text: &mut Value, place: &str| match text {
        Value::String(text) => {
            expand(text, variable).map(|filled| *text = filled).map_err(|why| format!("{place} {why}"))
        }
        // Other types are reported by `shapes`.
        _ => Ok(()),
    };
    for name in ["command", "args", "env", "cwd", "url", "headers", "bearerToken"] {
        match fields.get_mut(name) {
            Some(Value::Array(texts)) => texts.iter_mut().try_for_each(|text| in_text(text, &format!("\"{name}\"")))?,
            Some(Value::Object(texts)) => {
                texts.iter_mut().try_for_each(|(key, text)| in_text(text, &format!("\"{name}\", {key:?},")))?;
            }
            Some(text) => in_text(text, &format!("\"{name}\""))?,
            None => {}
        }
    }
    Ok(())
}

/// Replaces fields of Codex that contain the names of variables instead of values.
fn from_environment(fields: &mut Fields, variable: Lookup<'_>) -> Result<(), String> {
    let value = |field: &str, name: &Value| {
        let name = name.as_str().ok_or_else(|| format!("\"{field}\" must name variables"))?;
        Ok::<_, String>((name.to_owned(), variable(name)))
    };
    let needed = |field: &str, name: &Value| match value(field, name)? {
        (_, Some(value)) => Ok(value),
        (name, None) => Err(format!("\"{field}\" needs the variable {name}, which is not set")),
    };
    if let Some(name) = fields.remove("bearer_token_env_var") {
        put(fields, "bearerToken", "bearer_token_env_var", needed("bearer_token_env_var", &name)?.into())?;
    }
    if let Some(names) = fields.remove("env_http_headers") {
        let Value::Object(names) = names else { return Err("\"env_http_headers\" must be an object".to_owned()) };
        let headers = inner(fields, "headers")?;
        for (header, name) in names {
            headers.insert(header, needed("env_http_headers", &name)?.into());
        }
    }
    if let Some(names) = fields.remove("env_vars") {
        let Value::Array(names) = names else { return Err("\"env_vars\" must be a list of names".to_owned()) };
        let env = inner(fields, "env")?;
        for name in names {
            // A variable that is not set is omitted.
            if let (name, Some(value)) = value("env_vars", &name)? {
                env.entry(name).or_insert_with(|| value.into());
            }
        }
    }
    Ok(())
}

fn inner<'a>(fields: &'a mut Fields, name: &str) -> Result<&'a mut Fields, String> {
    let map = fields.entry(name).or_insert_with(|| Value::Object(Fields::new()));
    map.as_object_mut().ok_or_else(|| format!("\"{name}\" must be an object"))
}
