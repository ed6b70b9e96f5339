//! Promises of the input box.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use termina::event::{KeyCode, KeyEvent, Modifiers};

use super::*;

/// An input box, with the time at which the next key arrives.
struct Box {
    input: Input,
    now: Instant,
    actions: Vec<Action>,
}

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, Modifiers::NONE)
}

fn control(character: char) -> KeyEvent {
    KeyEvent::new(KeyCode::Char(character), Modifiers::CONTROL)
}

impl Box {
    fn new(keys: Keys) -> Self {
        let history = History::new(["earlier one", "earlier two"].map(str::to_owned).to_vec());
        Self { input: Input::new(keys, history), now: Instant::now(), actions: Vec::new() }
    }

    /// Presses a key after a pause, and waits.
    fn press(&mut self, key: KeyEvent) -> &mut Self {
        self.wait();
        self.actions.extend(self.input.press(key, self.now));
        self.wait();
        self
    }

    fn wait(&mut self) {
        self.now += Duration::from_millis(100);
        if self.input.deadline().is_some_and(|deadline| deadline <= self.now) {
            self.actions.extend(self.input.settle());
        }
    }

    fn code(&mut self, code: KeyCode) -> &mut Self {
        self.press(key(code))
    }

    /// Types one character after another.
    fn type_text(&mut self, text: &str) -> &mut Self {
        for character in text.chars() {
            self.code(KeyCode::Char(character));
        }
        self
    }

    /// Receives characters that arrive together.
    fn burst(&mut self, text: &str) -> &mut Self {
        for character in text.chars() {
            let code = match character {
                '\r' => KeyCode::Enter,
                '\t' => KeyCode::Tab,
                other => KeyCode::Char(other),
            };
            self.actions.extend(self.input.press(key(code), self.now));
        }
        self.wait();
        self
    }

    fn actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Returns the shown lines, with the cursor as `|`.
    fn shown(&self, width: usize) -> String {
        let View { lines, cursor } = self.input.view(width, 10, 24);
        let mut lines: Vec<String> = lines.iter().map(|line| line.without_styles().as_str().to_owned()).collect();
        let line = &mut lines[cursor.row];
        let at = columns::byte_at_column(line, cursor.column);
        line.insert(at, '|');
        lines.join("\n")
    }
}

fn submitted(text: &str) -> Vec<Action> {
    vec![Action::Submit(text.to_owned())]
}

#[test]
fn a_typed_line_is_submitted_by_enter() {
    let mut typed = Box::new(Keys::Emacs);
    typed.type_text("hello").code(KeyCode::Enter);
    assert_eq!(typed.actions(), submitted("hello"));
    assert_eq!(typed.shown(40), "> |");
    assert_eq!(typed.code(KeyCode::Enter).actions(), []);
}

#[test]
fn characters_that_arrive_together_are_one_message() {
    for (burst, expected, left) in [
        ("hello\r", submitted("hello"), ""),
        ("one\rtwo\rthree\r", submitted("one\ntwo\nthree"), ""),
        ("one\r\r\ttwo\r", submitted("one\n\n\ttwo"), ""),
        ("one\rtwo", vec![], "one\ntwo"),
    ] {
        let mut typed = Box::new(Keys::Emacs);
        typed.burst(burst);
        assert_eq!((typed.actions(), typed.input.text()), (expected, left), "{burst:?}");
    }
}

#[test]
fn a_paste_is_inserted_and_not_submitted() {
    let mut typed = Box::new(Keys::Emacs);
    typed.type_text("see: ");
    assert_eq!(typed.input.paste("a\r\nb\rc\n"), []);
    assert_eq!(typed.input.text(), "see: a\nb\nc\n");
    typed.code(KeyCode::Enter);
    assert_eq!(typed.actions(), submitted("see: a\nb\nc\n"));
}

#[test]
fn a_new_line_is_started_by_a_backslash_and_by_alt_enter() {
    let mut typed = Box::new(Keys::Emacs);
    typed.type_text("one\\").code(KeyCode::Enter).type_text("two");
    typed.press(KeyEvent::new(KeyCode::Enter, Modifiers::ALT)).type_text("three").press(control('j'));
    assert_eq!(typed.shown(40), "> one\n  two\n  three\n  |");
    assert_eq!(typed.code(KeyCode::Enter).actions(), submitted("one\ntwo\nthree\n"));
}

#[test]
fn up_and_down_move_in_the_lines_and_then_through_the_history() {
    let mut typed = Box::new(Keys::Emacs);
    typed.type_text("long line").press(control('j')).type_text("short");
    assert_eq!(typed.code(KeyCode::Up).shown(40), "> long |line\n  short");
    typed.code(KeyCode::Up);
    assert_eq!(typed.input.text(), "earlier two");
    typed.code(KeyCode::Up).code(KeyCode::Up);
    assert_eq!(typed.input.text(), "earlier one");
    typed.code(KeyCode::Down).code(KeyCode::Down);
    assert_eq!(typed.input.text(), "long line\nshort");
}

