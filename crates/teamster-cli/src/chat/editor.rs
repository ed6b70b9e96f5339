//! The line editor. It runs on a separate thread, since only a key press ends its read.
//!
//! Invariant: input that was typed or pasted before a request of the agent is shown does not answer that request. So each
//! answer is read by a new editor with an empty buffer, after the unread input of the terminal was discarded.

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

use super::terminal::discard_input;
use crate::printable::Printable;

/// The number of lines in the history file.
const HISTORY: usize = 1000;

/// The result of reading a line.
#[derive(Debug)]
pub(super) enum Typed {
    Line(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the terminal was closed.
    Ended,
}

/// The purpose of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A prompt or a command: with history, and possibly several lines.
    Prompt,
    /// The answer to a request of the agent.
    Answer,
}

/// The handle of the editor thread.
#[derive(Debug)]
pub(super) struct Editor(mpsc::Sender<ReadRequest>);

#[derive(Debug)]
struct ReadRequest {
    prompt: Printable,
    purpose: Purpose,
    reply: oneshot::Sender<Typed>,
}

impl Editor {
    /// Starts the thread and loads the history file.
    pub(super) fn start(history: Option<PathBuf>) -> io::Result<Self> {
        let (sender, requests) = mpsc::channel::<ReadRequest>();
        let mut editor = prompt_editor(history.as_deref()).map_err(io::Error::other)?;
        let body = move || {
            for ReadRequest { prompt, purpose, reply } in requests {
                let typed = match purpose {
                    Purpose::Prompt => read_prompt(&mut editor, prompt.as_str(), history.as_deref()),
                    Purpose::Answer => read_answer(prompt.as_str()),
                };
                // The receiver may have been dropped.
                _ = reply.send(typed);
            }
        };
        std::thread::Builder::new().name("editor".to_owned()).spawn(body)?;
        Ok(Self(sender))
    }

    /// Reads a line. If the future is dropped, the line is still read, and discarded.
    pub(super) async fn read(&self, prompt: Printable, purpose: Purpose) -> Typed {
        let (reply, typed) = oneshot::channel();
        _ = self.0.send(ReadRequest { prompt, purpose, reply });
        typed.await.unwrap_or(Typed::Ended)
    }
}

type PromptEditor = rustyline::Editor<LineContinuation, FileHistory>;

fn config() -> Config {
    Config::builder().history_ignore_space(true).bracketed_paste(true).build()
}

fn prompt_editor(history: Option<&Path>) -> rustyline::Result<PromptEditor> {
    let config = Config::builder().max_history_size(HISTORY)?.history_ignore_space(true).bracketed_paste(true).build();
    let mut editor = PromptEditor::with_config(config)?;
    editor.set_helper(Some(LineContinuation));
    editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), EventHandler::Simple(Cmd::Newline));
    if let Some(history) = history {
        // If the file cannot be read, the history starts empty.
        _ = editor.load_history(history);
    }
    Ok(editor)
}

fn read_prompt(editor: &mut PromptEditor, prompt: &str, history: Option<&Path>) -> Typed {
    let line = match editor.readline(prompt) {
        Ok(line) => line,
        Err(error) => return failed(&error),
    };
    // An error of the history is ignored, so that the line is not lost.
    if let (Ok(true), Some(history)) = (editor.add_history_entry(line.as_str()), history) {
        _ = editor.append_history(history);
    }
    Typed::Line(line)
}

fn read_answer(prompt: &str) -> Typed {
    discard_input();
    let line = rustyline::DefaultEditor::with_config(config()).and_then(|mut editor| editor.readline(prompt));
    line.map_or_else(|error| failed(&error), Typed::Line)
}

fn failed(error: &ReadlineError) -> Typed {
    if matches!(error, ReadlineError::Interrupted) { Typed::Interrupted } else { Typed::Ended }
}

/// Continues the input after a line that ends with a backslash.
struct LineContinuation;

impl Validator for LineContinuation {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let continues = context.input().ends_with('\\');
        Ok(if continues { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl Completer for LineContinuation {
    type Candidate = String;
}

impl Hinter for LineContinuation {
    type Hint = String;
}

impl Highlighter for LineContinuation {}
impl Helper for LineContinuation {}
