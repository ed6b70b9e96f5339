//! `teamster chat`: a conversation in a terminal.
//!
//! - [`event_loop`] handles keys, signals and the events of the agent one by one; [`state`] is what they change.
//! - [`backend`] is where the events come from and where the input goes: [`local`] is a session of this process, `gateway`
//!   a conversation of a gateway. Everything else is the same for both.
//! - Keys change the input box ([`crate::input`]), which stays usable while the agent works. [`actions`] and [`commands`]
//!   execute what it requests, [`requests`] and [`answer`] show requests of the agent and read the answers.
//! - [`page`] writes the output and [`KeyReader`] reads the keys, each on its own thread. On a terminal that cannot move
//!   its cursor, whole lines are read and nothing is redrawn.
//!
//! Invariants: the terminal settings are restored at the end; no typed text is lost; input that was typed before a request
//! of the agent is shown does not answer it; when a chat ends, for any reason, no process that it started remains.

mod actions;
mod answer;
mod backend;
mod command;
mod commands;
mod completion;
mod event_loop;
mod events;
mod external_editor;
#[cfg(feature = "serve")]
mod gateway;
mod git_diff;
mod history;
mod local;
mod page;
mod question;
mod record;
mod request;
mod requests;
mod state;
mod status_line;
mod suspension;
mod terminal_signals;
mod usage_totals;

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::time::Duration;

use teamster::Readiness;
use tokio::task::JoinSet;

use self::backend::Backend;
use self::history::HistoryFile;
use self::local::LocalSession;
use self::page::Page;
use self::record::Record;
use self::state::{Chat, End};
use self::terminal_signals::TerminalSignals;
use self::usage_totals::UsageTotals;
use crate::args::{ChatArgs, ToolOutput};
use crate::exit;
use crate::input::{History, Input, Keys};
use crate::option_names;
use crate::plan::{self, SessionPlan, SystemInputs};
use crate::printable::{Printable, printable};
use crate::render::{TICK, write_error};
use crate::runtime::{self, FINAL_OUTPUT_TIMEOUT, report_usage_error};
use crate::signals::Signals;
use crate::terminal::{KeyReader, Terminal};
use crate::usage::Journal;
use crate::vendor;

/// Runs the command and returns its exit code.
pub(crate) fn main(args: ChatArgs) -> u8 {
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        let hint = "use teamster session from a program, or teamster run for one prompt";
        return report_usage_error(&"a chat needs a terminal for input and output".into(), Some(hint.into()));
    }
    #[cfg(feature = "serve")]
    if let Some(conversation) = args.gateway.joined() {
        return gateway::main(args, conversation);
    }
    // No timeout: a person may be away from the terminal.
    match plan::plan_session(args.conversation, Duration::ZERO, &mut SystemInputs) {
        Ok(mut plan) => {
            plan.request.background_tasks = args.background_tasks;
            let prompt = args.prompt.filter(|prompt| !prompt.trim().is_empty());
            if let Some((message, hint)) = missing(&plan) {
                write_error(&mut anstream::stderr(), &message, Some(&hint));
                return exit::NOT_FOUND;
            }
            runtime::run_command(runtime::Threads::Workers, run_chat(plan, args.keys.unwrap_or_default(), prompt))
        }
        Err(error) => report_usage_error(&option_names::in_error(&error), error.hint()),
    }
}

/// Returns the error and the remedy if the agent's usual program is not installed.
fn missing(plan: &SessionPlan) -> Option<(Printable, Printable)> {
    let install = vendor::install(&plan.agent)?;
    let readiness = plan.runtime.readiness(&plan.agent).ok()?;
    (plan.request.cli_path.is_none() && readiness == Readiness::NotInstalled)
        .then(|| (printable!("{} is not installed", &plan.agent), install))
}

async fn run_chat(plan: SessionPlan, keys: Keys, prompt: Option<String>) -> io::Result<u8> {
    // Signals are caught before a process is started, so that no signal can leave a process behind.
    let mut signals = Signals::catch()?;
    let current = std::env::current_dir()?;
    let directory = plan.request.cwd.as_ref().map_or_else(|| current.clone(), |cwd| current.join(cwd));
    let (history_file, earlier) = HistoryFile::open(&directory);
    let journal = Journal::open(plan.usage_journal.clone(), &plan.agent, &plan.request);
    let session = match plan.runtime.open(&plan.agent, plan.request.clone()) {
        Ok(session) => session,
        Err(error) => return Ok(report_usage_error(&option_names::in_error(&error), None)),
    };
    let start = Start { directory: directory.clone(), files: directory, keys, prompt, tool_output: plan.tool_output };
    start.run(LocalSession::new(plan, session, journal), &mut signals, (history_file, earlier)).await
}

/// How a chat starts.
struct Start {
    /// The agent's working directory, and that of the paths in commands.
    directory: PathBuf,
    files: PathBuf,
    keys: Keys,
    /// The first prompt.
    prompt: Option<String>,
    tool_output: Option<ToolOutput>,
}

impl Start {
    /// Runs the chat to its end. Returns the exit code.
    async fn run<B: Backend>(
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