#[test]
fn waiting_prompts_are_shown_taken_back_and_removed() {
    let mut typed = Box::new(Keys::Emacs);
    for prompt in ["first", "second\nline", "third"] {
        typed.input.waiting.add(prompt.to_owned());
    }
    insta::assert_snapshot!(typed.shown(60), @r"
      waiting: first
      waiting: (2 lines) second line
      waiting: third
      (in an empty line: Up edits the last, Del removes it)
    > |
    ");
    typed.code(KeyCode::Delete).code(KeyCode::Up);
    assert_eq!((typed.input.text(), typed.input.waiting.len()), ("second\nline", 1));
    typed.press(control('c'));
    typed.input.discard_text();
    typed.input.waiting.hold();
    typed.code(KeyCode::Enter);
    assert_eq!(typed.actions(), [Action::Interrupt, Action::SendWaiting]);
    // What was removed is in the history.
    typed.input.waiting.release();
    while typed.input.waiting.next().is_some() {}
    typed.code(KeyCode::Up);
    assert_eq!(typed.input.text(), "second\nline");
    typed.code(KeyCode::Up).code(KeyCode::Up);
    assert_eq!(typed.input.text(), "third");
}

#[test]
fn an_answer_leaves_the_text_as_it_is() {
    let mut typed = Box::new(Keys::Emacs);
    typed.type_text("my text");
    typed.input.ask("  allow? ".into(), Vec::new());
    typed.type_text("y");
    assert_eq!(typed.shown(40), "  allow? y|\n  your text stays: my text");
    typed.code(KeyCode::Enter);
    assert_eq!(typed.actions(), [Action::Answer("y".to_owned())]);
    typed.code(KeyCode::Escape);
    assert_eq!(typed.actions(), [Action::Stop]);
    typed.input.end_answer();
    assert_eq!(typed.shown(40), "> my text|");
}

#[test]
fn a_search_finds_earlier_texts_and_keeps_the_own_one() {
    let mut typed = Box::new(Keys::Emacs);
    typed.type_text("mine").press(control('r')).type_text("earl");
    assert_eq!(typed.shown(40), "search: earl|\n  earlier two");
    typed.press(control('r')).code(KeyCode::Enter);
    assert_eq!(typed.shown(40), "> earlier one|");
    typed.press(control('r')).type_text("mine").code(KeyCode::Enter);
    assert_eq!(typed.shown(40), "> mine|");
    typed.press(control('r')).type_text("zzz");
    assert_eq!(typed.shown(40), "no match for search: zzz|\n  ");
    typed.code(KeyCode::Escape);
    assert_eq!((typed.shown(40).as_str(), typed.actions()), ("> mine|", vec![]));
}

#[test]
fn tab_requests_candidates_and_goes_through_them() {
    let mut typed = Box::new(Keys::Emacs);
    typed.type_text("/permission ").code(KeyCode::Tab);
    let [Action::Complete(request)] = &typed.actions()[..] else { panic!("no request") };
    assert_eq!(request.subject, Subject::Argument("permission".to_owned()));
    typed.input.complete(request, ["ask", "edit"].map(|name| Candidate::new(name, "")).to_vec());
    assert_eq!(typed.shown(40), "> /permission |\n  ask\n  edit");
    typed.code(KeyCode::Tab).code(KeyCode::Tab);
    assert_eq!(typed.shown(40), "> /permission edit|\n  ask\n  edit");
    assert_eq!(typed.code(KeyCode::Enter).actions(), []);
    assert_eq!(typed.code(KeyCode::Enter).actions(), submitted("/permission edit"));
}

#[test]
fn keys_that_are_not_text_become_actions() {
    let mut typed = Box::new(Keys::Emacs);
    typed.press(control('d')).press(control('z')).press(control('l')).press(control('g')).code(KeyCode::Escape);
    typed.press(control('x')).press(control('e'));
    typed.type_text("now").press(control('s'));
    assert_eq!(
        typed.actions(),
        [
            Action::Quit,
            Action::Suspend,
            Action::Redraw,
            Action::OpenEditor,
            Action::Stop,
            Action::OpenEditor,
            Action::SendNow("now".to_owned()),
        ]
    );
}

#[test]
fn escape_in_vi_leaves_the_insert_mode_first() {
    let mut typed = Box::new(Keys::Vi);
    typed.type_text("one two").code(KeyCode::Escape);
    assert_eq!((typed.shown(40).as_str(), typed.actions()), (": one tw|o", vec![]));
    typed.type_text("bcw").type_text("x").code(KeyCode::Enter);
    assert_eq!(typed.actions(), submitted("one x"));
    typed.code(KeyCode::Escape).code(KeyCode::Escape);
    assert_eq!(typed.actions(), [Action::Stop]);
}

#[test]
fn a_long_text_is_wrapped_and_shown_around_the_cursor() {
    let mut typed = Box::new(Keys::Emacs);
    typed.input.paste("abcdefgh漢字ij\u{1b}k");
    assert_eq!(typed.shown(12), "> abcdefgh\n  漢字ij\n  ⟦ESC⟧k|");
    typed.input.paste(&"\nline".repeat(20));
    let View { lines, cursor } = typed.input.view(12, 3, 24);
    assert_eq!((lines.len(), cursor), (3, crate::live_area::Cursor { row: 2, column: 6 }));
}

proptest! {
    /// The text is in the box, in the history, or in an action; with pauses, bursts and pastes anywhere.
    #[test]
    fn no_character_is_lost(parts in prop::collection::vec((0..4_u8, "[a-zA-Z0-9 .äö漢\\n]{0,12}"), 0..20)) {
        let mut typed = Box::new(Keys::Emacs);
        let mut expected = String::new();
        let mut received = String::new();
        for (kind, text) in parts {
            match kind {
                0 => { typed.type_text(&text.replace('\n', "")); }
                1 => { typed.burst(&text.replace('\n', "\r")); }
                2 => {
                    let actions = typed.input.paste(&text);
                    typed.actions.extend(actions);
                }
                _ => {
                    typed.code(KeyCode::Enter);
                    continue;
                }
            }
            expected.push_str(&text);
        }
        for action in typed.actions() {
            match action {
                Action::Submit(text) => received.push_str(&text),
                other => prop_assert!(false, "{other:?}"),
            }
        }
        received.push_str(typed.input.text());
        let visible = |text: &str| text.chars().filter(|character| !character.is_whitespace()).collect::<String>();
        prop_assert_eq!(visible(&received), visible(&expected));
    }

    /// No key crashes the box, whatever its text.
    #[test]
    fn every_key_is_accepted(
        vi in any::<bool>(),
        text in "[a-z .,(é漢👩‍👩‍👧\\n\\t]{0,30}",
        keys in prop::collection::vec((any::<u8>(), 0..3_u8), 0..60),
        width in 0..30_usize,
    ) {
        let mut typed = Box::new(if vi { Keys::Vi } else { Keys::Emacs });
        typed.input.paste(&text);
        typed.input.waiting.add("waiting".to_owned());
        for (number, modifiers) in keys {
            let modifiers = match modifiers {
                0 => Modifiers::NONE,
                1 => Modifiers::CONTROL,
                _ => Modifiers::ALT,
            };
            let named = [KeyCode::Left, KeyCode::Right, KeyCode::Up, KeyCode::Down, KeyCode::Home, KeyCode::End,
                KeyCode::Delete, KeyCode::Backspace, KeyCode::Enter, KeyCode::Tab, KeyCode::BackTab, KeyCode::Escape];
            let code = match number {
                0..=127 => KeyCode::Char(char::from(number.max(32))),
                other => named[usize::from(other) % named.len()],
            };
            typed.press(KeyEvent::new(code, modifiers));
            let View { lines, cursor } = typed.input.view(width, 5, 24);
            prop_assert!(cursor.row < lines.len());
        }
    }
}

#[test]
fn arrow_keys_choose_the_option_of_a_question_by_its_number() {
    let mut typed = Box::new(Keys::Emacs);
    typed.input.ask("which? ".into(), ["Red".into(), "Blue".into()].to_vec());
    typed.code(KeyCode::Down).code(KeyCode::Down).code(KeyCode::Down);
    let lines = typed.input.view(40, 5, 24).lines;
    assert_eq!(lines.last().unwrap().without_styles().as_str(), "  ❯ Blue");
    typed.code(KeyCode::Up).code(KeyCode::Enter);
    assert_eq!(typed.actions, [Action::Answer("1".to_owned())]);
    // An answer in words is kept.
    typed.type_text("neither").code(KeyCode::Up).code(KeyCode::Enter);
    assert_eq!(typed.actions.last(), Some(&Action::Answer("neither".to_owned())));
}

#[test]
fn a_menu_that_is_offered_is_used_with_arrows_and_closed_with_escape() {
    let mut typed = Box::new(Keys::Emacs);
    let offer = |typed: &mut Box| {
        let request = typed.input.offerable()?;
        let candidates = [("help", "print this help"), ("new", "start again")];
        let candidates = candidates.map(|(name, note)| Candidate::new(name, note)).to_vec();
        typed.input.offer(&request, candidates);
        Some(request.subject)
    };
    assert_eq!(offer(&mut typed), None);
    typed.type_text("/");
    assert_eq!(offer(&mut typed), Some(Subject::Command));
    assert_eq!(typed.input.text(), "/");
    let lines = typed.input.view(40, 5, 24).lines;
    let lines: Vec<_> = lines.iter().map(|line| line.without_styles().as_str().to_owned()).collect();
    assert_eq!(lines, ["> /", "  /help  print this help", "  /new   start again"]);
    typed.code(KeyCode::Down).code(KeyCode::Down);
    assert_eq!(typed.input.text(), "/new");
    typed.code(KeyCode::Escape);
    assert_eq!(offer(&mut typed), None);
    typed.type_text("x");
    assert!(offer(&mut typed).is_some());
}
