//! `teamster chat`: a conversation in a terminal.
//!
//! One loop handles keys, signals, and the events of the running turn. Keys change the input box ([`crate::input`]), which
//! stays usable while the agent works; its actions are executed by [`actions`]. The output is written by a thread
//! ([`page`]), and keys are read by another one ([`keys`]). On a terminal that cannot move its cursor, whole lines are read
//! and nothing is redrawn.
//!
//! Invariants: the terminal settings are restored at the end; no typed text is lost; input that was typed before a request
//! of the agent is shown does not answer it; when the conversation ends, for any reason, no process of it remains.

mod actions;
mod answer;
mod command;
mod commands;
mod completion;
mod external_editor;
mod git_diff;
mod history;
mod keys;
mod page;
mod permissions;
mod question;
mod record;
mod request;
mod status_line;
mod suspension;
mod terminal;
mod turn;
mod usage_totals;

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use teamster::{Run, Session};
use termina::event::Modifiers;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::Interval;

use self::actions::TaskResult;
use self::history::HistoryFile;
use self::keys::{KeyReader, TerminalInput};
use self::page::Page;
use self::record::Record;
use self::suspension::TerminalSignals;
use self::terminal::Terminal;
use self::turn::{Turn, TurnItem};
use self::usage_totals::UsageTotals;
use crate::args::ChatArgs;
use crate::exit;
use crate::input::{Action, CompletionRequest, History, Input, Keys};
use crate::option_names;
use crate::plan::{self, SessionPlan, SystemInputs};
use crate::printable::{Printable, printable};
use crate::render::TICK;
use crate::runtime::{self, FINAL_OUTPUT_TIMEOUT, report_usage_error};
use crate::signals::{Signal, Signals};

/// The reason for the end of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The user quit.
    Quit,
    /// A signal arrived.
    Stopped,
    /// The terminal was closed.
    NoTerminal,
}

/// Runs the command and returns its exit code.
pub(crate) fn main(args: ChatArgs) -> u8 {
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        let hint = "use teamster session from a program, or teamster run for one prompt";
        return report_usage_error(&"a chat needs a terminal for input and output".into(), Some(hint));
    }
    // No timeout: a person may be away from the terminal.
    match plan::plan_session(args.conversation, Duration::ZERO, &mut SystemInputs) {
        Ok(mut plan) => {
            plan.request.background_tasks = args.background_tasks;
            let prompt = args.prompt.filter(|prompt| !prompt.trim().is_empty());
            runtime::run_command(run_chat(plan, args.keys.unwrap_or_default(), prompt))
        }
        Err(error) => report_usage_error(&option_names::in_error(&error), error.hint()),
    }
}

