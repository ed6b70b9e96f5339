//! What differs between agents that speak ACP.

use crate::agent::failure::Classification;
use crate::protocol::{Action, ExitReport};
use teamster_types::event::{Failure, ToolKind};
use teamster_types::request::{Prompt, RequestError};

use super::calls::{Call, Tool, is_name_for, kind_of};

/// An agent's way of speaking ACP. The defaults are those of an agent of which nothing is known.
pub(in crate::agent) trait Dialect: Send {
    /// The agent's name in Teamster.
    fn agent(&self) -> &str;

    /// The tool that a call is of.
    fn tool(&self, call: &Call) -> Tool;

    /// Whether a call that is over failed, where that can be told.
    fn failed(&self, call: &Call, failed: bool) -> Option<bool> {
        _ = call;
        Some(failed)
    }

    /// Whether a piece of the answer is none of the model's.
    fn is_noise(&self, text: &str) -> bool {
        _ = text;
        false
    }

    /// By which id an old session is to be asked for.
    fn old_session(&self, id: &str) -> String {
        id.to_owned()
    }

    /// Whether the history of an old session may be told again after it was opened.
    fn replays_late(&self) -> bool {
        false
    }

    /// Whether permission modes and models of the request were seen to when the process was started.
    fn is_set_at_start(&self) -> bool {
        false
    }

    /// Whether a turn without an answer is a failure, though the agent says that all is well.
    fn owes_an_answer(&self) -> bool {
        false
    }

    /// How far an option goes among those that do the same; the one that goes least far is taken.
    fn rank(&self, option: &str) -> u8 {
        _ = option;
        0
    }

    /// Checks a prompt.
    fn check(&self, prompt: &Prompt) -> Result<(), RequestError> {
        _ = prompt;
        Ok(())
    }

    /// Hears a line beside the protocol. Gives the failure of the session, if it cannot go on.
    fn diagnostic(&mut self, line: &[u8], actions: &mut Vec<Action>) -> Option<Failure> {
        _ = (line, actions);
        None
    }

    /// What of the diagnostics callers see; all if `None`.
    fn visible_stderr(&self, stderr: &str) -> Option<String> {
        _ = stderr;
        None
    }

    /// Why the CLI exited in a turn, if that is known.
    fn of_exit(&self, exit: ExitReport<'_>) -> Option<Classification> {
        _ = exit;
        None
    }
}

/// An agent of which nothing is known but its name and the MCP servers that it was given.
#[derive(Debug)]
pub(super) struct Unknown {
    pub(super) agent: String,
    pub(super) servers: Vec<String>,
}

impl Dialect for Unknown {
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

impl Unknown {
    /// The server and the tool of a name that is made of both: `mcp__SERVER__TOOL`, `SERVER_TOOL` and the like.
    fn server_of<'a>(&'a self, name: &'a str) -> Option<(&'a str, &'a str)> {
        let bare = name.strip_prefix("mcp__").unwrap_or(name);
        let tool = |server: &str| {
            let rest = bare.strip_prefix(server)?;
            let tool = ["__", "_", "/", "."].iter().find_map(|separator| rest.strip_prefix(separator))?;
            (!tool.is_empty()).then_some(tool)
        };
        // The longest name that fits: one server's may begin with another's.
        let found = self.servers.iter().filter_map(|server| Some((server.as_str(), tool(server)?)));
        found.max_by_key(|(server, _)| server.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_that_the_model_may_have_written_gives_no_other_sort_of_work_a_name_that_is_allowed() {
        let agent = Unknown { agent: "x".to_owned(), servers: vec!["calc".to_owned()] };
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
            assert_eq!(agent.tool(&call).other_name, None, "what the agent tells is its name: {title} {kind}");
        }
    }
}
