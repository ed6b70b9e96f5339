//! Executes the commands that change the session.

use std::sync::Arc;

use teamster::request::{Conversation, PermissionMode, PromptMode};

use super::LocalSession;
use crate::chat::command::{Line, name_of};
use crate::chat::git_diff;
use crate::chat::record::Record;
use crate::chat::state::{Chat, End, TaskResult};
use crate::chat::usage_totals::UsageTotals;
use crate::printable::{Printable, printable};
use crate::render::width_of_stdout;

/// The agent whose `/compact` works in a session. The others have no command for it there.
const AGENT_WITH_COMPACT: &str = "claude";

impl Chat<'_, LocalSession> {
    /// Executes a command of the session.
    pub(super) async fn execute_in_session(&mut self, line: Line) -> Result<(), End> {
        match line {
            Line::New => return self.start_conversation(self.backend.plan.agent.clone(), Conversation::New).await,
            Line::Clear => {
                self.page.clear();
                return self.start_conversation(self.backend.plan.agent.clone(), Conversation::New).await;
            }
            Line::Resume(Some(id)) => return self.resume(id).await,
            Line::Sessions { all } => self.list_sessions(all),
            Line::Resume(None) => {
                let id = self.backend.id().map_or_else(|| "no id yet".into(), |id| Printable::exact(id.as_str()));
                let text =
                    printable!("this conversation: {}; /resume ID resumes another one, and /sessions lists them", id);
                self.message(text.wrapped(width_of_stdout(), 0));
            }
            Line::Agent(Some(agent)) => {
                return self.start_conversation(agent.to_lowercase(), Conversation::New).await;
            }
            Line::Agent(None) => {
                let names = Printable::join(self.backend.plan.runtime.registry().names().map(Printable::exact), ", ");
                let agent = &self.backend.plan.agent;
                self.message(printable!("{}; /agent NAME starts a conversation with another agent: {}", agent, names));
            }
            Line::Compact(instructions) => self.compact(instructions.as_deref()),
            Line::Model(model) => self.set_model(model),
            Line::Permission(Some(mode)) => self.set_permission_mode(mode),
            Line::Permission(None) => self.list_permissions(),
            Line::Revoke(number) => self.revoke(number),
            Line::Diff => self.diff(),
            // The commands of every chat are executed before.
            _ => {}
        }
        Ok(())
    }

    fn set_model(&mut self, model: Option<String>) {
        let Some(model) = model else {
            let model = self.backend.plan.request.model.as_deref().map(Printable::exact).or_else(|| self.model.clone());
            return self.message(model.unwrap_or_else(|| "the agent's default".into()));
        };
        match self.backend.session.set_model(model.clone()) {
            Ok(()) => {
                self.backend.journal.set_model(model.clone());
                self.backend.plan.request.model = Some(model);
                self.message("the model is used from the next turn on");
            }
            Err(error) => self.message(Printable::error(&error)),
        }
    }

    fn set_permission_mode(&mut self, mode: PermissionMode) {
        match self.backend.session.set_permission_mode(mode) {
            Ok(()) => {
                self.backend.plan.request.permissions.mode = mode;
                self.message(printable!("{} from the next turn on", name_of(mode)));
            }
            Err(error) => self.message(Printable::error(&error)),
        }
    }

    fn compact(&mut self, instructions: Option<&str>) {
        let agent = &self.backend.plan.agent;
        if agent != AGENT_WITH_COMPACT {
            let text = "has no command for this here: it compacts its conversation by itself when the context is full";
            return self.message(printable!("{} {}", agent, text));
        }
        if self.backend.plan.request.prompt_mode == PromptMode::Literal {
            return self.message("with --prompt-mode literal the agent executes no commands, so it cannot compact");
        }
        if self.record.is_empty() && self.backend.plan.request.conversation == Conversation::New {
            return self.message("there is no conversation to compact yet");
        }
        self.send_prompt(instructions.map_or_else(|| "/compact".to_owned(), |text| format!("/compact {text}")));
    }

    /// Starts another conversation. If that fails, the current one continues.
    pub(super) async fn start_conversation(&mut self, agent: String, conversation: Conversation) -> Result<(), End> {
        let mut request = self.backend.plan.request.clone();
        request.conversation = conversation;
        if agent != self.backend.plan.agent {
            // These settings are specific to the previous agent.
            (request.model, request.effort, request.cli_path) = (None, None, None);
            request.cli_args.clear();
        }
        let session = match self.backend.plan.runtime.open(&agent, request.clone()) {
            Ok(session) => session,
            Err(error) => {
                self.message(Printable::error(&error));
                return Ok(());
            }
        };
        let old = std::mem::replace(&mut self.backend.session, Arc::new(session));
        (self.backend.plan.agent, self.backend.plan.request, self.totals) = (agent, request, UsageTotals::default());
        self.backend.accepted_model.clone_from(&self.backend.plan.request.model);
        let plan = &self.backend.plan;
        plan.saved_rules.allow_in(&self.backend.session, &plan.agent);
        (self.record, self.model) = (Record::default(), None);
        self.backend.journal.start_conversation(&self.backend.plan.agent, &self.backend.plan.request);
        tokio::select! {
            () = old.close() => {}
            signal = self.signals.next() => self.on_signal(signal)?,
        }
        let is_new = self.backend.plan.request.conversation == Conversation::New;
        let what = if is_new { "new conversation" } else { "conversation" };
        self.message(printable!("{} with {}", what, &self.backend.plan.agent));
        Ok(())
    }

    fn diff(&mut self) {
        let directory = self.directory.clone();
        self.tasks.spawn(async move {
            TaskResult::Message(git_diff::diff(&directory).await.unwrap_or_else(|problem| problem))
        });
    }
}
