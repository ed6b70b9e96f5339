//! Executes commands.

use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use teamster::request::{Conversation, PermissionMode, PromptMode};

use super::command::{self, Line, name_of};
use super::git_diff;
use super::record::Record;
use super::state::{Chat, End, TaskResult};
use super::usage_totals::UsageTotals;
use crate::printable::{Printable, printable};
use crate::render::width_of_stdout;

/// The largest text that terminals accept for their clipboard.
const MAX_COPIED_BYTES: usize = 74_994;

/// The agent whose `/compact` works in a session. The others have no command for it there.
const AGENT_WITH_COMPACT: &str = "claude";

impl Chat<'_> {
    /// Sends a prompt or executes a command. With `is_shown`, the terminal shows the text already.
    pub(super) async fn execute(&mut self, text: String, is_shown: bool) -> Result<(), End> {
        let line = command::parse(&text);
        if !is_shown && line != Line::Empty {
            self.print_prompt(&text);
        }
        match line {
            Line::Empty => {}
            Line::Prompt(text) => self.send(text),
            Line::Help => self.message(command::help(self.page.is_live())),
            Line::Cost => self.message(self.totals.summary()),
            Line::Quit => return Err(End::Quit),
            Line::Invalid(problem) => self.message(problem),
            Line::New => return self.start_conversation(self.plan.agent.clone(), Conversation::New).await,
            Line::Clear => {
                self.page.clear();
                return self.start_conversation(self.plan.agent.clone(), Conversation::New).await;
            }
            Line::Resume(Some(id)) => return self.resume(id).await,
            Line::Sessions { all } => self.list_sessions(all),
            Line::Resume(None) => {
                let id = self.session.id().map_or_else(|| "no id yet".into(), |id| Printable::exact(id.as_str()));
                self.message(printable!(
                    "this conversation: {}; /resume ID resumes another one, and /sessions lists them",
                    id
                ));
            }
            Line::Agent(Some(agent)) => {
                return self.start_conversation(agent.to_lowercase(), Conversation::New).await;
            }
            Line::Agent(None) => {
                let names = Printable::join(self.plan.runtime.registry().names().map(Printable::exact), ", ");
                let agent = &self.plan.agent;
                self.message(printable!("{}; /agent NAME starts a conversation with another agent: {}", agent, names));
            }
            Line::Compact(instructions) => self.compact(instructions.as_deref()),
            Line::Model(model) => self.set_model(model),
            Line::Permission(Some(mode)) => self.set_permission_mode(mode),
            Line::Permission(None) => self.list_permissions(),
            Line::Revoke(number) => self.revoke(number),
            Line::Tools => {
                let calls = self.record.calls_of_last_turn(&self.directory, width_of_stdout());
                self.message(calls.unwrap_or_else(|| "the last turn has no tool calls".into()));
            }
            Line::Diff => self.diff(),
            Line::Copy => self.copy(),
            Line::Export(file) => self.export(&file),
        }
        Ok(())
    }

    fn set_model(&mut self, model: Option<String>) {
        let Some(model) = model else {
            let model = self.plan.request.model.as_deref().map(Printable::exact).or_else(|| self.model.clone());
            return self.message(model.unwrap_or_else(|| "the agent's default".into()));
        };
        match self.session.set_model(model.clone()) {
            Ok(()) => {
                self.journal.set_model(model.clone());
                self.plan.request.model = Some(model);
                self.message("the model is used from the next turn on");
            }
            Err(error) => self.message(Printable::error(&error)),
        }
    }

    fn set_permission_mode(&mut self, mode: PermissionMode) {
        match self.session.set_permission_mode(mode) {
            Ok(()) => {
                self.plan.request.permissions.mode = mode;
                self.message(printable!("{} from the next turn on", name_of(mode)));
            }
            Err(error) => self.message(Printable::error(&error)),
        }
    }

    fn compact(&mut self, instructions: Option<&str>) {
        let agent = &self.plan.agent;
        if agent != AGENT_WITH_COMPACT {
            let text = "has no command for this here: it compacts its conversation by itself when the context is full";
            return self.message(printable!("{} {}", agent, text));
        }
        if self.plan.request.prompt_mode == PromptMode::Literal {
            return self.message("with --prompt-mode literal the agent executes no commands, so it cannot compact");
        }
        if self.record.is_empty() && self.plan.request.conversation == Conversation::New {
            return self.message("there is no conversation to compact yet");
        }
        self.send(instructions.map_or_else(|| "/compact".to_owned(), |text| format!("/compact {text}")));
    }

    /// Starts another conversation. If that fails, the current one continues.
    pub(super) async fn start_conversation(&mut self, agent: String, conversation: Conversation) -> Result<(), End> {
        let mut request = self.plan.request.clone();
        request.conversation = conversation;
        if agent != self.plan.agent {
            // These settings are specific to the previous agent.
            (request.model, request.effort, request.cli_path) = (None, None, None);
            request.cli_args.clear();
        }
        let session = match self.plan.runtime.open(&agent, request.clone()) {
            Ok(session) => session,
            Err(error) => {
                self.message(Printable::error(&error));
                return Ok(());
            }
        };
        let old = std::mem::replace(&mut self.session, Arc::new(session));
        (self.plan.agent, self.plan.request, self.totals) = (agent, request, UsageTotals::default());
        (self.record, self.model) = (Record::default(), None);
        self.journal.start_conversation(&self.plan.agent, &self.plan.request);
        tokio::select! {
            () = old.close() => {}
            signal = self.signals.next() => self.on_signal(signal)?,
        }
        let is_new = self.plan.request.conversation == Conversation::New;
        let what = if is_new { "new conversation" } else { "conversation" };
        self.message(printable!("{} with {}", what, &self.plan.agent));
        Ok(())
    }

    fn diff(&mut self) {
        let directory = self.directory.clone();
        self.tasks.spawn(async move {
            TaskResult::Message(git_diff::diff(&directory).await.unwrap_or_else(|problem| problem))
        });
    }

    fn copy(&mut self) {
        let Some(answer) = self.record.last_answer().map(str::to_owned) else {
            return self.message("there is no answer yet");
        };
        if !self.page.is_live() {
            return self.message("this terminal has no clipboard for commands");
        }
        if answer.len() > MAX_COPIED_BYTES {
            return self.message(printable!(
                "the answer has {} bytes, and terminals accept {}: /export FILE writes it to a file",
                answer.len(),
                MAX_COPIED_BYTES
            ));
        }
        let count = answer.chars().count();
        self.page.copy(answer);
        self.message(printable!("copied {} characters, if the terminal allows it (OSC 52)", count));
    }

    fn export(&mut self, file: &str) {
        if self.record.is_empty() {
            return self.message("there is nothing to export yet");
        }
        let path = match (file.strip_prefix("~/"), std::env::var_os("HOME")) {
            (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
            _ => self.directory.join(file),
        };
        let is_resumed = self.plan.request.conversation != Conversation::New;
        let id = self.session.id();
        let id = id.as_ref().map(teamster::event::SessionId::as_str);
        let text = self.record.markdown(&self.plan.agent, id, &self.directory, is_resumed);
        self.tasks.spawn_blocking(move || {
            TaskResult::Message(match write_new(&path, &text) {
                Ok(()) => printable!("wrote {}", &path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    printable!("{} exists already: name another file", &path)
                }
                Err(error) => printable!("cannot write {}: {}", &path, Printable::error(&error)),
            })
        });
    }
}

/// Writes a file that does not exist yet, and that only the user can read. A file that cannot be written whole is removed.
fn write_new(path: &PathBuf, text: &str) -> io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        _ = std::fs::remove_file(path);
    }
    written
}
