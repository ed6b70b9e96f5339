//! `teamster chat`: a conversation in a terminal.
//!
//! The terminal is used either by the line editor or by the agent's turn, which [`turn`] handles. Lines that are typed
//! during a turn are queued and sent in order after it.
//!
//! Invariants: the terminal settings are restored at the end; input that was typed before a request of the agent is shown
//! does not answer it; when the conversation ends, for any reason, no process of it remains.

mod command;
mod editor;
mod history;
mod page;
mod permissions;
mod question;
mod request;
mod terminal;
mod turn;
mod usage_totals;

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use teamster::request::Conversation;
use teamster::{Control, Readiness, Session};
use tokio::sync::{mpsc, oneshot};

use self::command::{HELP, Line, name_of};
use self::editor::{Editor, Purpose, Typed};
use self::page::Item;
use self::terminal::Terminal;
use self::usage_totals::UsageTotals;
use crate::args::ChatArgs;
use crate::exit;
use crate::option_names;
use crate::plan::{self, SessionPlan, SystemInputs};
use crate::printable::{Printable, printable};
use crate::render::write_error;
use crate::runtime::{self, report_usage_error};
use crate::signals::{Signal, Signals};
use crate::vendor;

const PROMPT: &str = "> ";

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
        Ok(plan) => match missing(&plan) {
            Some((message, hint)) => {
                write_error(&mut anstream::stderr(), &message, Some(&hint));
                exit::NOT_FOUND
            }
            None => runtime::run_command(run_chat(plan)),
        },
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

async fn run_chat(plan: SessionPlan) -> io::Result<u8> {
    let terminal = Terminal::of_stdin()?;

    // Signals are caught before a process is started, so that no signal can leave a process behind.
    let mut signals = Signals::catch()?;
    let editor = Editor::start(history::file())?;
    let page = page::start(&plan.agent, plan.tool_output)?;
    let session = match plan.runtime.open(&plan.agent, plan.request.clone()) {
        Ok(session) => session,
        Err(error) => return Ok(report_usage_error(&option_names::in_error(&error), None)),
    };
    let current = std::env::current_dir()?;
    let directory = plan.request.cwd.as_ref().map_or_else(|| current.clone(), |cwd| current.join(cwd));
    let mut chat = Chat {
        directory,
        terminal: &terminal,
        signals: &mut signals,
        editor,
        page,
        plan,
        session,
        totals: UsageTotals::default(),
        queued_lines: VecDeque::new(),
        control: None,
        interrupted: false,
    };
    let end = chat.run().await;
    let resumed = chat.session.id().map(|id| {
        let (agent, id) = (Printable::shell_word(&chat.plan.agent), Printable::shell_word(id.as_str()));
        printable!("to resume: teamster chat --agent {} --resume {}", agent, id)
    });
    if let (Some(resumed), End::Quit | End::Stopped) = (resumed, end) {
        _ = chat.write(Item::Message(resumed)).await;
        _ = chat.flush().await;
    }
    let Chat { session, signals, plan, .. } = chat;
    tokio::select! {
        () = session.close() => {}
        // The dropped session kills its processes.
        _ = signals.next() => {}
    }
    plan.runtime.shutdown().await;
    Ok(match end {
        End::Quit => exit::SUCCESS,
        End::Stopped => exit::INTERRUPTED,
        End::NoTerminal => exit::NO_READER,
    })
}

struct Chat<'a> {
    /// The agent's working directory.
    directory: PathBuf,
    terminal: &'a Terminal,
    signals: &'a mut Signals,
    editor: Editor,
    page: mpsc::Sender<Item>,
    /// The agent and the settings of all turns.
    plan: SessionPlan,
    session: Session,
    totals: UsageTotals,
    /// Lines that were typed while the agent worked.
    queued_lines: VecDeque<String>,
    /// The control of the running turn.
    control: Option<Control>,
    /// Whether the running turn was interrupted.
    interrupted: bool,
}

