//! Reads answers to the agent's requests.
//!
//! Invariant: input that was typed or pasted before a request is shown does not answer it. So the writer shows the request
//! first. Then all input that the terminal already has goes to the input box, as does everything until the person pauses.

use std::time::{Duration, Instant};

use super::backend::{Activity, Backend, Phase};
use super::state::{Chat, End, Occurrence};
use crate::input::Action;
use crate::printable::{Printable, printable};
use crate::terminal::TerminalInput;

/// A person who types pauses at least this long before an answer.
const PAUSE: Duration = Duration::from_millis(400);

/// What a person types as an answer to a permission request.
const ANSWERS: [&str; 8] = ["y", "a", "n", "v", "s", "yes", "no", "always"];

/// The time before a request in which such a text was meant for it.
const EARLY: Duration = Duration::from_secs(5);

/// What an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// A new request. What was typed for another one does not answer it.
    First,
    /// The same request, after an answer to it.
    Again,
}

/// The result of reading an answer.
#[derive(Debug)]
pub(super) enum Typed {
    Line(String),
    /// The person stopped the agent.
    Interrupted,
    /// Ctrl-D.
    Ended,
    /// The request needs no answer any more.
    Closed,
}

impl<B: Backend> Chat<'_, B> {
    /// Reads one line as the answer to a request that was printed, with these options. The text in the input box stays.
    pub(super) async fn read_answer(
        &mut self,
        prompt: Printable,
        options: Vec<Printable>,
        attempt: Attempt,
    ) -> Result<Typed, End> {
        if attempt == Attempt::Again {
            self.last_key = None;
        }
        let flushed = self.page.flush();
        self.wait_for_writer(flushed).await?;
        self.wait_for_pause().await?;
        if let Some(typed) = self.end_of_request() {
            return Ok(typed);
        }
        self.input.ask(prompt.clone(), options);
        if !self.page.is_live() {
            self.terminal.set_echo(true);
            self.page.prompt(prompt.clone());
        }
        let typed = self.wait_for_answer().await;
        let rest = self.input.end_answer();
        if !rest.is_empty() {
            self.input.append(&rest);
        }
        if self.page.is_live() {
            // The prompt is on the screen only while an answer is read.
            self.show();
            if let Ok(Typed::Line(line)) = &typed {
                self.message(printable!("{}{}", prompt, Printable::exact(line)));
            }
        } else {
            self.terminal.set_echo(false);
        }
        typed
    }

    /// Passes everything that was typed to the input box, until the person pauses.
    async fn wait_for_pause(&mut self) -> Result<(), End> {
        if let Some(keys) = &mut self.keys {
            keys.barrier();
        }
        let (mut is_passed, mut has_input) = (false, false);
        self.take_early_answer();
        loop {
            while let Some(action) = self.actions.pop_front() {
                match action {
                    Action::Submit(text) if is_answer(&text) => self.discard_early_answer(&text),
                    other => self.act(other).await?,
                }
            }
            self.show();
            let pause_ends = self.last_key.map(|last| last + PAUSE).filter(|end| *end > Instant::now());
            if is_passed && pause_ends.is_none() {
                // The terminal may hold the start of a line that was typed meanwhile.
                if self.page.is_live() || !has_input {
                    return Ok(());
                }
                (is_passed, has_input) = (false, false);
                if let Some(keys) = &mut self.keys {
                    keys.barrier();
                }
            }
            let timer = crate::runtime::sleep_until(pause_ends.map(tokio::time::Instant::from_std));
            let occurrence = tokio::select! {
                occurrence = self.next_occurrence(Phase::Asking) => occurrence,
                () = timer => continue,
            };
            match occurrence {
                Occurrence::Input(_, TerminalInput::Barrier) => is_passed = true,
                Occurrence::Input(..) => has_input = true,
                _ => {}
            }
            self.on_occurrence(occurrence).await?;
        }
    }

    /// Removes an answer from the waiting prompts that was typed just before the request was shown.
    fn take_early_answer(&mut self) {
        let is_early = self.submitted.as_ref().is_some_and(|(at, text)| at.elapsed() < EARLY && is_answer(text));
        if let Some((_, text)) = self.submitted.take_if(|_| is_early)
            && self.input.waiting.remove_last(&text)
        {
            self.discard_early_answer(&text);
        }
    }

    /// A prompt `y` for the agent makes no sense, and an answer counts only for a request that was shown.
    fn discard_early_answer(&mut self, text: &str) {
        let text = Printable::exact(text.trim());
        self.notify(printable!("{} was typed before the request was shown: answer it again", text));
    }

    /// Returns why the request that is shown must not be answered, if that is so.
    fn end_of_request(&self) -> Option<Typed> {
        if self.asking.as_ref().is_some_and(|asking| asking.is_closed) {
            return Some(Typed::Closed);
        }
        (self.backend.activity() == Activity::Stopping).then_some(Typed::Interrupted)
    }

    async fn wait_for_answer(&mut self) -> Result<Typed, End> {
        loop {
            while let Some(action) = self.actions.pop_front() {
                match action {
                    Action::Answer(line) if line.contains('\n') => {
                        self.notify("several lines are no answer: they wait, and are sent when you confirm it");
                        self.input.waiting.add(line);
                        self.input.waiting.hold();
                    }
                    Action::Answer(line) => return Ok(Typed::Line(line)),
                    Action::Stop | Action::Interrupt => {
                        B::stop(self);
                        return Ok(Typed::Interrupted);
                    }
                    // The request stays open for others.
                    Action::Quit if B::IS_SHARED => return Err(End::Quit),
                    Action::Quit => return Ok(Typed::Ended),
                    other => self.act(other).await?,
                }
            }
            if let Some(typed) = self.end_of_request() {
                return Ok(typed);
            }
            self.show();
            let occurrence = self.next_occurrence(Phase::Asking).await;
            self.on_occurrence(occurrence).await?;
        }
    }
}

/// Whether a text is the answer to a permission request.
fn is_answer(text: &str) -> bool {
    ANSWERS.contains(&text.trim().to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_text_that_is_nothing_but_an_answer_is_one() {
        assert!(["y", " A ", "no\n", "Always"].iter().all(|text| is_answer(text)));
        assert!(["yes please", "", "n why", "1", "ya"].iter().all(|text| !is_answer(text)));
    }
}
