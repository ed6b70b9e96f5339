//! The input box: its state, and how text gets into it.

use std::time::{Duration, Instant};

use termina::event::{KeyCode, KeyEvent, Modifiers};

use super::completion::{Candidate, CompletionRequest, Menu, Subject};
use super::history::{History, Search};
use super::text::Text;
use super::vi::Vi;
use super::waiting::WaitingPrompts;
use crate::printable::Printable;

/// Keys that arrive within this time of each other were not pressed by a person.
const BURST: Duration = Duration::from_millis(10);

/// The keys for editing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Keys {
    #[default]
    Emacs,
    Vi,
}

/// What a key requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Sends a prompt, or executes a command.
    Submit(String),
    /// Sends a prompt into the running turn.
    SendNow(String),
    /// Sends the waiting prompts that are held.
    SendWaiting,
    /// The answer to a request.
    Answer(String),
    /// Esc: stops the agent.
    Stop,
    /// Ctrl-C: stops the agent, or kills it, or discards the text.
    Interrupt,
    /// Ctrl-D in an empty box.
    Quit,
    /// Opens the editor with the text.
    OpenEditor,
    Complete(CompletionRequest),
    /// Ctrl-Z: suspends the command.
    Suspend,
    /// Ctrl-L: draws the screen again.
    Redraw,
}

/// The input box.
#[derive(Debug)]
pub(crate) struct Input {
    pub(super) text: Text,
    pub(super) vi: Option<Vi>,
    pub(super) history: History,
    pub(crate) waiting: WaitingPrompts,
    pub(super) search: Option<Search>,
    pub(super) menu: Option<Menu>,
    /// The text whose menu was closed.
    pub(super) dismissed: Option<String>,
    /// The box for an answer, in front of the text.
    pub(super) answer: Option<AnswerBox>,
    /// Enter or Tab, whose meaning depends on whether text follows at once.
    pending: Option<Pending>,
    /// Whether Ctrl-X was pressed.
    pub(super) after_ctrl_x: bool,
}

/// A box for an answer.
#[derive(Debug)]
pub(super) struct AnswerBox {
    pub(super) prompt: Printable,
    pub(super) text: Text,
    /// The options of a question, which arrow keys choose by their numbers.
    options: Vec<Printable>,
}

impl AnswerBox {
    /// Returns the option whose number is the text.
    pub(super) fn chosen(&self) -> Option<&Printable> {
        self.options.get(self.index()?)
    }

    /// Chooses the option after or before the chosen one. A text that is not the number of an option stays.
    pub(super) fn choose(&mut self, forward: bool) {
        let last = self.options.len().checked_sub(1);
        let Some(last) = last.filter(|_| self.text.is_empty() || self.chosen().is_some()) else { return };
        let index = match (self.index(), forward) {
            (None, true) => 0,
            (None, false) => last,
            (Some(index), true) => (index + 1).min(last),
            (Some(index), false) => index.saturating_sub(1),
        };
        self.text.set(&(index + 1).to_string());
    }

    fn index(&self) -> Option<usize> {
        self.text.as_str().trim().parse::<usize>().ok()?.checked_sub(1)
    }
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    key: PendingKey,
    at: Instant,
}

/// A key whose meaning depends on what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PendingKey {
    Enter,
    Tab,
}

impl Input {
    pub(crate) fn new(keys: Keys, history: History) -> Self {
        Self {
            text: Text::default(),
            vi: (keys == Keys::Vi).then(Vi::default),
            history,
            waiting: WaitingPrompts::default(),
            search: None,
            menu: None,
            dismissed: None,
            answer: None,
            pending: None,
            after_ctrl_x: false,
        }
    }

    /// Handles a key that was read at this time.
    pub(crate) fn press(&mut self, key: KeyEvent, at: Instant) -> Vec<Action> {
        let modifiers = key.modifiers - Modifiers::SHIFT;
        let pending_key = match key.code {
            KeyCode::Enter if modifiers.is_empty() => Some(PendingKey::Enter),
            KeyCode::Tab if modifiers.is_empty() => Some(PendingKey::Tab),
            _ => None,
        };
        let is_text = pending_key.is_some() || matches!(key.code, KeyCode::Char(_)) && modifiers.is_empty();
        let mut actions = if is_text { self.text_follows(at) } else { self.settle() };
        match pending_key {
            Some(key) => self.pending = Some(Pending { key, at }),
            None => actions.extend(self.handle(key)),
        }
        actions
    }

