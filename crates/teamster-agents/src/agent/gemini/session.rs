//! The session interface of Gemini CLI 0.61.0: ACP, by `gemini --acp`.
//!
//! A tool call has a title. The tool's name is part of the call's id, and only some tools report their arguments. Usage is not
//! emitted, because the reported sum of tokens does not separate cached tokens.

use serde_json::{Value, json};

use super::error::unsupported;
use super::{failure, log, tools};
use crate::agent::acp::dialect::Dialect;
use crate::agent::acp::{Call, Tool, kind_of};
use crate::agent::failure::Classification;
use crate::agent::mcp::Health;
use crate::protocol::{Action, ExitReport};
use teamster_types::event::{Failure, ToolKind};
use teamster_types::json::RawJson;
use teamster_types::request::{Prompt, PromptMode, RequestError};

/// The commands that the CLI runs itself, after `/` or `$` at the start of a prompt. Other text is sent to the model.
const COMMANDS: &[&str] = &["memory", "extensions", "init", "restore", "about", "help"];

/// Texts in message chunks that the model did not write.
const MODE_UPDATES: &[&str] =
    &["[MODE_UPDATE] default", "[MODE_UPDATE] autoEdit", "[MODE_UPDATE] yolo", "[MODE_UPDATE] plan"];

/// The ACP dialect of Gemini CLI.
pub(super) struct GeminiDialect {
    servers: Health,
    prompt_mode: PromptMode,
}

impl GeminiDialect {
    pub(super) fn new(servers: Health, prompt_mode: PromptMode) -> Self {
        Self { servers, prompt_mode }
    }
}

impl Dialect for GeminiDialect {
    fn agent(&self) -> &'static str {
        "gemini"
    }

    fn tool(&self, call: &Call) -> Tool {
        let Some(name) = tool_name(&call.id) else {
            let name = if call.kind.is_empty() { "tool" } else { call.kind.as_str() };
            return Tool {
                name: name.to_owned(),
                other_name: None,
                server: None,
                kind: kind_of(&call.kind),
                input: call.input(),
            };
        };
        let tool = tools::tool_use(&call.id, name, input(name, call), &self.servers.names);
        // Tools that the CLI discovers at runtime have unknown names.
        let kind = if tool.kind == ToolKind::Unclassified { kind_of(&call.kind) } else { tool.kind };
        Tool {
            name: tool.tool_name.into_string(),
            other_name: None,
            server: tool.server.map(Into::into),
            kind,
            input: tool.input,
        }
    }

    /// A command that exits with an error is reported as a success, so the result of a command is unknown.
    fn is_error(&self, call: &Call, failed: bool) -> Option<bool> {
        let unknown = !failed && tool_name(&call.id) == Some("run_shell_command");
        (!unknown).then_some(failed)
    }

    fn is_noise(&self, text: &str) -> bool {
        MODE_UPDATES.contains(&text)
    }

    /// `session/load` first creates a new file. Its name contains the current minute and the first eight characters of the requested
    /// id. In the minute in which the session started, this is the session's own file, and its history is lost
    /// (`acp_load_same_minute`). A space before the id changes the file's name. The search for the session ignores the space.
    fn wire_session_id(&self, id: &str) -> String {
        format!(" {id}")
    }

    fn replays_after_opening(&self) -> bool {
        true
    }

    fn is_configured_at_start(&self) -> bool {
        true
    }

    fn requires_text(&self) -> bool {
        true
    }

    fn answers_in_order(&self) -> bool {
        true
    }

    fn permits_by_settings(&self) -> bool {
        true
    }

    fn option_rank(&self, option: &str) -> u8 {
        match option {
            "proceed_always_and_save" => 2,
            "proceed_always_server" => 1,
            _ => 0,
        }
    }

    fn check_prompt(&self, prompt: &Prompt) -> Result<(), RequestError> {
        let text = prompt.text.trim();
        let command = text.strip_prefix(['/', '$']).and_then(|rest| rest.split_whitespace().next());
        match command.filter(|name| self.prompt_mode == PromptMode::Literal && COMMANDS.contains(name)) {
            Some(name) => {
                let why = format!("in a session the CLI runs {name:?} itself; use mode exec");
                Err(unsupported("this prompt literally", why))
            }
            None => Ok(()),
        }
    }

    fn diagnostic(&mut self, line: &[u8], actions: &mut Vec<Action>) -> Option<Failure> {
        let (server, error) = log::failed_server(std::str::from_utf8(line).ok()?)?;
        self.servers.failed(server, "failed", &format!("did not start: {error}"), actions)
    }

    fn visible_stderr(&self, stderr: &str) -> Option<String> {
        Some(log::without(stderr))
    }

    fn classify_exit(&self, exit: ExitReport<'_>) -> Option<Classification> {
        failure::of_exit(exit)
    }
}

