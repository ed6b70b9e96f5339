//! Turns: prompts that are sent, and the events of the agent.

use teamster::event::{Question, RequestId};
use teamster::request::Answer;
use teamster::{Event, Run};

use super::answer::{Attempt, Typed};
use super::question::{self, Choices};
use super::state::{Chat, End, Turn, TurnItem};
use crate::printable::{Printable, printable};
use crate::render::width_of_stdout;
use crate::runtime;

/// The number of lines of a prompt that are printed.
const PRINTED_LINES: usize = 40;

impl Chat<'_> {
    /// Starts the next turn or executes the next waiting text, if the chat is idle.
    pub(super) async fn start_next(&mut self) -> Result<(), End> {
        while self.turn.is_none() && self.tasks.is_empty() {
            if let Some((prompt, run)) = self.next_turns.pop_front() {
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
    pub(super) fn send(&mut self, text: String) {
        match self.session.send(text.as_str()) {
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
        self.page.start_turn(Printable::exact(&self.plan.agent));
        let control = run.control();
        self.turn = Some(Turn { prompt, run, control, is_interrupted: false, has_started: false, has_ended: false });
    }

    /// Starts a turn that the agent started by itself. A prompt that the agent does not have yet waits for its end.
    pub(super) fn start_agent_turn(&mut self, run: Run) {
        match self.turn.take() {
            Some(turn) if turn.has_started => {
                self.turn = Some(turn);
                self.next_turns.push_front((None, run));
            }
            waiting => {
                if let Some(turn) = waiting {
                    self.next_turns.push_front((turn.prompt, turn.run));
                }
                self.message("a background task of the agent ended, so it continues:");
                self.start_turn(None, run);
            }
        }
    }

    /// Prints a prompt as it was typed.
    pub(super) fn print_prompt(&mut self, prompt: &str) {
        let lines: Vec<&str> = prompt.lines().collect();
        let shown = lines.iter().take(PRINTED_LINES).enumerate();
        let mut printed: Vec<Printable> = shown
            .map(|(row, line)| printable!("{}{}", if row == 0 { "> " } else { "  " }, Printable::prose(line)))
            .collect();
        if lines.len() > PRINTED_LINES {
            printed.push(printable!("  ... and {} more lines", lines.len() - PRINTED_LINES));
        }
        // A blank line separates it from the turn before.
        let before = if self.page.is_live() { "\n" } else { "" };
        self.message(printable!("{}{}", before, Printable::join(printed, "\n")));
    }

    /// Handles an event of the turn.
    pub(super) async fn on_turn_item(&mut self, item: TurnItem) -> Result<(), End> {
        let Some((event, permit)) = item.0 else {
            self.turn = None;
            self.terminal.set_echo(true);
            return Ok(());
        };
        if let Some(turn) = &mut self.turn {
            turn.has_started |= !matches!(event, Event::Queued(_));
            turn.has_ended |= matches!(event, Event::Done(_));
        }
        self.record.event(&event, &self.directory);
        match &event {
            Event::Init(init) => self.model = init.model.as_deref().map(Printable::exact),
            Event::Done(done) => {
                self.totals.add(&done.result);
                self.journal.add(&done.result);
                let failed = done.result.is_error || done.result.aborted;
                if failed || self.input.waiting.is_held() {
                    self.hold_waiting();
                }
            }
            _ => {}
        }
        match event {
            Event::PermissionRequest(request) => {
                self.page.event(Event::PermissionRequest(request.clone()), permit);
                self.permission(&request).await
            }
            Event::Question(question) => {
                self.page.event(Event::Question(question.clone()), permit);
                self.question(&question).await
            }
            event => {
                self.page.event(event, permit);
                Ok(())
            }
        }
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

    /// Whether the agent works on a turn.
    pub(super) fn is_working(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| !turn.has_ended)
    }

    /// Stops the running turn; the second time, kills the agent. Returns false if no turn runs.
    pub(super) fn stop_agent(&mut self) -> bool {
        let Some(turn) = self.turn.as_mut().filter(|turn| !turn.has_ended) else { return false };
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

    /// Asks the user to answer the agent's questions.
    async fn question(&mut self, asked: &Question) -> Result<(), End> {
        let (mut choices, mut attempt) = (Choices::new(), Attempt::First);
        for item in &asked.questions {
            self.message(question::format_question(item, width_of_stdout()));
            let chosen = loop {
                let prompt = question::question_prompt(item, self.page.is_live());
                match self.read_answer(prompt.into(), question::labels(item), attempt).await? {
                    Typed::Line(line) => match question::parse_choice(item, &line) {
                        Ok(chosen) => break chosen,
                        Err(problem) => {
                            self.message(printable!("  {}", problem));
                            attempt = Attempt::Again;
                        }
                    },
                    Typed::Interrupted | Typed::Ended => break None,
                }
            };
            attempt = Attempt::Again;
            let Some(chosen) = chosen else {
                return self.answer(&asked.request_id, Answer::Deny { message: None }).await;
            };
            choices.insert(item.id.clone().into_string(), chosen);
        }
        self.answer(&asked.request_id, Answer::Choose(choices)).await
    }

    pub(super) async fn answer(&mut self, request: &RequestId, answer: Answer) -> Result<(), End> {
        if self.session.answer(request.clone(), answer).await.is_err() {
            self.message("(the agent no longer waits for this answer)");
        }
        Ok(())
    }
}