    /// Handles a whole line that was read at this time.
    pub(crate) fn line(&mut self, line: &str, at: Instant) -> Vec<Action> {
        let actions = self.text_follows(at);
        self.insert(line);
        self.pending = Some(Pending { key: PendingKey::Enter, at });
        actions
    }

    /// Inserts the pending Enter or Tab if the text that follows it arrived together with it. Otherwise executes it.
    fn text_follows(&mut self, at: Instant) -> Vec<Action> {
        match self.pending {
            Some(pending) if at.saturating_duration_since(pending.at) <= BURST => {
                self.pending = None;
                self.insert(if pending.key == PendingKey::Enter { "\n" } else { "\t" });
                Vec::new()
            }
            _ => self.settle(),
        }
    }

    /// Inserts a pasted text. Its line ends are normalized.
    pub(crate) fn paste(&mut self, text: &str) -> Vec<Action> {
        let actions = self.settle();
        self.leave_search();
        if let Some(vi) = &mut self.vi {
            vi.enter_insert();
        }
        self.insert(&text.replace("\r\n", "\n").replace('\r', "\n"));
        actions
    }

    /// Returns the time at which [`settle`](Self::settle) must be called.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.pending.map(|pending| pending.at + BURST)
    }

    /// Executes Enter or Tab, since no text follows it.
    pub(crate) fn settle(&mut self) -> Vec<Action> {
        self.pending.take().and_then(|pending| self.execute(pending.key)).into_iter().collect()
    }

    /// Shows a box for an answer, which may be the number of an option. The text stays.
    pub(crate) fn ask(&mut self, prompt: Printable, options: Vec<Printable>) {
        self.leave_search();
        (self.menu, self.after_ctrl_x) = (None, false);
        self.answer = Some(AnswerBox { prompt, text: Text::default(), options });
    }

    /// Removes the box for an answer, and returns what was typed in it.
    pub(crate) fn end_answer(&mut self) -> String {
        self.answer.take().map(|answer| answer.text.as_str().to_owned()).unwrap_or_default()
    }

    /// Returns the text of the box.
    pub(crate) fn text(&self) -> &str {
        self.text.as_str()
    }

    /// Replaces the text of the box.
    pub(crate) fn set_text(&mut self, text: &str) {
        self.text.set(text);
    }

    /// Adds text to the end of the box, on a line of its own.
    pub(crate) fn append(&mut self, text: &str) {
        let current = self.text.as_str();
        let between = if current.is_empty() || current.ends_with('\n') { "" } else { "\n" };
        self.text.set(&format!("{current}{between}{text}"));
    }

    /// Removes the text. It stays in the history. Returns false if there is none.
    pub(crate) fn discard_text(&mut self) -> bool {
        let text = self.text.take();
        if !text.trim().is_empty() {
            self.history.add(&text);
        }
        !text.is_empty()
    }

    /// Shows the candidates of a completion.
    pub(crate) fn complete(&mut self, request: &CompletionRequest, candidates: Vec<Candidate>) {
        if self.answer.is_none() {
            self.menu = Menu::complete(&mut self.text, request, candidates);
        }
    }

    /// Returns what a menu can be offered for: a command or its argument, at the end of the text.
    pub(crate) fn offerable(&self) -> Option<CompletionRequest> {
        let is_closed = self.menu.is_none() && self.answer.is_none() && self.search.is_none();
        let is_typed = !self.is_vi_normal() && !self.history.is_shown() && self.text.after_cursor().is_empty();
        if !(is_closed && is_typed) || self.dismissed.as_deref() == Some(self.text.as_str()) {
            return None;
        }
        CompletionRequest::at_cursor(&self.text).filter(|request| request.subject != Subject::Path)
    }

    /// Shows the candidates of a word that is not completed yet.
    pub(crate) fn offer(&mut self, request: &CompletionRequest, candidates: Vec<Candidate>) {
        self.menu = Menu::offered(&self.text, request, candidates);
    }

    /// Inserts text into the box, or into that for an answer.
    pub(super) fn insert(&mut self, text: &str) {
        self.menu = None;
        self.history.reset();
        match &mut self.answer {
            Some(answer) => answer.text.insert(text),
            None => self.text.insert(text),
        }
    }
}
