//! Executes the commands of every chat.

use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use super::backend::{Backend, Origin};
use super::command::{self, Line};
use super::state::{Chat, End, TaskResult};
use crate::printable::{Printable, printable};
use crate::render::width_of_stdout;

/// The largest text that terminals accept for their clipboard.
const MAX_COPIED_BYTES: usize = 74_994;

impl<B: Backend> Chat<'_, B> {
    /// Sends a prompt or executes a command. With `is_shown`, the terminal shows the text already.
    pub(super) async fn execute(&mut self, text: String, is_shown: bool) -> Result<(), End> {
        let line = command::parse(&text);
        let is_shown = is_shown || B::IS_SHARED && matches!(line, Line::Prompt(_));
        if !is_shown && line != Line::Empty {
            self.print_prompt(&text);
        }
        match line {
            Line::Empty => {}
            Line::Prompt(text) => B::send(self, text),
            Line::Help => {
                self.message(command::help(B::COMMANDS, B::STOP_KEYS, self.page.is_live(), width_of_stdout()));
            }
            Line::Cost => self.message(self.totals.summary()),
            Line::Quit => return Err(End::Quit),
            Line::Invalid(problem) => self.message(problem),
            Line::Tools => {
                let calls = self.record.calls_of_last_turn(&self.directory, width_of_stdout());
                self.message(calls.unwrap_or_else(|| "the last turn has no tool calls".into()));
            }
            Line::Copy => self.copy(),
            Line::Export(file) => self.export(&file),
            line => return B::execute(self, line).await,
        }
        Ok(())
    }

    fn copy(&mut self) {
        let Some(answer) = self.record.last_answer().map(str::to_owned) else {
            return self.message("there is no answer yet");
        };
        if !self.page.is_live() {
            return self.message("this terminal has no clipboard for commands");
        }
        if answer.len() > MAX_COPIED_BYTES {
            return self.message(printable!(
                "the answer has {} bytes, and terminals accept {}: /export FILE writes it to a file",
                answer.len(),
                MAX_COPIED_BYTES
            ));
        }
        let count = answer.chars().count();
        self.page.copy(answer);
        self.message(printable!("copied {} characters, if the terminal allows it (OSC 52)", count));
    }

    fn export(&mut self, file: &str) {
        if self.record.is_empty() {
            return self.message("there is nothing to export yet");
        }
        let path = match (file.strip_prefix("~/"), std::env::var_os("HOME")) {
            (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
            _ => self.files.join(file),
        };
        let Origin { id, is_partial } = B::origin(self);
        let text = self.record.markdown(self.backend.agent(), id.as_deref(), &self.directory, is_partial);
        self.tasks.spawn_blocking(move || {
            TaskResult::Message(match write_new(&path, &text) {
                Ok(()) => printable!("wrote {}", &path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    printable!("{} exists already: name another file", &path)
                }
                Err(error) => printable!("cannot write {}: {}", &path, Printable::error(&error)),
            })
        });
    }
}

/// Writes a file that does not exist yet, and that only the user can read. A file that cannot be written whole is removed.
fn write_new(path: &PathBuf, text: &str) -> io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        _ = std::fs::remove_file(path);
    }
    written
}