/// Returns the tool's name of `NAME__ID`. The id repeats the name, unless the model generated it.
fn tool_name(id: &str) -> Option<&str> {
    let names = || id.match_indices("__").filter_map(|(at, _)| Some((id.get(..at)?, id.get(at + 2..)?)));
    let repeated = names().find(|(name, rest)| rest.starts_with(name));
    repeated.or_else(|| names().next()).map(|(name, _)| name).filter(|name| !name.is_empty())
}

/// Returns the arguments, if the title or the content of the call contains them. Otherwise returns what the call shows.
fn input(name: &str, call: &Call) -> RawJson {
    let written = || {
        let diff = call.diffs().next()?;
        Some(json!({"file_path": diff.text_member("path")?, "content": diff.text_member("newText")?}))
    };
    match name {
        "run_shell_command" if !call.title.is_empty() => command(&call.title, call.text().as_deref()).into(),
        "write_file" => written().map_or_else(|| call.input(), RawJson::from),
        // The content contains the arguments of an MCP tool, unless they are long.
        _ if name.starts_with("mcp_") => match call.text() {
            Some(text) if text.starts_with('{') => serde_json::from_str(&text).unwrap_or_else(|_| call.input()),
            Some(text) => json!({"title": call.title, "details": text}).into(),
            None => call.input(),
        },
        _ => call.input(),
    }
}

/// Returns the input of a shell command. The details are `[current working directory DIR]` or `[in DIR]`, then optionally
/// ` (DESCRIPTION)` and ` [background]`. The model writes the DIR of the second form and the description. Ambiguous details are
/// returned unchanged, in a field that no allow rule accepts.
fn command(command: &str, details: Option<&str>) -> Value {
    let mut input = json!({ "command": command });
    let mut put =
        |name: &str, value: Value| input.as_object_mut().and_then(|fields| fields.insert(name.to_owned(), value));
    let Some(details) = details else { return input };
    let is_background = details.ends_with(" [background]");
    let certain = details.strip_prefix("[in ").filter(|rest| rest.matches(']').count() == 1);
    let description = |rest: &str| Some(rest.strip_prefix(" (")?.strip_suffix(')')?.to_owned());
    if details.starts_with("[current working directory ") {
        let rest = details.strip_suffix(" [background]").unwrap_or(details);
        if let Some(text) = rest.find("] (").and_then(|at| description(rest.get(at + 1..)?)) {
            put("description", text.into());
        }
        if is_background {
            put("is_background", true.into());
        }
    } else if let Some((dir, rest)) = certain.and_then(|rest| rest.split_once(']')) {
        put("dir_path", dir.into());
        if let Some(text) = description(rest) {
            put("description", text.into());
        }
    } else {
        put("details", details.into());
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;
    use teamster_types::request::McpServer;

    #[test]
    fn the_directory_of_a_command_is_part_of_its_input() {
        for (details, expected) in [
            (None, json!({})),
            (Some("[current working directory /p]"), json!({})),
            (Some("[current working directory /p] (a [b] c)"), json!({"description": "a [b] c"})),
            (
                Some("[current working directory /p] (d) [background]"),
                json!({"description": "d", "is_background": true}),
            ),
            (Some("[in /tmp/evil]"), json!({"dir_path": "/tmp/evil"})),
            (Some("[in sub] (what for)"), json!({"dir_path": "sub", "description": "what for"})),
            (Some("[in .] (a] (x)"), json!({"details": "[in .] (a] (x)"})),
            (Some("[in .] (d) [background]"), json!({"details": "[in .] (d) [background]"})),
            (Some("anything else"), json!({"details": "anything else"})),
        ] {
            let mut input = expected;
            input["command"] = "make".into();
            assert_eq!(command("make", details), input, "{details:?}");
        }
    }

    #[test]
    fn the_name_of_a_tool_is_read_from_the_calls_id() {
        for (id, name) in [
            ("run_shell_command__run_shell_command_1795308238187_0", Some("run_shell_command")),
            ("mcp_a__b_add__mcp_a__b_add_1795308238187_0", Some("mcp_a__b_add")),
            ("read_file__call_7", Some("read_file")),
            ("__x", None),
            ("read_file-1795308238187-1", None),
        ] {
            assert_eq!(tool_name(id), name, "{id}");
        }
    }

    #[test]
    fn a_servers_tool_never_has_the_name_of_a_built_in_tool_in_rules() {
        let servers = [("x".to_owned(), McpServer::stdio("x"))].into();
        let health = Health::new(&crate::agent::gemini::mcp::STYLE, &servers).unwrap();
        let dialect = GeminiDialect::new(health, PromptMode::Agent);
        for (id, name) in [
            ("write_file__write_file_1795308238187_0", "write_file"),
            ("mcp_x_write_file__mcp_x_write_file_1795308238187_0", "mcp__x__write_file"),
            ("mcp_x_mcp__x__y__mcp_x_mcp__x__y_1795308238187_0", "mcp__x__mcp__x__y"),
            ("mcp_theirs_write_file__mcp_theirs_write_file_1_0", "mcp__theirs__write_file"),
        ] {
            let mut call = Call::default();
            call.id = id.to_owned();
            assert_eq!(dialect.tool(&call).rule_name(), name, "{id}");
        }
    }
}
