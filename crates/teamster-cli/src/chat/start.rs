//! Starts a chat on the terminal, and ends it.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

use tokio::task::JoinSet;

use super::backend::Backend;
use super::history::HistoryFile;
use super::page::Page;
use super::record::Record;
use super::state::{Chat, End};
use super::terminal_signals::TerminalSignals;
use super::usage_totals::UsageTotals;
use crate::args::ToolOutput;
use crate::exit;
use crate::input::{History, Input, Keys};
use crate::printable::{Printable, printable};
use crate::render::TICK;
use crate::runtime::FINAL_OUTPUT_TIMEOUT;
use crate::signals::Signals;
use crate::terminal::{KeyReader, Terminal};

/// How a chat starts.
pub(super) struct Start {
    /// The agent's working directory, and that of the paths in commands.
    pub(super) directory: PathBuf,
    pub(super) files: PathBuf,
    pub(super) keys: Keys,
    /// The first prompt.
    pub(super) prompt: Option<String>,
    pub(super) tool_output: Option<ToolOutput>,
}

impl Start {
    /// Runs the chat to its end. Returns the exit code.
    pub(super) async fn run<B: Backend>(
        self,
        backend: B,
        signals: &mut Signals,
        (history_file, earlier): (HistoryFile, Vec<String>),
    ) -> io::Result<u8> {
        let page = Page::start(backend.agent(), self.tool_output)?;
        let terminal = Terminal::enter(page.is_live())?;
        let mut input = Input::new(self.keys, History::new(earlier));
        if let Some(prompt) = self.prompt {
            input.waiting.add(prompt);
        }
        let mut chat = Chat {
            backend,
            directory: self.directory,
            files: self.files,
            terminal: &terminal,
            signals,
            terminal_signals: TerminalSignals::catch()?,
            keys: Some(KeyReader::start(page.is_live())?),
            ticks: tokio::time::interval(TICK),
            page,
            input,
            history_file,
            record: Record::default(),
            totals: UsageTotals::default(),
            model: None,
            requests: VecDeque::new(),
            asking: None,
            actions: VecDeque::new(),
            tasks: JoinSet::new(),
            completions: JoinSet::new(),
            notice: None,
            last_key: None,
            submitted: None,
            prompt_is_shown: false,
            quit_is_announced: false,
        };
        chat.ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let end = chat.run().await;
        let code = chat.finish(end).await;
        drop(terminal);
        Ok(code)
    }
}

impl<B: Backend> Chat<'_, B> {
    /// Restores the terminal, prints how to resume, and ends what the chat started. Returns the exit code.
    async fn finish(mut self, end: End) -> u8 {
        if end != End::NoTerminal {
            // A terminal that is blocked must not delay the end.
            _ = tokio::time::timeout(FINAL_OUTPUT_TIMEOUT, self.leave()).await;
        }
        self.terminal.restore();
        let Chat { backend, signals, tasks, .. } = self;
        drop(tasks);
        let code = backend.close(signals).await;
        match end {
            End::Quit => code,
            End::Stopped => exit::INTERRUPTED,
            End::NoTerminal => exit::NO_READER,
        }
    }

    /// Leaves the terminal, and prints how to resume the conversation.
    async fn leave(&mut self) -> Result<(), End> {
        self.leave_terminal().await?;
        self.page.finish();
        let draft = Some(self.input.text().to_owned()).filter(|draft| !draft.trim().is_empty());
        for prompt in self.input.waiting.take_all().into_iter().chain(draft) {
            self.message(printable!("not sent: {}", Printable::prose(&prompt)));
        }
        B::leave(self).await;
        let flushed = self.page.flush();
        self.wait_for_writer(flushed).await
    }
}
