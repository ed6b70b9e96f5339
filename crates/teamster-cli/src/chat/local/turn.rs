//! Turns: prompts that are sent, and the events of the agent.

use std::sync::Arc;

use teamster::event::RequestId;
use teamster::request::Answer;
use teamster::{Event, Run, SendError, Sent};

use super::{LocalSession, Turn, TurnItem};
use crate::chat::state::{Chat, End};
use crate::printable::{Printable, printable};
use crate::runtime;

impl Chat<'_, LocalSession> {
    /// Starts the next turn or executes the next waiting text, if the chat is idle.
    pub(super) async fn start_next_turn(&mut self) -> Result<(), End> {
        while self.backend.turn.is_none() && self.backend.sends.is_empty() && self.tasks.is_empty() {
            if let Some((prompt, run)) = self.backend.next_turns.pop_front() {
                if let Some(prompt) = &prompt {
                    self.print_prompt(prompt);
                }
                self.start_turn(prompt, run);
            } else if let Some(text) = self.input.waiting.next() {
                self.execute(text, false).await?;
            } else {
                break;
            }
        }
        Ok(())
    }

    /// Sends a prompt as a turn of its own. If that fails, the prompt stays.
    pub(super) fn send_prompt(&mut self, text: String) {
        match self.backend.session.send(text.as_str()) {
            Ok(run) => self.start_turn(Some(text), run),
            Err(error) => {
                self.message(Printable::error(&error));
                self.input.waiting.add_first(text);
                self.input.waiting.hold();
            }
        }
    }

    fn start_turn(&mut self, prompt: Option<String>, run: Run) {
        self.record.begin(prompt.clone());
        self.terminal.set_echo(false);
        self.page.start_turn(Printable::exact(&self.backend.plan.agent));
        let control = run.control();
        let model = self.backend.plan.request.model.clone();
        self.backend.turn =
            Some(Turn { prompt, model, run, control, is_interrupted: false, has_started: false, has_ended: false });
    }

    /// Starts a turn that the agent started by itself. A prompt that the agent does not have yet waits for its end.
    pub(super) fn start_agent_turn(&mut self, run: Run) {
        match self.backend.turn.take() {
            Some(turn) if turn.has_started => {
                self.backend.turn = Some(turn);
                self.backend.next_turns.push_front((None, run));
            }
            waiting => {
                if let Some(turn) = waiting {
                    self.backend.next_turns.push_front((turn.prompt, turn.run));
                }
                self.message("a background task of the agent ended, so it continues:");
                self.start_turn(None, run);
            }
        }
    }

    /// Handles an event of the turn.
    pub(super) fn on_turn_item(&mut self, item: TurnItem) {
        let Some((event, permit)) = item.0 else {
            self.backend.turn = None;
            self.terminal.set_echo(true);
            return;
        };
        if let Some(turn) = &mut self.backend.turn {
            turn.has_started |= !matches!(event, Event::Queued(_));
            turn.has_ended |= matches!(event, Event::Done(_));
        }
        self.backend.restore_refused_model(&event);
        if let Event::Done(done) = &event {
            // How to stop the turn is not news any more.
            self.notice = None;
            if let Some(turn) = self.backend.turn.as_ref().filter(|_| !done.result.is_error) {
                self.backend.accepted_model.clone_from(&turn.model);
            }
            self.backend.journal.add(&done.result);
            let failed = done.result.is_error || done.result.aborted;
            if failed || self.input.waiting.is_held() {
                self.hold_waiting();
            }
        }
        self.show_event(event, Some(permit));
    }

    /// Handles the result of sending a prompt into the running turn.
    pub(super) fn on_sent(&mut self, prompt: String, sent: Result<Sent, SendError>) {
        self.input.waiting.end_sending(&prompt);
        match sent {
            Ok(Sent::Steered) => {
                self.print_prompt(&prompt);
                self.record.steer(prompt);
                self.notify("sent into the running turn");
            }
            Ok(Sent::Turn(run)) => {
                self.notify("the running turn did not take it: it is the next turn");
                self.backend.next_turns.push_back((Some(prompt), *run));
            }
            Err(error) => {
                self.notify(printable!("not sent: {}", Printable::error(&error)));
                self.input.waiting.add_first(prompt);
                self.input.waiting.hold();
            }
            Ok(_) => self.record.steer(prompt),
        }
    }

    /// Sends a prompt into the running turn.
    pub(super) fn steer(&mut self, prompt: String) {
        let session = Arc::clone(&self.backend.session);
        self.backend.sends.spawn(async move {
            let sent = session.send_now(prompt.as_str()).await;
            (prompt, sent)
        });
    }

    /// Keeps the waiting prompts until the person confirms them.
    fn hold_waiting(&mut self) {
        self.input.waiting.hold();
        let count = self.input.waiting.len();
        if count > 0 {
            let texts = if count == 1 { "text was" } else { "texts were" };
            let how = if self.page.is_live() { "Enter in an empty line sends" } else { "an empty line sends" };
            self.notify(printable!("{} waiting {} not sent: {} what waits", count, texts, how));
        }
    }

    /// Stops the running turn; the second time, kills the agent. Returns false if no turn runs.
    pub(super) fn stop_agent(&mut self) -> bool {
        let Some(turn) = self.backend.turn.as_mut().filter(|turn| !turn.has_ended) else { return false };
        let again = std::mem::replace(&mut turn.is_interrupted, true);
        if again {
            turn.control.abort();
        } else {
            turn.control.interrupt();
        }
        self.input.waiting.hold();
        let notice = if again { runtime::KILLING_NOTICE } else { runtime::STOPPING_NOTICE };
        let kept = match self.input.waiting.len() {
            0 => Printable::default(),
            count => printable!("; {} waiting, not sent until you confirm it", count),
        };
        self.notify(printable!("{}{}", notice, kept));
        true
    }

    pub(super) async fn pass_answer(&mut self, request: &RequestId, answer: Answer) {
        if self.backend.session.answer(request.clone(), answer).await.is_err() {
            self.message("(the agent no longer waits for this answer)");
        }
    }
}
