//! Executes the actions of the input box.

use std::sync::Arc;

use teamster::Sent;

use super::command::{self, Line};
use super::completion;
use super::state::{Chat, End, TaskResult};
use crate::input::{Action, CompletionRequest, Subject};
use crate::printable::{Printable, printable};

impl Chat<'_> {
    pub(super) async fn act(&mut self, action: Action) -> Result<(), End> {
        match action {
            Action::Submit(text) => return self.submit(text).await,
            Action::SendNow(text) => return self.send_now(text).await,
            Action::SendWaiting => self.input.waiting.release(),
            // The request was answered or withdrawn.
            Action::Answer(text) => self.input.append(&text),
            Action::Stop => match &self.turn {
                Some(turn) if turn.is_interrupted => self.notify("the agent was asked to stop; Ctrl-C kills it"),
                Some(_) => _ = self.stop_agent(),
                None => {}
            },
            Action::Interrupt => return self.interrupt(),
            Action::Quit if self.turn.is_some() => self.notify("the agent works: Ctrl-C stops it"),
            Action::Quit => return Err(End::Quit),
            Action::OpenEditor => return self.edit_externally().await,
            Action::Complete(request) => self.complete(request),
            Action::Suspend => self.request_suspension(),
            Action::Redraw => self.page.clear(),
        }
        Ok(())
    }

    /// Executes a text, or lets it wait for the end of the turn.
    async fn submit(&mut self, text: String) -> Result<(), End> {
        self.history_file.append(&text);
        let is_busy = self.turn.is_some() || !self.tasks.is_empty() || !self.next_turns.is_empty();
        let others_wait = !self.input.waiting.is_empty() && !self.input.waiting.is_held();
        if !is_busy && !others_wait {
            return self.execute(text, !self.page.is_live()).await;
        }
        if !self.page.is_live() {
            self.message(printable!("(after this turn: {})", Printable::message(&text)));
        }
        self.input.waiting.add(text);
        Ok(())
    }

    /// Sends a prompt into the running turn. Commands wait.
    async fn send_now(&mut self, text: String) -> Result<(), End> {
        let prompt = match command::parse(&text) {
            Line::Prompt(prompt) if self.turn.is_some() => prompt,
            _ => return self.submit(text).await,
        };
        self.history_file.append(&text);
        if !self.page.is_live() {
            self.message("sending into the running turn");
        }
        self.input.waiting.begin_sending(prompt.clone());
        let session = Arc::clone(&self.session);
        self.tasks.spawn(async move {
            let sent = session.send_now(prompt.as_str()).await;
            TaskResult::Sent(prompt, sent)
        });
        Ok(())
    }

    pub(super) fn on_task_result(&mut self, result: TaskResult) {
        if let TaskResult::Sent(prompt, _) = &result {
            self.input.waiting.end_sending(prompt);
        }
        match result {
            TaskResult::Sent(prompt, Ok(Sent::Steered)) => {
                self.print_prompt(&prompt);
                self.record.steer(prompt);
                self.notify("sent into the running turn");
            }
            TaskResult::Sent(prompt, Ok(Sent::Turn(run))) => {
                self.notify("the running turn did not take it: it is the next turn");
                self.next_turns.push_back((Some(prompt), *run));
            }
            TaskResult::Sent(prompt, Err(error)) => {
                self.notify(printable!("not sent: {}", Printable::error(&error)));
                self.input.waiting.add_first(prompt);
                self.input.waiting.hold();
            }
            TaskResult::Sent(prompt, Ok(_)) => self.record.steer(prompt),
            TaskResult::Message(text) => self.message(text),
            TaskResult::Failed(error) => self.message(Printable::error(&error)),
        }
    }

    /// Handles Ctrl-C: stops the agent, or discards the text. In an empty box, the second one quits.
    pub(super) fn interrupt(&mut self) -> Result<(), End> {
        if self.stop_agent() {
            return Ok(());
        }
        if self.input.discard_text() {
            self.notify("the text was discarded; Up brings it back");
        } else if std::mem::replace(&mut self.quit_is_announced, true) {
            return Err(End::Quit);
        } else {
            self.notify("press Ctrl-C again, or Ctrl-D, to quit");
        }
        Ok(())
    }

    /// Stops the agent if a key requests it that is not executed yet.
    pub(super) fn stop_at_once(&mut self) {
        let requests_stop = |action: &Action| matches!(action, Action::Stop | Action::Interrupt);
        if self.turn.is_some()
            && let Some(index) = self.actions.iter().position(requests_stop)
        {
            self.actions.remove(index);
            self.stop_agent();
        }
    }

    fn complete(&mut self, request: CompletionRequest) {
        let agents: Vec<String> = self.plan.runtime.registry().names().map(str::to_owned).collect();
        let directory = self.directory.clone();
        if matches!(&request.subject, Subject::Command) {
            let found = completion::candidates(&request, &agents, &directory);
            return self.input.complete(&request, found);
        }
        // Reading a directory can take long.
        self.completions.spawn_blocking(move || {
            let found = completion::candidates(&request, &agents, &directory);
            (request, found)
        });
    }
}
