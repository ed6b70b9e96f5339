//! The line editor, on a thread of its own: it may be in a read that nothing but a key ends.
//!
//! Invariant: what was typed or pasted before a request of the agent is shown is no answer to it. Answers have an editor of
//! their own, which has read nothing before, and what waits in the terminal is thrown away first.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Cmd, Config, EventHandler, Helper, KeyCode, KeyEvent, Modifiers};
use tokio::sync::oneshot;

use super::terminal::forget_typed;
use crate::printable::Printable;

/// Lines that are kept from one conversation to the next.
const HISTORY: usize = 1000;

/// What was typed.
#[derive(Debug)]
pub(super) enum Typed {
    Line(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the terminal is gone.
    Ended,
}

/// For what a line is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// For the agent or for us: with history, and as many lines as it takes.
    Words,
    /// To answer a request.
    Answer,
}

/// Asks the thread for a line.
#[derive(Debug)]
pub(super) struct Editor(mpsc::Sender<Asked>);

#[derive(Debug)]
struct Asked {
    prompt: Printable,
    purpose: Purpose,
    reply: oneshot::Sender<Typed>,
}

impl Editor {
    /// Starts it, with what was typed in conversations before.
    pub(super) fn start(history: Option<PathBuf>) -> io::Result<Self> {
        let (sender, asked) = mpsc::channel::<Asked>();
        let mut words = editor(history.as_deref()).map_err(io::Error::other)?;
        let body = move || {
            for Asked { prompt, purpose, reply } in asked {
                let typed = match purpose {
                    Purpose::Words => read(&mut words, prompt.as_str(), history.as_deref()),
                    Purpose::Answer => answer(prompt.as_str()),
                };
                // Who asked may have ended.
                _ = reply.send(typed);
            }
        };
        std::thread::Builder::new().name("editor".to_owned()).spawn(body)?;
        Ok(Self(sender))
    }

    /// Reads a line. Dropped, it is read all the same, and lost.
    pub(super) async fn ask(&self, prompt: Printable, purpose: Purpose) -> Typed {
        let (reply, typed) = oneshot::channel();
        _ = self.0.send(Asked { prompt, purpose, reply });
        typed.await.unwrap_or(Typed::Ended)
    }
}

type Words = rustyline::Editor<Lines, FileHistory>;

fn config() -> Config {
    Config::builder().history_ignore_space(true).bracketed_paste(true).build()
}

fn editor(history: Option<&Path>) -> rustyline::Result<Words> {
    let config = Config::builder().max_history_size(HISTORY)?.history_ignore_space(true).bracketed_paste(true).build();
    let mut words = Words::with_config(config)?;
    words.set_helper(Some(Lines));
    words.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), EventHandler::Simple(Cmd::Newline));
    if let Some(history) = history {
        // A file that cannot be read is one that begins anew.
        _ = words.load_history(history);
    }
    Ok(words)
}

fn read(words: &mut Words, prompt: &str, history: Option<&Path>) -> Typed {
    let line = match words.readline(prompt) {
        Ok(line) => line,
        Err(error) => return failed(&error),
    };
    // A history that cannot be written is no reason to lose the line.
    if let (Ok(true), Some(history)) = (words.add_history_entry(line.as_str()), history) {
        _ = words.append_history(history);
    }
    Typed::Line(line)
}

fn answer(prompt: &str) -> Typed {
    forget_typed();
    let line = rustyline::DefaultEditor::with_config(config()).and_then(|mut editor| editor.readline(prompt));
    line.map_or_else(|error| failed(&error), Typed::Line)
}

fn failed(error: &ReadlineError) -> Typed {
    if matches!(error, ReadlineError::Interrupted) { Typed::Interrupted } else { Typed::Ended }
}

/// A line that ends with a backslash goes on.
struct Lines;

impl Validator for Lines {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let goes_on = context.input().ends_with('\\');
        Ok(if goes_on { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl Completer for Lines {
    type Candidate = String;
}

impl Hinter for Lines {
    type Hint = String;
}

impl Highlighter for Lines {}
impl Helper for Lines {}
