//! Gemini CLI's session form: ACP, by `gemini --acp`, as 0.61.0 speaks it.
//!
//! What it says of a tool call is a title: the tool's name stands in the call's id, and arguments are known of few tools.
//! Tokens are told as a sum in which cached ones cannot be told apart, so no usage is told.

use serde_json::{Value, json};

use super::{failure, log, tools};
use crate::agent::acp::dialect::Dialect;
use crate::agent::acp::{Call, Tool, kind_of};
use crate::agent::failure::Classification;
use crate::agent::mcp::Health;
use crate::protocol::{Action, ExitReport};
use teamster_types::event::{Failure, ToolKind};
use teamster_types::json::RawJson;
use teamster_types::request::{Prompt, PromptMode, RequestError};

use super::unsupported;

/// What it runs itself when a prompt begins with `/` or `$` and one of these. Whatever else begins so goes to the model.
const COMMANDS: &[&str] = &["memory", "extensions", "init", "restore", "about", "help"];

/// Pieces of an answer that are none of the model's.
const MODE_UPDATES: &[&str] =
    &["[MODE_UPDATE] default", "[MODE_UPDATE] autoEdit", "[MODE_UPDATE] yolo", "[MODE_UPDATE] plan"];

/// How Gemini CLI speaks ACP.
pub(super) struct Live {
    servers: Health,
    prompt_mode: PromptMode,
}

impl Live {
    pub(super) fn new(servers: Health, prompt_mode: PromptMode) -> Self {
        Self { servers, prompt_mode }
    }
}

impl Dialect for Live {
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
        // Tools that it discovers have names of which nothing is known.
        let kind = if tool.kind == ToolKind::Unclassified { kind_of(&call.kind) } else { tool.kind };
        Tool {
            name: tool.tool_name.into_string(),
            other_name: None,
            server: tool.server.map(Into::into),
            kind,
            input: tool.input,
        }
    }

    /// A command that exits with an error is a success here, so nothing is said of one.
    fn failed(&self, call: &Call, failed: bool) -> Option<bool> {
        let unknown = !failed && tool_name(&call.id) == Some("run_shell_command");
        (!unknown).then_some(failed)
    }

    fn is_noise(&self, text: &str) -> bool {
        MODE_UPDATES.contains(&text)
    }

    /// A session that is loaded is first begun anew, in a file that has the minute in its name, and the first eight
    /// characters of the id that was asked for. In the minute in which the session began that is its own file, whose
    /// history is lost by it (`acp_load_same_minute`). With a space before the id the file is another one; the session is
    /// looked for without it.
    fn old_session(&self, id: &str) -> String {
        format!(" {id}")
    }

    fn replays_late(&self) -> bool {
        true
    }

    fn is_set_at_start(&self) -> bool {
        true
    }

    fn owes_an_answer(&self) -> bool {
        true
    }

    fn rank(&self, option: &str) -> u8 {
        match option {
            "proceed_always_and_save" => 2,
            "proceed_always_server" => 1,
            _ => 0,
        }
    }

    fn check(&self, prompt: &Prompt) -> Result<(), RequestError> {
        let text = prompt.text.trim();
        let command = text.strip_prefix(['/', '$']).and_then(|rest| rest.split_whitespace().next());
        match command.filter(|word| self.prompt_mode == PromptMode::Literal && COMMANDS.contains(word)) {
            Some(word) => {
                let why = format!("in a session that lives the CLI runs {word:?} itself; take mode exec");
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

    fn of_exit(&self, exit: ExitReport<'_>) -> Option<Classification> {
        failure::of_exit(exit)
    }
}

/// `NAME__ID`, where the id begins with the name unless the model gave it.
fn tool_name(id: &str) -> Option<&str> {
    let names = || id.match_indices("__").filter_map(|(at, _)| Some((id.get(..at)?, id.get(at + 2..)?)));
    let said_twice = names().find(|(name, rest)| rest.starts_with(name));
    said_twice.or_else(|| names().next()).map(|(name, _)| name).filter(|name| !name.is_empty())
}

/// The arguments, of tools whose title or content has them all; else what is shown.
fn input(name: &str, call: &Call) -> RawJson {
    let written = || {
        let diff = call.diffs().next()?;
        Some(json!({"file_path": diff.text_member("path")?, "content": diff.text_member("newText")?}))
    };
    match name {
        "run_shell_command" if !call.title.is_empty() => command(&call.title, call.text().as_deref()).into(),
        "write_file" => written().map_or_else(|| call.input(), RawJson::from),
        // The arguments of a server's tool, unless they are long.
        _ if name.starts_with("mcp_") => match call.text() {
            Some(text) if text.starts_with('{') => serde_json::from_str(&text).unwrap_or_else(|_| call.input()),
            Some(text) => json!({"title": call.title, "details": text}).into(),
            None => call.input(),
        },
        _ => call.input(),
    }
}

/// A command, where it runs, and what else is said of it: `[current working directory DIR]` or `[in DIR]`, then ` (DESCRIPTION)`
/// and ` [background]`. The model chooses DIR in the latter and the description: where it could be read in two ways, it is
/// given as it is, and no allow rule means it.
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
    fn where_a_command_runs_is_a_part_of_its_input() {
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
            let mut wanted = expected;
            wanted["command"] = "make".into();
            assert_eq!(command("make", details), wanted, "{details:?}");
        }
    }

    #[test]
    fn the_name_of_a_tool_stands_in_its_id() {
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
    fn a_tool_of_a_server_never_has_the_name_of_a_built_in_tool_in_rules() {
        let servers = [("x".to_owned(), McpServer::stdio("x"))].into();
        let live = Live::new(Health::new(&crate::agent::gemini::mcp::STYLE, &servers).unwrap(), PromptMode::Agent);
        for (id, name) in [
            ("write_file__write_file_1795308238187_0", "write_file"),
            ("mcp_x_write_file__mcp_x_write_file_1795308238187_0", "mcp__x__write_file"),
            ("mcp_x_mcp__x__y__mcp_x_mcp__x__y_1795308238187_0", "mcp__x__mcp__x__y"),
            ("mcp_theirs_write_file__mcp_theirs_write_file_1_0", "mcp__theirs__write_file"),
        ] {
            let mut call = Call::default();
            call.id = id.to_owned();
            assert_eq!(live.tool(&call).rule_name(), name, "{id}");
        }
    }
}
