//! The input box of a chat, without input and output: keys change its state, and it returns actions and lines.
//!
//! Invariants: no typed or pasted text is lost: it is in the box, in an action, in the waiting prompts or in the history.
//! A paste never submits. Enter submits only if no text follows it at once: characters that arrive together are one
//! message, as after a paste into a terminal without bracketed paste.

mod completion;
mod emacs;
mod history;
#[cfg(test)]
mod tests;
mod text;
mod vi;
mod view;
mod waiting;

use std::time::{Duration, Instant};

use termina::event::{KeyCode, KeyEvent, Modifiers};

pub(crate) use self::completion::{CompletionRequest, Subject};
pub(crate) use self::history::History;
pub(crate) use self::view::View;
pub(crate) use self::waiting::WaitingPrompts;

use self::completion::Menu;
use self::history::Search;
use self::text::Text;
use self::vi::{Effect, Vi};
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
    text: Text,
    vi: Option<Vi>,
    history: History,
    pub(crate) waiting: WaitingPrompts,
    search: Option<Search>,
    menu: Option<Menu>,
    /// The box for an answer, in front of the text.
    answer: Option<AnswerBox>,
    /// Enter or Tab, whose meaning depends on whether text follows at once.
    pending: Option<Pending>,
    /// Whether Ctrl-X was pressed.
    after_ctrl_x: bool,
}

