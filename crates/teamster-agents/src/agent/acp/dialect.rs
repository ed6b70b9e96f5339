//! Differences between agents that use ACP.

use crate::agent::failure::Classification;
use crate::protocol::{Action, ExitReport};
use teamster_types::event::{Failure, ToolKind};
use teamster_types::request::{Prompt, RequestError};

use super::call::{Call, Tool, is_name_for, kind_of};

/// An agent's dialect of ACP. The defaults are those of an unknown agent.
pub(in crate::agent) trait Dialect: Send {
    /// The agent's name in Teamster.
    fn agent(&self) -> &str;

    /// Returns the tool of a call.
    fn tool(&self, call: &Call) -> Tool;

    /// Returns whether a call failed; `None` if that is unknown. `failed` is the status that the agent reported.
    fn is_error(&self, call: &Call, failed: bool) -> Option<bool> {
        _ = call;
        Some(failed)
    }

    /// Returns whether a message chunk was not written by the model.
    fn is_noise(&self, text: &str) -> bool {
        _ = text;
        false
    }

    /// Returns the id with which an old session is opened.
    fn wire_session_id(&self, id: &str) -> String {
        id.to_owned()
    }

    /// Returns whether the agent may replay the history of an old session after the response that opens it.
    fn replays_after_opening(&self) -> bool {
        false
    }

    /// Returns whether the launch already sets the requested permission mode and model.
    fn is_configured_at_start(&self) -> bool {
        false
    }

    /// Returns whether a turn without text is a failure, although the agent reports success. Otherwise a tool call, or a prompt that is
    /// a command of the agent, needs no text.
    fn requires_text(&self) -> bool {
        false
    }

    /// Returns whether the agent is known to write all of its answer before the response to the prompt.
    fn answers_in_order(&self) -> bool {
        false
    }

    /// Returns whether calls that start without a permission request are permitted by the settings with which the agent was started.
    fn permits_by_settings(&self) -> bool {
        false
    }

    /// Ranks permission options of one kind. The option with the lowest rank permits the least, and is selected.
    fn option_rank(&self, option: &str) -> u8 {
        _ = option;
        0
    }

    /// Rejects a prompt that the agent would not pass to its model unchanged.
    fn check_prompt(&self, prompt: &Prompt) -> Result<(), RequestError> {
        _ = prompt;
        Ok(())
    }

    /// Reads a line of the diagnostics. Returns a failure if the session cannot continue.
    fn diagnostic(&mut self, line: &[u8], actions: &mut Vec<Action>) -> Option<Failure> {
        _ = (line, actions);
        None
    }

    /// Returns the diagnostics that the caller sees; `None` means all.
    fn visible_stderr(&self, stderr: &str) -> Option<String> {
        _ = stderr;
        None
    }

    /// Classifies an exit within a turn, if its reason is known.
    fn classify_exit(&self, exit: ExitReport<'_>) -> Option<Classification> {
        _ = exit;
        None
    }
}

/// An unknown agent, with its name and its MCP servers.
#[derive(Debug)]
pub(super) struct UnknownAgent {
    pub(super) agent: String,
    pub(super) servers: Vec<String>,
}

impl Dialect for UnknownAgent {
    fn agent(&self) -> &str {
        &self.agent
    }

    fn tool(&self, call: &Call) -> Tool {
        let is_certain = |name: &String| !call.is_guess || is_name_for(name, &call.kind);
        let name = call.name.clone().filter(is_certain).unwrap_or_else(|| {
            let kind = if call.kind.is_empty() { "tool" } else { call.kind.as_str() };
            kind.to_owned()
        });
        let other_name = call.name.clone().filter(|other| *other != name);
        match self.server_of(&name) {
            Some((server, tool)) => Tool {
                name: tool.to_owned(),
                other_name,
                server: Some(server.to_owned()),
                kind: ToolKind::Mcp,
                input: call.input(),
            },
            None => Tool { name, other_name, server: None, kind: kind_of(&call.kind), input: call.input() },
        }
    }
}

impl UnknownAgent {
    /// Splits the name of a tool into the server and the tool: `mcp__SERVER__TOOL`, `SERVER_TOOL`, `SERVER/TOOL` or `SERVER.TOOL`.
    fn server_of<'a>(&'a self, name: &'a str) -> Option<(&'a str, &'a str)> {
        let bare = name.strip_prefix("mcp__").unwrap_or(name);
        let tool = |server: &str| {
            let rest = bare.strip_prefix(server)?;
            let tool = ["__", "_", "/", "."].iter().find_map(|separator| rest.strip_prefix(separator))?;
            (!tool.is_empty()).then_some(tool)
        };
        // The longest matching name, because one server's name may start with another's.
        let found = self.servers.iter().filter_map(|server| Some((server.as_str(), tool(server)?)));
        found.max_by_key(|(server, _)| server.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_gives_a_call_the_name_of_a_tool_only_if_its_kind_matches() {
        let agent = UnknownAgent { agent: "x".to_owned(), servers: vec!["calc".to_owned()] };
        for (title, kind, name, other) in [
            ("bash", "execute", "bash", None),
            ("read", "read", "read", None),
            ("list", "search", "list", None),
            ("my_tool", "other", "my_tool", None),
            ("calc_add", "other", "add", None),
            ("read", "execute", "execute", Some("read")),
            ("reboot", "execute", "execute", Some("reboot")),
            ("todo", "edit", "edit", Some("todo")),
            ("bash", "read", "read", Some("bash")),
            ("calc_add", "execute", "execute", Some("calc_add")),
        ] {
            let mut call = Call::default();
            (call.name, call.is_guess, call.kind) = (Some(title.to_owned()), true, kind.to_owned());
            let tool = agent.tool(&call);
            assert_eq!((tool.name.as_str(), tool.other_name.as_deref()), (name, other), "{title} {kind}");
            call.is_guess = false;
            assert_eq!(agent.tool(&call).other_name, None, "a reported name is certain: {title} {kind}");
        }
    }
}
