//! The loop of a chat: waits for keys, signals, and events of the turn, and handles them one by one.

use std::future::pending;
use std::time::Instant;

use termina::event::Modifiers;
use tokio::sync::oneshot;

use super::backend::{Activity, Backend, Phase};
use super::state::{Chat, End, Occurrence, TaskResult};
use super::terminal_signals::TerminalSignal;
use crate::input::Action;
use crate::printable::Printable;
use crate::runtime;
use crate::signals::Signal;
use crate::terminal::{KeyReader, TerminalInput};

impl<B: Backend> Chat<'_, B> {
    pub(super) async fn run(&mut self) -> End {
        B::introduce(self);
        loop {
            if let Err(end) = self.step().await {
                return end;
            }
        }
    }

    /// Executes what is due, and waits for the next occurrence.
    async fn step(&mut self) -> Result<(), End> {
        while let Some(action) = self.actions.pop_front() {
            self.act(action).await?;
        }
        B::start_next(self).await?;
        self.show();
        let occurrence = self.next_occurrence(Phase::Usual).await;
        self.on_occurrence(occurrence).await?;
        while let Some(request) = self.requests.pop_front() {
            self.ask(request).await?;
        }
        Ok(())
    }

    /// Waits for the next occurrence. While a request is shown, results of tasks wait.
    pub(super) async fn next_occurrence(&mut self, phase: Phase) -> Occurrence<B::Arrival> {
        let ticks = self.backend.activity() != Activity::Idle && self.page.is_live();
        let deadline = self.input.deadline().map(tokio::time::Instant::from_std);
        tokio::select! {
            (at, input) = next_input(&mut self.keys) => Occurrence::Input(at, input),
            () = runtime::sleep_until(deadline) => Occurrence::Settled,
            signal = self.signals.next() => Occurrence::Signal(signal),
            signal = self.terminal_signals.next() => Occurrence::Terminal(signal),
            arrival = self.backend.next(&self.page, phase) => Occurrence::Arrival(arrival),
            Some(result) = self.tasks.join_next(), if phase == Phase::Usual => match result {
                Ok(result) => Occurrence::Task(result),
                Err(error) => Occurrence::Task(TaskResult::Failed(error.into())),
            },
            Some(Ok((request, candidates))) = self.completions.join_next() => Occurrence::Completed(request, candidates),
            () = self.page.closed() => Occurrence::Closed,
            _ = self.ticks.tick(), if ticks => Occurrence::Tick,
        }
    }

    /// Handles an occurrence. Keys wait for the next step.
    pub(super) async fn on_occurrence(&mut self, occurrence: Occurrence<B::Arrival>) -> Result<(), End> {
        match occurrence {
            Occurrence::Input(at, input) => return self.receive(at, input),
            Occurrence::Settled => {
                let actions = self.input.settle();
                self.actions.extend(actions);
                self.offer();
            }
            Occurrence::Signal(signal) => return self.on_signal(signal),
            Occurrence::Terminal(TerminalSignal::Suspend) => return self.suspend().await,
            Occurrence::Terminal(TerminalSignal::Quit) => return self.on_signal(Signal::Terminate),
            Occurrence::Completed(request, candidates) => self.input.complete(&request, candidates),
            Occurrence::Tick => self.page.refresh(),
            Occurrence::Closed => return Err(End::NoTerminal),
            Occurrence::Arrival(arrival) => return B::receive(self, arrival),
            Occurrence::Task(result) => self.on_task_result(result),
            Occurrence::Terminal(TerminalSignal::Resized) => {}
        }
        Ok(())
    }

    /// Passes input to the input box. Its actions are executed by the next step.
    pub(super) fn receive(&mut self, at: Instant, input: TerminalInput) -> Result<(), End> {
        let actions = match input {
            TerminalInput::Key(key) => {
                (self.notice, self.last_key) = (None, Some(at));
                self.quit_is_announced &= key.modifiers == Modifiers::CONTROL;
                self.input.press(key, at)
            }
            TerminalInput::Paste(text) => {
                self.last_key = Some(at);
                self.input.paste(&text)
            }
            TerminalInput::Line(line) => {
                (self.prompt_is_shown, self.last_key) = (false, Some(at));
                self.input.line(&line, at)
            }
            TerminalInput::EndOfInput => vec![Action::Quit],
            TerminalInput::Barrier => Vec::new(),
            TerminalInput::Closed => return Err(End::NoTerminal),
        };
        self.actions.extend(actions);
        self.offer();
        Ok(())
    }

    /// Whether the agent works on a turn.
    pub(super) fn is_working(&self) -> bool {
        self.backend.activity() != Activity::Idle
    }

    /// Prints a message of the command itself.
    pub(super) fn message(&mut self, text: impl Into<Printable>) {
        if std::mem::take(&mut self.prompt_is_shown) {
            // The cursor is behind the prompt.
            self.page.prompt("\n".into());
        }
        self.page.message(text.into());
    }

    /// Shows a message next to the input box until the next key.
    pub(super) fn notify(&mut self, text: impl Into<Printable>) {
        if self.page.is_live() {
            self.notice = Some(text.into());
        } else {
            self.message(text);
        }
    }

    /// Waits for the writer, and handles signals and the keys that stop the agent meanwhile.
    pub(super) async fn wait_for_writer(&mut self, mut done: oneshot::Receiver<()>) -> Result<(), End> {
        loop {
            tokio::select! {
                done = &mut done => return done.map_err(|_| End::NoTerminal),
                signal = self.signals.next() => self.on_signal(signal)?,
                (at, input) = next_input(&mut self.keys) => {
                    self.receive(at, input)?;
                    self.stop_at_once();
                }
            }
        }
    }

    /// Handles a signal. Ctrl-C stops the agent, a second Ctrl-C kills it; other signals end the conversation.
    pub(super) fn on_signal(&mut self, signal: Signal) -> Result<(), End> {
        match signal {
            Signal::Interrupt => self.interrupt(),
            Signal::Terminate => {
                self.backend.terminate();
                Err(End::Stopped)
            }
        }
    }
}

/// Waits for the next input. Without a reader it waits forever. Cancel-safe.
async fn next_input(keys: &mut Option<KeyReader>) -> (Instant, TerminalInput) {
    match keys {
        Some(keys) => keys.next().await,
        None => pending().await,
    }
}