#[derive(Debug)]
struct AnswerBox {
    prompt: Printable,
    text: Text,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    key: PendingKey,
    at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PendingKey {
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

    /// Shows a box for an answer. The text stays.
    pub(crate) fn ask(&mut self, prompt: Printable) {
        self.leave_search();
        (self.menu, self.after_ctrl_x) = (None, false);
        self.answer = Some(AnswerBox { prompt, text: Text::default() });
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
    pub(crate) fn complete(&mut self, request: &CompletionRequest, candidates: Vec<String>) {
        if self.answer.is_none() {
            self.menu = Menu::complete(&mut self.text, request, candidates);
        }
    }

    fn insert(&mut self, text: &str) {
        self.menu = None;
        self.history.reset();
        match &mut self.answer {
            Some(answer) => answer.text.insert(text),
            None => self.text.insert(text),
        }
    }

    fn execute(&mut self, key: PendingKey) -> Option<Action> {
        match key {
            PendingKey::Enter => self.enter(),
            PendingKey::Tab => self.tab(),
        }
    }

    fn enter(&mut self) -> Option<Action> {
        if let Some(answer) = &mut self.answer {
            return Some(Action::Answer(answer.text.take()));
        }
        if self.leave_search() || self.menu.take().is_some_and(|menu| menu.chosen.is_some()) {
            return None;
        }
        if self.text.before_cursor().ends_with('\\') {
            let start = self.text.position() - 1;
            self.text.replace_before_cursor(start, "\n");
            return None;
        }
        let text = self.text.take();
        if let Some(vi) = &mut self.vi {
            vi.enter_insert();
        }
        if text.trim().is_empty() {
            return self.waiting.is_held().then_some(Action::SendWaiting);
        }
        self.history.add(&text);
        Some(Action::Submit(text))
    }

    fn tab(&mut self) -> Option<Action> {
        if self.answer.is_some() || self.search.is_some() {
            return None;
        }
        if let Some(menu) = &mut self.menu {
            menu.choose(&mut self.text, true);
            return None;
        }
        CompletionRequest::at_cursor(&self.text).map(Action::Complete)
    }

    /// Ends the search. The found text becomes the text of the box. Returns false if there is no search.
    fn leave_search(&mut self) -> bool {
        let Some(search) = self.search.take() else { return false };
        if search.is_found() {
            // The text before stays in the history.
            self.discard_text();
            self.text.set(&search.text);
        }
        true
    }

    /// Handles any key except Enter and Tab.
    fn handle(&mut self, key: KeyEvent) -> Option<Action> {
        let modifiers = key.modifiers - Modifiers::SHIFT;
        let control = |character: char| key.code == KeyCode::Char(character) && modifiers == Modifiers::CONTROL;
        if std::mem::take(&mut self.after_ctrl_x) && (control('e') || key.code == KeyCode::Char('e')) {
            return Some(Action::OpenEditor);
        }
        if control('c') {
            self.search = None;
            self.menu = None;
            return Some(Action::Interrupt);
        }
        if control('z') {
            return Some(Action::Suspend);
        }
        if control('l') {
            return Some(Action::Redraw);
        }
        if self.answer.is_some() {
            return self.handle_in_answer(key);
        }
        if self.search.is_some() {
            return self.handle_in_search(key);
        }
        if control('x') {
            self.after_ctrl_x = true;
            return None;
        }
        match key.code {
            KeyCode::Escape => self.escape(),
            KeyCode::BackTab => {
                if let Some(menu) = &mut self.menu {
                    menu.choose(&mut self.text, false);
                }
                None
            }
            KeyCode::Enter => {
                self.insert("\n");
                None
            }
            _ if control('g') => Some(Action::OpenEditor),
            _ if control('s') => self.send_now(),
            _ if control('r') && !self.is_vi_normal() => {
                self.search = Some(Search::default());
                None
            }
            _ if control('d') && self.text.is_empty() => Some(Action::Quit),
            _ => self.edit(key),
        }
    }

    fn is_vi_normal(&self) -> bool {
        self.vi.as_ref().is_some_and(Vi::is_normal)
    }

    fn escape(&mut self) -> Option<Action> {
        if self.menu.take().is_some() {
            return None;
        }
        let Some(vi) = &mut self.vi else { return Some(Action::Stop) };
        if vi.is_normal() {
            return if vi.cancel() { None } else { Some(Action::Stop) };
        }
        vi.enter_normal(&mut self.text);
        None
    }

    fn send_now(&mut self) -> Option<Action> {
        let text = self.text.take();
        if text.trim().is_empty() {
            return self.waiting.take_last().map(Action::SendNow);
        }
        self.history.add(&text);
        Some(Action::SendNow(text))
    }

    fn handle_in_answer(&mut self, key: KeyEvent) -> Option<Action> {
        let answer = self.answer.as_mut()?;
        let is_control_d = key.code == KeyCode::Char('d') && key.modifiers == Modifiers::CONTROL;
        match key.code {
            KeyCode::Escape => Some(Action::Stop),
            _ if is_control_d && answer.text.is_empty() => Some(Action::Quit),
            _ => {
                emacs::press(&mut answer.text, key);
                None
            }
        }
    }

    fn handle_in_search(&mut self, key: KeyEvent) -> Option<Action> {
        let modifiers = key.modifiers - Modifiers::SHIFT;
        let search = self.search.as_mut()?;
        match key.code {
            KeyCode::Char('r') if modifiers == Modifiers::CONTROL => search.older(&self.history),
            KeyCode::Char('g') if modifiers == Modifiers::CONTROL => self.search = None,
            KeyCode::Escape => self.search = None,
            KeyCode::Backspace => {
                search.words.pop();
                search.update(&self.history);
            }
            KeyCode::Char(character) if modifiers.is_empty() => {
                search.words.push(character);
                search.update(&self.history);
            }
            _ => {
                self.leave_search();
                return self.handle(key);
            }
        }
        None
    }

    fn edit(&mut self, key: KeyEvent) -> Option<Action> {
        self.menu = None;
        let modifiers = key.modifiers - Modifiers::SHIFT;
        if let Some(vi) = self.vi.as_mut().filter(|vi| vi.is_normal()) {
            match vi.press(&mut self.text, key) {
                Effect::Up => self.up(),
                Effect::Down => self.down(),
                Effect::Editor => return Some(Action::OpenEditor),
                Effect::Search => self.search = Some(Search::default()),
                Effect::Done | Effect::Unknown => {}
            }
            return None;
        }
        match key.code {
            KeyCode::Up => self.up(),
            KeyCode::Down => self.down(),
            KeyCode::Char('p') if modifiers == Modifiers::CONTROL => self.up(),
            KeyCode::Char('n') if modifiers == Modifiers::CONTROL => self.down(),
            KeyCode::Delete if self.text.is_empty() => self.remove_last_waiting(),
            _ => {
                let before = self.text.as_str().len();
                emacs::press(&mut self.text, key);
                if self.text.as_str().len() != before {
                    self.history.reset();
                }
            }
        }
        None
    }

    /// Removes the last waiting prompt. It stays in the history.
    fn remove_last_waiting(&mut self) {
        if let Some(prompt) = self.waiting.take_last() {
            self.history.add(&prompt);
        }
    }

    /// Moves one line up. In an empty box, the last waiting prompt comes back. On the first line, the history goes back.
    fn up(&mut self) {
        if self.text.is_empty()
            && let Some(prompt) = self.waiting.take_last()
        {
            return self.text.set(&prompt);
        }
        if let Some(end) = self.text.before_cursor().rfind('\n') {
            let start = self.text.as_str().get(..end).and_then(|above| above.rfind('\n')).map_or(0, |at| at + 1);
            return self.move_to_line(start);
        }
        let current = self.text.as_str().to_owned();
        if let Some(earlier) = self.history.previous(&current) {
            let earlier = earlier.to_owned();
            self.text.set(&earlier);
        }
    }

    /// Moves one line down. On the last line, the history goes forward.
    fn down(&mut self) {
        if let Some(end) = self.text.after_cursor().find('\n') {
            return self.move_to_line(self.text.position() + end + 1);
        }
        if let Some(later) = self.history.next() {
            let later = later.to_owned();
            self.text.set(&later);
        }
    }

    /// Moves the cursor to the same column in the line that starts here.
    fn move_to_line(&mut self, start: usize) {
        let before = self.text.before_cursor();
        let line = before.rsplit('\n').next().unwrap_or_default();
        let column = view::columns(line);
        let target = self.text.as_str().get(start..).unwrap_or_default();
        let target = target.split('\n').next().unwrap_or_default();
        let position = start + view::byte_at_column(target, column);
        self.text.set_position(position);
    }
}
