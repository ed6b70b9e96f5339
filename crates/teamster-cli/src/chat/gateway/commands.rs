//! The commands of a chat with a conversation of a gateway.

use serde_json::json;

use super::conversation::GatewayConversation;
use crate::chat::command::{Command, Line, name_of};
use crate::chat::state::Chat;
use crate::printable::{Printable, printable};

/// The commands that work here, with their arguments and their effects.
pub(super) const COMMANDS: &[Command] = &[
    Command::new("agent", " NAME", "let another agent answer from the next turn on", "use another agent"),
    Command::new("copy", "", "copy the last answer to the clipboard (OSC 52)", "copy the last answer"),
    Command::new("cost", "", "print tokens and cost of the turns shown here", "tokens and cost"),
    Command::new("export", " FILE", "write the turns shown here to a new Markdown file", "write Markdown"),
    Command::new("help", "", "print this help", "this help"),
    Command::new("model", " [NAME]", "use another model; without a name: print the current one", "set or print it"),
    Command::new("permission", " [MODE]", "set the mode: read-only, ask, edit or full; or print it", "set or print it"),
    Command::new("quit", "", "leave; a running turn continues. Ctrl-D does the same", "leave; turns continue"),
    Command::new("exit", "", "leave", "leave"),
    Command::new("tools", "", "print the tool calls of the last turn, whole", "last turn's calls"),
    Command::new("/", "TEXT", "send /TEXT to the agent, for the agent's own commands", "send /TEXT as it is"),
];

impl Chat<'_, GatewayConversation> {
    /// Executes a command of the conversation, or prints what to do instead.
    pub(super) fn execute_in_conversation(&mut self, line: Line) {
        let selected =
            |value: &Option<String>| value.as_deref().map_or_else(|| "the gateway's default".into(), Printable::exact);
        let conversation = &self.backend.conversation;
        let text = match line {
            Line::Model(Some(model)) => {
                return self.change(printable!("the model {}", Printable::exact(&model)), json!({ "model": model }));
            }
            Line::Agent(Some(agent)) => {
                // The model belongs to the previous agent.
                let change = json!({ "agent": agent.to_lowercase(), "model": null });
                return self.change(printable!("the agent {}", Printable::exact(&agent)), change);
            }
            Line::Permission(Some(mode)) => {
                return self.change(name_of(mode).into(), json!({ "permission": name_of(mode) }));
            }
            Line::Model(None) if conversation.model.is_none() => {
                self.model.clone().unwrap_or_else(|| selected(&None))
            }
            Line::Model(None) => selected(&conversation.model),
            Line::Agent(None) => printable!("{}; /agent NAME selects another one", Printable::exact(&conversation.agent)),
            Line::Permission(None) => {
                printable!("mode: {} (/permission MODE changes it)", selected(&conversation.permission))
            }
            Line::Resume(None) => printable!("this conversation: {}", Printable::exact(&conversation.id)),
            Line::New | Line::Clear => {
                "this chat stays in its conversation: teamster chat --conversation new starts another one; Ctrl-L \
                 clears the screen"
                    .into()
            }
            Line::Resume(Some(_)) | Line::Sessions { .. } => {
                "this chat stays in its conversation: teamster conversations lists the others, and teamster chat \
                 --conversation ID joins one"
                    .into()
            }
            Line::Compact(_) => {
                "a gateway sends prompts literally, so the agent executes no commands; it compacts its context by itself"
                    .into()
            }
            Line::Revoke(_) => "the agent keeps what was always allowed until its session in the gateway ends".into(),
            Line::Diff => "the files may be on another machine: use git diff in the directory of the gateway".into(),
            // The commands of every chat are executed before.
            _ => return,
        };
        self.message(text);
    }
}