async fn run_chat(plan: SessionPlan, keys: Keys, prompt: Option<String>) -> io::Result<u8> {
    // Signals are caught before a process is started, so that no signal can leave a process behind.
    let mut signals = Signals::catch()?;
    let session = match plan.runtime.open(&plan.agent, plan.request.clone()) {
        Ok(session) => session,
        Err(error) => return Ok(report_usage_error(&option_names::in_error(&error), None)),
    };
    let current = std::env::current_dir()?;
    let directory = plan.request.cwd.as_ref().map_or_else(|| current.clone(), |cwd| current.join(cwd));
    let page = Page::start(plan.tool_output)?;
    let terminal = Terminal::enter(page.is_live())?;
    let (history_file, earlier) = HistoryFile::open(&directory);
    let mut input = Input::new(keys, History::new(earlier));
    prompt.into_iter().for_each(|prompt| input.waiting.add(prompt));
    let mut chat = Chat {
        directory,
        terminal: &terminal,
        signals: &mut signals,
        terminal_signals: TerminalSignals::catch()?,
        keys: Some(KeyReader::start(page.is_live())?),
        ticks: tokio::time::interval(TICK),
        page,
        session: Arc::new(session),
        plan,
        input,
        history_file,
        record: Record::default(),
        totals: UsageTotals::default(),
        model: None,
        turn: None,
        next_turns: VecDeque::new(),
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

struct Chat<'a> {
    /// The agent's working directory.
    directory: PathBuf,
    terminal: &'a Terminal,
    signals: &'a mut Signals,
    terminal_signals: TerminalSignals,
    /// Reads keys; `None` while others use the terminal.
    keys: Option<KeyReader>,
    ticks: Interval,
    page: Page,
    /// The agent and the settings of all turns.
    plan: SessionPlan,
    session: Arc<Session>,
    input: Input,
    history_file: HistoryFile,
    record: Record,
    totals: UsageTotals,
    /// The model that the agent reported.
    model: Option<Printable>,
    /// The running turn.
    turn: Option<Turn>,
    /// Turns that follow it: prompts that could not be sent into it.
    next_turns: VecDeque<(Option<String>, Run)>,
    /// Actions of the input box that are not executed yet.
    actions: VecDeque<Action>,
    /// Tasks whose results precede the next prompt.
    tasks: JoinSet<TaskResult>,
    completions: JoinSet<(CompletionRequest, Vec<String>)>,
    /// A message in the live area until the next key.
    notice: Option<Printable>,
    /// The time of the last key.
    last_key: Option<Instant>,
    /// Whether the prompt of a terminal without a live area is shown.
    prompt_is_shown: bool,
    /// Whether the next Ctrl-C quits.
    quit_is_announced: bool,
}

/// What the loop waits for.
enum Happening {
    Input(Instant, TerminalInput),
    /// Enter or Tab was not followed by text.
    Settled,
    Signal(Signal),
    /// SIGTSTP: the command is suspended.
    Suspend,
    Resized,
    Turn(TurnItem),
    /// The agent starts a turn by itself.
    AgentTurn(Run),
    Task(TaskResult),
    Completed(CompletionRequest, Vec<String>),
    Tick,
    /// The terminal cannot be written.
    Closed,
}

impl Chat<'_> {
    async fn run(&mut self) -> End {
        self.message(printable!("{}: /help lists the commands, Ctrl-D quits", &self.plan.agent));
        loop {
            if let Err(end) = self.step().await {
                return end;
            }
        }
    }

    /// Executes what is due, and waits for the next happening.
    async fn step(&mut self) -> Result<(), End> {
        while let Some(action) = self.actions.pop_front() {
            self.act(action).await?;
        }
        self.start_next().await?;
        self.show();
        match self.next_happening(true).await {
            Happening::Turn(item) => self.on_turn_item(item).await,
            Happening::AgentTurn(run) => {
                self.start_agent_turn(run);
                Ok(())
            }
            Happening::Task(result) => {
                self.on_task_result(result);
                Ok(())
            }
            other => self.on_happening(other).await,
        }
    }

    /// Waits for the next happening. Without `with_turns`, everything of the agent waits.
    async fn next_happening(&mut self, with_turns: bool) -> Happening {
        let background = with_turns && self.plan.request.background_tasks;
        let ticks = self.turn.is_some() && self.page.is_live();
        let deadline = self.input.deadline().map(tokio::time::Instant::from_std);
        tokio::select! {
            (at, input) = next_input(&mut self.keys) => Happening::Input(at, input),
            () = runtime::sleep_until(deadline) => Happening::Settled,
            signal = self.signals.next() => Happening::Signal(signal),
            happening = self.terminal_signals.next() => happening,
            item = turn::next_item(&mut self.turn, &self.page), if with_turns => Happening::Turn(item),
            Some(run) = self.session.next_agent_turn(), if background => Happening::AgentTurn(run),
            Some(result) = self.tasks.join_next(), if with_turns => match result {
                Ok(result) => Happening::Task(result),
                Err(error) => Happening::Task(TaskResult::Failed(error.into())),
            },
            Some(Ok((request, candidates))) = self.completions.join_next() => Happening::Completed(request, candidates),
            () = self.page.closed() => Happening::Closed,
            _ = self.ticks.tick(), if ticks => Happening::Tick,
        }
    }

    /// Handles everything that does not depend on what the chat does now.
    async fn on_happening(&mut self, happening: Happening) -> Result<(), End> {
        match happening {
            Happening::Input(at, input) => return self.receive(at, input),
            Happening::Settled => {
                let actions = self.input.settle();
                self.actions.extend(actions);
            }
            Happening::Signal(signal) => return self.on_signal(signal),
            Happening::Suspend => return self.suspend().await,
            Happening::Completed(request, candidates) => self.input.complete(&request, candidates),
            Happening::Tick => self.page.refresh(),
            Happening::Closed => return Err(End::NoTerminal),
            Happening::Resized | Happening::Turn(_) | Happening::AgentTurn(_) | Happening::Task(_) => {}
        }
        Ok(())
    }

    /// Passes input to the input box. Its actions are executed by the next step.
    fn receive(&mut self, at: Instant, input: TerminalInput) -> Result<(), End> {
        let actions = match input {
            TerminalInput::Key(key) => {
                (self.notice, self.last_key) = (None, Some(at));
                self.quit_is_announced &= key.modifiers == Modifiers::CONTROL;
                self.input.press(key, at)
            }
            TerminalInput::Paste(text) => {
                self.last_key = Some(at);
                self.input.paste(&text)
            }
            TerminalInput::Line(line) => {
                (self.prompt_is_shown, self.last_key) = (false, Some(at));
                self.input.line(&line, at)
            }
            TerminalInput::EndOfInput => vec![Action::Quit],
            TerminalInput::Barrier => Vec::new(),
            TerminalInput::Closed => return Err(End::NoTerminal),
        };
        self.actions.extend(actions);
        Ok(())
    }

    /// Prints a message of the command itself.
    fn message(&mut self, text: impl Into<Printable>) {
        if std::mem::take(&mut self.prompt_is_shown) {
            // The cursor is behind the prompt.
            self.page.prompt("\n".into());
        }
        self.page.message(text.into());
    }

    /// Shows a message next to the input box until the next key.
    fn notify(&mut self, text: impl Into<Printable>) {
        if self.page.is_live() {
            self.notice = Some(text.into());
        } else {
            self.message(text);
        }
    }

    /// Waits for the writer, and handles signals and the keys that stop the agent meanwhile.
    async fn wait_for_writer(&mut self, mut done: oneshot::Receiver<()>) -> Result<(), End> {
        loop {
            tokio::select! {
                done = &mut done => return done.map_err(|_| End::NoTerminal),
                signal = self.signals.next() => self.on_signal(signal)?,
                (at, input) = next_input(&mut self.keys) => {
                    self.receive(at, input)?;
                    self.stop_at_once();
                }
            }
        }
    }

    /// Handles a signal. Ctrl-C stops the agent, a second Ctrl-C kills it; other signals end the conversation.
    fn on_signal(&mut self, signal: Signal) -> Result<(), End> {
        match signal {
            Signal::Interrupt => self.interrupt(),
            Signal::Terminate => {
                if let Some(turn) = &self.turn {
                    turn.control.interrupt();
                }
                Err(End::Stopped)
            }
        }
    }

    /// Restores the terminal, prints how to resume, and ends the session. Returns the exit code.
    async fn finish(mut self, end: End) -> u8 {
        if end != End::NoTerminal {
            // A terminal that is blocked must not delay the end.
            _ = tokio::time::timeout(FINAL_OUTPUT_TIMEOUT, self.leave()).await;
        }
        self.terminal.restore();
        let Chat { session, signals, plan, tasks, turn, next_turns, .. } = self;
        drop((tasks, next_turns, turn));
        tokio::select! {
            () = session.close() => {}
            // The dropped session kills its processes.
            _ = signals.next() => {}
        }
        drop(session);
        plan.runtime.shutdown().await;
        match end {
            End::Quit => exit::SUCCESS,
            End::Stopped => exit::INTERRUPTED,
            End::NoTerminal => exit::NO_READER,
        }
    }

    /// Leaves the terminal, and prints how to resume the conversation.
    async fn leave(&mut self) -> Result<(), End> {
        self.leave_terminal().await?;
        if let Some(id) = self.session.id() {
            let (agent, id) = (Printable::shell_word(&self.plan.agent), Printable::shell_word(id.as_str()));
            self.message(printable!("to resume: teamster chat --agent {} --resume {}", agent, id));
        }
        let flushed = self.page.flush();
        self.wait_for_writer(flushed).await
    }
}

/// Waits for the next input. Without a reader it waits forever. Cancel-safe.
async fn next_input(keys: &mut Option<KeyReader>) -> (Instant, TerminalInput) {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}
