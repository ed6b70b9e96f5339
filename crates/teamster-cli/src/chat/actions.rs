//! Executes the actions of the input box.

use std::time::Instant;

use super::backend::{Activity, Backend};
use super::command::{self, Line};
use super::completion::Candidates;
use super::state::{Chat, End, TaskResult};
use crate::input::{Action, CompletionRequest, Subject};
use crate::printable::{Printable, printable};

impl<B: Backend> Chat<'_, B> {
    pub(super) async fn act(&mut self, action: Action) -> Result<(), End> {
        match action {
            Action::Submit(text) => return self.submit(text).await,
            Action::SendNow(text) => return self.send_now(text).await,
            Action::SendWaiting => self.input.waiting.release(),
            // The request was answered or withdrawn.
            Action::Answer(text) => self.input.append(&text),
            Action::Stop if self.backend.activity() == Activity::Stopping && !B::IS_SHARED => {
                self.notify("the agent was asked to stop; Ctrl-C kills it");
            }
            Action::Stop => _ = B::stop(self),
            Action::Interrupt => return self.interrupt(),
            Action::Quit if self.is_working() && !B::IS_SHARED => self.notify("the agent works: Ctrl-C stops it"),
            Action::Quit => return Err(End::Quit),
            Action::OpenEditor => return self.edit_externally().await,
            Action::Complete(request) => self.complete(request),
            Action::Suspend => self.request_suspension(),
            Action::Redraw => self.page.clear(),
        }
        Ok(())
    }

    /// Executes a text, or lets it wait until it can be executed.
    async fn submit(&mut self, text: String) -> Result<(), End> {
        self.history_file.append(&text);
        let is_busy = !self.backend.is_ready() || !self.tasks.is_empty();
        let others_wait = !self.input.waiting.is_empty() && !self.input.waiting.is_held();
        if !is_busy && !others_wait {
            return self.execute(text, !self.page.is_live()).await;
        }
        if !self.page.is_live() {
            self.message(printable!("(after this turn: {})", Printable::message(&text)));
        }
        self.submitted = Some((Instant::now(), text.clone()));
        self.input.waiting.add(text);
        Ok(())
    }

    /// Sends a prompt into the running turn. Commands wait.
    async fn send_now(&mut self, text: String) -> Result<(), End> {
        let prompt = match command::parse(&text) {
            Line::Prompt(prompt) if self.is_working() => prompt,
            _ => return self.submit(text).await,
        };
        self.history_file.append(&text);
        if !self.page.is_live() {
            self.message("sending into the running turn");
        }
        self.input.waiting.begin_sending(prompt.clone());
        B::send_now(self, prompt);
        Ok(())
    }

    pub(super) fn on_task_result(&mut self, result: TaskResult) {
        match result {
            TaskResult::Message(text) => self.message(text),
            TaskResult::Failed(error) => self.message(Printable::error(&error)),
        }
    }

    /// Handles Ctrl-C: stops the agent, or discards the text. In an empty box, the second one quits.
    pub(super) fn interrupt(&mut self) -> Result<(), End> {
        if B::stop(self) {
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
        if self.is_working()
            && let Some(index) = self.actions.iter().position(requests_stop)
        {
            self.actions.remove(index);
            B::stop(self);
        }
    }

    /// Offers the commands, or the arguments of a command, while one is typed.
    pub(super) fn offer(&mut self) {
        if self.page.is_live()
            && let Some(request) = self.input.offerable()
        {
            let found = self.candidates().at_once(&request);
            self.input.offer(&request, found);
        }
    }

    fn candidates(&self) -> Candidates {
        Candidates {
            commands: B::COMMANDS,
            agents: self.backend.agents(),
            models: self.backend.models(),
            directory: self.files.clone(),
        }
    }

    fn complete(&mut self, request: CompletionRequest) {
        let candidates = self.candidates();
        if matches!(&request.subject, Subject::Command) {
            let found = candidates.of(&request);
            return self.input.complete(&request, found);
        }
        // Reading a directory can take long.
        self.completions.spawn_blocking(move || {
            let found = candidates.of(&request);
            (request, found)
        });
    }
}
