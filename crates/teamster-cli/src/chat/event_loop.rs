//! The loop of a chat: waits for keys, signals, and events of the turn, and handles them one by one.

use std::future::pending;
use std::time::Instant;

use anstyle::{AnsiColor, Style};
use teamster::Readiness;
use termina::event::Modifiers;
use tokio::sync::oneshot;

use super::page::Page;
use super::state::{Chat, End, Occurrence, TaskResult, Turn, TurnItem};
use super::terminal_signals::TerminalSignal;
use crate::input::Action;
use crate::plan::SessionPlan;
use crate::printable::{Printable, printable};
use crate::render::width_of_stdout;
use crate::runtime;
use crate::signals::Signal;
use crate::terminal::{KeyReader, TerminalInput};
use crate::vendor;

const CAUTION: Style = AnsiColor::Yellow.on_default();

/// Returns how to log in, if the agent's usual program has no login. Only variables and files are checked.
fn missing_login(plan: &SessionPlan) -> Option<Printable> {
    let has_own_login = plan.request.cli_path.is_some() || !plan.request.env.is_empty();
    let readiness = plan.runtime.readiness(&plan.agent).ok().filter(|_| !has_own_login)?;
    let login = vendor::login_here(&plan.agent).filter(|_| readiness == Readiness::NoCredentials)?;
    Some(printable!("{} {}: no login found; {}", Printable::from("!").styled(CAUTION), &plan.agent, login))
}

impl Chat<'_> {
    pub(super) async fn run(&mut self) -> End {
        self.message(printable!("{}: /help lists the commands, Ctrl-D quits", &self.plan.agent));
        if let Some(notice) = missing_login(&self.plan) {
            self.message(notice);
        }
        if let Some(resumed) = self.plan.resumed.take() {
            self.message(resumed.summary(width_of_stdout()));
        }
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
        self.start_next().await?;
        self.show();
        match self.next_occurrence(true).await {
            Occurrence::Turn(item) => self.on_turn_item(item).await,
            Occurrence::AgentTurn(run) => {
                self.start_agent_turn(run);
                Ok(())
            }
            Occurrence::Task(result) => {
                self.on_task_result(result);
                Ok(())
            }
            other => self.on_occurrence(other).await,
        }
    }

    /// Waits for the next occurrence. Without `with_turns`, everything of the agent waits.
    pub(super) async fn next_occurrence(&mut self, with_turns: bool) -> Occurrence {
        let background = with_turns && self.plan.request.background_tasks;
        let ticks = self.turn.is_some() && self.page.is_live();
        let deadline = self.input.deadline().map(tokio::time::Instant::from_std);
        tokio::select! {
            (at, input) = next_input(&mut self.keys) => Occurrence::Input(at, input),
            () = runtime::sleep_until(deadline) => Occurrence::Settled,
            signal = self.signals.next() => Occurrence::Signal(signal),
            signal = self.terminal_signals.next() => Occurrence::Terminal(signal),
            item = next_item(&mut self.turn, &self.page), if with_turns => Occurrence::Turn(item),
            Some(run) = self.session.next_agent_turn(), if background => Occurrence::AgentTurn(run),
            Some(result) = self.tasks.join_next(), if with_turns => match result {
                Ok(result) => Occurrence::Task(result),
                Err(error) => Occurrence::Task(TaskResult::Failed(error.into())),
            },
            Some(Ok((request, candidates))) = self.completions.join_next() => Occurrence::Completed(request, candidates),
            () = self.page.closed() => Occurrence::Closed,
            _ = self.ticks.tick(), if ticks => Occurrence::Tick,
        }
    }

    /// Handles everything that does not depend on what the chat does now.
    pub(super) async fn on_occurrence(&mut self, occurrence: Occurrence) -> Result<(), End> {
        match occurrence {
            Occurrence::Input(at, input) => return self.receive(at, input),
            Occurrence::Settled => {
                let actions = self.input.settle();
                self.actions.extend(actions);
            }
            Occurrence::Signal(signal) => return self.on_signal(signal),
            Occurrence::Terminal(TerminalSignal::Suspend) => return self.suspend().await,
            Occurrence::Terminal(TerminalSignal::Quit) => return self.on_signal(Signal::Terminate),
            Occurrence::Completed(request, candidates) => self.input.complete(&request, candidates),
            Occurrence::Tick => self.page.refresh(),
            Occurrence::Closed => return Err(End::NoTerminal),
            Occurrence::Terminal(TerminalSignal::Resized)
            | Occurrence::Turn(_)
            | Occurrence::AgentTurn(_)
            | Occurrence::Task(_) => {}
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
        Ok(())
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
                if let Some(turn) = &self.turn {
                    turn.control.interrupt();
                }
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

/// Waits for the next event of the turn, once the writer accepts one. Without a turn it waits forever. Cancel-safe.
async fn next_item(turn: &mut Option<Turn>, page: &Page) -> TurnItem {
    let Some(turn) = turn else { return pending().await };
    let Some(permit) = page.event_permit().await else { return pending().await };
    TurnItem(turn.run.next().await.map(|event| (event, permit)))
}
