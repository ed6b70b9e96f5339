//! The prompts that wait for the end of the turn.

use std::collections::VecDeque;

/// Prompts that wait, in the order in which they are sent.
#[derive(Debug, Default)]
pub(crate) struct WaitingPrompts {
    prompts: VecDeque<String>,
    /// Whether they are sent only when the person confirms it.
    is_held: bool,
    /// Prompts that are sent into the running turn, but not received yet.
    sending: Vec<String>,
}

impl WaitingPrompts {
    pub(crate) fn add(&mut self, prompt: String) {
        self.prompts.push_back(prompt);
    }

    /// Puts a prompt before all others.
    pub(crate) fn add_first(&mut self, prompt: String) {
        self.prompts.push_front(prompt);
    }

    /// Returns the next prompt, unless the prompts are held.
    pub(crate) fn next(&mut self) -> Option<String> {
        if self.is_held { None } else { self.prompts.pop_front() }
    }

    /// Takes back all prompts.
    pub(crate) fn take_all(&mut self) -> Vec<String> {
        self.is_held = false;
        self.prompts.drain(..).collect()
    }

    /// Takes back the last prompt.
    pub(super) fn take_last(&mut self) -> Option<String> {
        let last = self.prompts.pop_back();
        self.is_held &= !self.prompts.is_empty();
        last
    }

    /// Removes the last prompt if it is this text.
    pub(crate) fn remove_last(&mut self, text: &str) -> bool {
        let is_last = self.prompts.back().is_some_and(|last| last == text);
        is_last && self.take_last().is_some()
    }

    /// Keeps the prompts until the person confirms that they are sent.
    pub(crate) fn hold(&mut self) {
        self.is_held = !self.prompts.is_empty();
    }

    pub(crate) fn release(&mut self) {
        self.is_held = false;
    }

    pub(crate) fn is_held(&self) -> bool {
        self.is_held
    }

    pub(crate) fn len(&self) -> usize {
        self.prompts.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.prompts.is_empty()
    }

    /// Shows a prompt that is sent into the running turn.
    pub(crate) fn begin_sending(&mut self, prompt: String) {
        self.sending.push(prompt);
    }

    /// Removes a prompt that was sent into the running turn.
    pub(crate) fn end_sending(&mut self, prompt: &str) {
        if let Some(index) = self.sending.iter().position(|sending| sending == prompt) {
            self.sending.remove(index);
        }
    }

    pub(super) fn sending(&self) -> impl Iterator<Item = &str> {
        self.sending.iter().map(String::as_str)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.prompts.iter().map(String::as_str)
    }
}