impl Chat<'_> {
    async fn run(&mut self) -> End {
        let greeting = printable!("{}: /help lists the commands, Ctrl-D quits", &self.plan.agent);
        if let Err(end) = self.message(greeting).await {
            return end;
        }
        loop {
            if let Err(end) = self.next().await {
                return end;
            }
        }
    }

    /// Reads the next line and executes it.
    async fn next(&mut self) -> Result<(), End> {
        let line = match self.queued_lines.pop_front() {
            Some(line) => {
                self.message(printable!("{}{}", PROMPT, Printable::prose(&line))).await?;
                line
            }
            None => self.prompt().await?,
        };
        match command::parse(&line) {
            Line::Empty => Ok(()),
            Line::Prompt(text) => self.turn(text).await,
            Line::Help => self.message(HELP).await,
            Line::Cost => self.message(self.totals.summary()).await,
            Line::Quit => Err(End::Quit),
            Line::Invalid(problem) => self.message(problem).await,
            Line::New => self.start_conversation(self.plan.agent.clone(), Conversation::New).await,
            Line::Resume(Some(id)) => {
                self.start_conversation(self.plan.agent.clone(), Conversation::Resume(id.into())).await
            }
            Line::Resume(None) => {
                let id = self.session.id().map_or_else(|| "no id yet".into(), |id| Printable::exact(id.as_str()));
                self.message(printable!("this conversation: {}; /resume ID resumes another one", id)).await
            }
            Line::Agent(Some(agent)) => self.start_conversation(agent.to_lowercase(), Conversation::New).await,
            Line::Agent(None) => {
                let names = Printable::join(self.plan.runtime.registry().names().map(Printable::exact), ", ");
                let agent = &self.plan.agent;
                self.message(printable!("{}; /agent NAME starts a conversation with another agent: {}", agent, names))
                    .await
            }
            Line::Model(Some(model)) => match self.session.set_model(model.clone()) {
                Ok(()) => {
                    self.plan.request.model = Some(model);
                    self.message("the model is used from the next turn on").await
                }
                Err(error) => self.message(Printable::error(&error)).await,
            },
            Line::Model(None) => {
                let model = self.plan.request.model.as_deref();
                let model = model.map_or_else(|| "the agent's default".into(), Printable::exact);
                self.message(model).await
            }
            Line::Permission(Some(mode)) => match self.session.set_permission_mode(mode) {
                Ok(()) => {
                    self.plan.request.permissions.mode = mode;
                    self.message(printable!("{} from the next turn on", name_of(mode))).await
                }
                Err(error) => self.message(Printable::error(&error)).await,
            },
            Line::Permission(None) => self.list_permissions().await,
            Line::Revoke(number) => self.revoke(number).await,
        }
    }

    /// Starts another conversation. If that fails, the current one continues.
    async fn start_conversation(&mut self, agent: String, conversation: Conversation) -> Result<(), End> {
        let mut request = self.plan.request.clone();
        request.conversation = conversation;
        if agent != self.plan.agent {
            // These settings are specific to the previous agent.
            (request.model, request.effort, request.cli_path) = (None, None, None);
            request.cli_args.clear();
        }
        match self.plan.runtime.open(&agent, request.clone()) {
            Ok(session) => {
                let old = std::mem::replace(&mut self.session, session);
                (self.plan.agent, self.plan.request, self.totals) = (agent, request, UsageTotals::default());
                tokio::select! {
                    () = old.close() => {}
                    signal = self.signals.next() => self.on_signal(signal)?,
                }
                self.message(printable!("new conversation with {}", &self.plan.agent)).await
            }
            Err(error) => self.message(Printable::error(&error)).await,
        }
    }

    /// Reads a prompt or a command from the terminal.
    async fn prompt(&mut self) -> Result<String, End> {
        self.flush().await?;
        let mut warned = false;
        loop {
            match self.read(PROMPT.into(), Purpose::Prompt).await? {
                Typed::Line(line) => return Ok(line),
                Typed::Ended => return Err(End::Quit),
                Typed::Interrupted if std::mem::replace(&mut warned, true) => return Err(End::Quit),
                Typed::Interrupted => self.message("press Ctrl-C again, or Ctrl-D, to quit").await?,
            }
            self.flush().await?;
        }
    }

    /// Reads a line and handles signals meanwhile.
    async fn read(&mut self, prompt: Printable, purpose: Purpose) -> Result<Typed, End> {
        let mut typed = pin!(self.editor.read(prompt, purpose));
        tokio::select! {
            typed = &mut typed => Ok(typed),
            // The editor is still reading, so its terminal settings must be reverted here. The line is lost.
            signal = self.signals.next() => {
                self.terminal.restore();
                _ = self.page.try_send(Item::Message(self.terminal.disable_bracketed_paste().into()));
                // On a terminal without raw mode Ctrl-C is a signal.
                Err(if signal == Signal::Interrupt { End::Quit } else { End::Stopped })
            }
        }
    }

    /// Prints a message of the command itself.
    async fn message(&mut self, text: impl Into<Printable>) -> Result<(), End> {
        self.write(Item::Message(text.into())).await
    }

    /// Waits until all items are written.
    async fn flush(&mut self) -> Result<(), End> {
        let (flushed, mut waits) = oneshot::channel();
        self.write(Item::Flush(flushed)).await?;
        loop {
            tokio::select! {
                flushed = &mut waits => return flushed.map_err(|_| End::NoTerminal),
                signal = self.signals.next() => self.on_signal(signal)?,
            }
        }
    }

    /// Passes an item to the writer and handles signals meanwhile.
    async fn write(&mut self, item: Item) -> Result<(), End> {
        let page = self.page.clone();
        loop {
            tokio::select! {
                permit = page.reserve() => {
                    permit.map_err(|_| End::NoTerminal)?.send(item);
                    return Ok(());
                }
                signal = self.signals.next() => self.on_signal(signal)?,
            }
        }
    }

    /// Handles a signal. Ctrl-C stops the agent, a second Ctrl-C kills it; other signals end the conversation.
    fn on_signal(&mut self, signal: Signal) -> Result<(), End> {
        match (signal, &self.control) {
            (Signal::Interrupt, Some(control)) => {
                let again = std::mem::replace(&mut self.interrupted, true);
                if again {
                    control.abort();
                } else {
                    control.interrupt();
                }
                let discarded = std::mem::take(&mut self.queued_lines).len();
                let notice = if again { runtime::KILLING_NOTICE } else { runtime::STOPPING_NOTICE };
                let notice = match discarded {
                    0 => notice.into(),
                    count => printable!("{}; queued lines discarded: {}", notice, count),
                };
                // The notice is dropped if the channel is full.
                _ = self.page.try_send(Item::Message(notice));
                Ok(())
            }
            (Signal::Interrupt, None) => Ok(()),
            (Signal::Terminate, control) => {
                if let Some(control) = control {
                    control.interrupt();
                }
                Err(End::Stopped)
            }
        }
    }
}
