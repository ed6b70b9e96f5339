//! The emacs keys, which vi's insert mode shares.

use rustyline::line_buffer::WordAction;
use rustyline::{At, Movement, Word};
use termina::event::{KeyCode, KeyEvent, Modifiers};

use super::text::Text;

/// Changes the text as the key requires. Returns false if the key has no meaning.
pub(super) fn press(text: &mut Text, key: KeyEvent) -> bool {
    let Some(binding) = binding(key) else { return false };
    match binding {
        Binding::Move(movement) => _ = text.step(&movement),
        Binding::Delete(movement) => _ = text.delete(&movement),
        Binding::Kill(movement) => _ = text.kill(&movement),
        Binding::KillLine => kill_line(text),
        Binding::Yank => text.yank(),
        Binding::Transpose => text.transpose_characters(),
        Binding::Word(action) => text.change_word(action),
        Binding::Undo => text.undo(),
        Binding::Insert(character) => text.insert(character.encode_utf8(&mut [0; 4])),
        Binding::NewLine => text.insert("\n"),
    }
    true
}

enum Binding {
    Move(Movement),
    Delete(Movement),
    Kill(Movement),
    /// Kills to the start of the line, or at the start of a line its line end.
    KillLine,
    Yank,
    Transpose,
    Word(WordAction),
    Undo,
    Insert(char),
    NewLine,
}

fn binding(key: KeyEvent) -> Option<Binding> {
    let modifiers = key.modifiers - Modifiers::SHIFT;
    match key.code {
        KeyCode::Char(character) if modifiers.is_empty() => Some(Binding::Insert(character)),
        KeyCode::Char(character) if modifiers == Modifiers::CONTROL => control(character),
        KeyCode::Char(character) if modifiers == Modifiers::ALT => alt(character),
        other => named(other, modifiers),
    }
}

fn control(character: char) -> Option<Binding> {
    use Binding::{Delete, Kill, KillLine, Move, NewLine, Transpose, Undo, Yank};
    Some(match character {
        'a' => Move(Movement::BeginningOfLine),
        'b' => Move(Movement::BackwardChar(1)),
        'd' => Delete(Movement::ForwardChar(1)),
        'e' => Move(Movement::EndOfLine),
        'f' => Move(Movement::ForwardChar(1)),
        'h' => Delete(Movement::BackwardChar(1)),
        'j' => NewLine,
        'k' => Kill(Movement::EndOfLine),
        't' => Transpose,
        'u' => KillLine,
        'w' => Kill(Movement::BackwardWord(1, Word::Big)),
        'y' => Yank,
        // Terminals send Ctrl-_ and Ctrl-/ as this.
        '7' | '_' | '/' => Undo,
        _ => return None,
    })
}

fn alt(character: char) -> Option<Binding> {
    Some(match character.to_ascii_lowercase() {
        'b' => Binding::Move(Movement::BackwardWord(1, Word::Emacs)),
        'c' => Binding::Word(WordAction::Capitalize),
        'd' => Binding::Kill(Movement::ForwardWord(1, At::AfterEnd, Word::Emacs)),
        'f' => Binding::Move(Movement::ForwardWord(1, At::AfterEnd, Word::Emacs)),
        'l' => Binding::Word(WordAction::Lowercase),
        'u' => Binding::Word(WordAction::Uppercase),
        '<' => Binding::Move(Movement::BeginningOfBuffer),
        '>' => Binding::Move(Movement::EndOfBuffer),
        _ => return None,
    })
}

fn named(code: KeyCode, modifiers: Modifiers) -> Option<Binding> {
    let by_word = modifiers.intersects(Modifiers::CONTROL | Modifiers::ALT);
    Some(match (code, by_word) {
        (KeyCode::Left, false) => Binding::Move(Movement::BackwardChar(1)),
        (KeyCode::Right, false) => Binding::Move(Movement::ForwardChar(1)),
        (KeyCode::Left, true) => Binding::Move(Movement::BackwardWord(1, Word::Emacs)),
        (KeyCode::Right, true) => Binding::Move(Movement::ForwardWord(1, At::AfterEnd, Word::Emacs)),
        (KeyCode::Home, false) => Binding::Move(Movement::BeginningOfLine),
        (KeyCode::End, false) => Binding::Move(Movement::EndOfLine),
        (KeyCode::Home, true) => Binding::Move(Movement::BeginningOfBuffer),
        (KeyCode::End, true) => Binding::Move(Movement::EndOfBuffer),
        (KeyCode::Delete, false) => Binding::Delete(Movement::ForwardChar(1)),
        (KeyCode::Delete, true) => Binding::Kill(Movement::ForwardWord(1, At::AfterEnd, Word::Emacs)),
        (KeyCode::Backspace, false) => Binding::Delete(Movement::BackwardChar(1)),
        (KeyCode::Backspace, true) => Binding::Kill(Movement::BackwardWord(1, Word::Emacs)),
        _ => return None,
    })
}

fn kill_line(text: &mut Text) {
    if text.before_cursor().ends_with('\n') {
        text.kill(&Movement::BackwardWord(0, Word::Big));
        text.delete(&Movement::BackwardChar(1));
    } else {
        text.kill(&Movement::BeginningOfLine);
    }
}
