//! The meaning of each key.

use termina::event::{KeyCode, KeyEvent, Modifiers};

use super::completion::CompletionRequest;
use super::history::Search;
use super::input_box::{Action, Input, PendingKey};
use super::vi::{Effect, Vi};
use super::{columns, emacs};

impl Input {
    /// Executes Enter or Tab.
    pub(super) fn execute(&mut self, key: PendingKey) -> Option<Action> {
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
        if let Some(menu) = self.menu.as_mut().filter(|menu| !menu.is_offered || menu.chosen.is_some()) {
            menu.choose(&mut self.text, true);
            return None;
        }
        CompletionRequest::at_cursor(&self.text).map(Action::Complete)
    }

    /// Ends the search. The found text becomes the text of the box. Returns false if there is no search.
    pub(super) fn leave_search(&mut self) -> bool {
        let Some(search) = self.search.take() else { return false };
        if search.is_found() {
            // The text before stays in the history.
            self.discard_text();
            self.text.set(&search.text);
        }
        true
    }

    /// Handles any key except Enter and Tab.
    pub(super) fn handle(&mut self, key: KeyEvent) -> Option<Action> {
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

    /// Whether vi's normal mode is active.
    pub(super) fn is_vi_normal(&self) -> bool {
        self.vi.as_ref().is_some_and(Vi::is_normal)
    }

    fn escape(&mut self) -> Option<Action> {
        if self.menu.take().is_some() {
            self.dismissed = Some(self.text.as_str().to_owned());
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
            KeyCode::Up | KeyCode::Down => {
                answer.choose(key.code == KeyCode::Down);
                None
            }
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
        if let Some(menu) = self.menu.as_mut().filter(|_| matches!(key.code, KeyCode::Up | KeyCode::Down)) {
            menu.choose(&mut self.text, key.code == KeyCode::Down);
            return None;
        }
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
        let column = columns::columns(line);
        let target = self.text.as_str().get(start..).unwrap_or_default();
        let target = target.split('\n').next().unwrap_or_default();
        let position = start + columns::byte_at_column(target, column);
        self.text.set_position(position);
    }
}
