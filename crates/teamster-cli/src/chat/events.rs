//! Shows prompts and events of the agent.

use teamster::Event;
use tokio::sync::OwnedSemaphorePermit;

use super::backend::Backend;
use super::state::{Chat, Request};
use crate::printable::{Printable, printable};

/// The number of lines of a prompt that are printed.
const PRINTED_LINES: usize = 40;

impl<B: Backend> Chat<'_, B> {
    /// Shows an event of the turn. A request of the agent waits until the step ends.
    pub(super) fn show_event(&mut self, event: Event, permit: Option<OwnedSemaphorePermit>) {
        self.record.event(&event, &self.directory);
        match &event {
            Event::Init(init) => self.model = init.model.as_deref().map(Printable::exact),
            Event::Done(done) => self.totals.add(&done.result),
            Event::PermissionRequest(request) => self.requests.push_back(Request::Permission(request.clone())),
            Event::Question(question) => self.requests.push_back(Request::Question(question.clone())),
            _ => {}
        }
        self.page.event(event, permit);
    }

    /// Prints a prompt as it was typed.
    pub(super) fn print_prompt(&mut self, prompt: &str) {
        self.print_message(&Printable::default(), prompt);
    }

    /// Prints a prompt as it was typed. The head names its author.
    pub(super) fn print_message(&mut self, head: &Printable, prompt: &str) {
        let lines: Vec<&str> = prompt.lines().collect();
        let shown = lines.iter().take(PRINTED_LINES).enumerate();
        let mut printed: Vec<Printable> = shown
            .map(|(row, line)| match row {
                0 => printable!("> {}{}", head, Printable::prose(line)),
                _ => printable!("  {}", Printable::prose(line)),
            })
            .collect();
        if lines.len() > PRINTED_LINES {
            printed.push(printable!("  ... and {} more lines", lines.len() - PRINTED_LINES));
        }
        // A blank line separates it from the turn before.
        let before = if self.page.is_live() { "\n" } else { "" };
        self.message(printable!("{}{}", before, Printable::join(printed, "\n")));
    }
}
