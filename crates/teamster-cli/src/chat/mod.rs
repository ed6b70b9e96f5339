//! `teamster chat`: a conversation in a terminal.
//!
//! Either the person has the terminal (the line editor) or the agent has (its turn); [`turn`] is the latter. Lines that are
//! typed meanwhile wait, and are taken in order.
//!
//! Invariants: the terminal is left as it was found; nothing that was typed before a request of the agent was shown answers
//! it; whatever ends the conversation, no process of it is left.

mod ask;
mod command;
mod editor;
mod history;
mod page;
mod tally;
mod terminal;
mod turn;

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _};
use std::pin::pin;
use std::time::Duration;

use teamster::request::{Conversation, PermissionMode};
use teamster::{Control, Session};
use tokio::sync::{mpsc, oneshot};

use self::command::{HELP, Line};
use self::editor::{Editor, Purpose, Typed};
use self::page::Item;
use self::tally::Tally;
use self::terminal::Terminal;
use crate::args::ChatArgs;
use crate::begin::{self, refuse};
use crate::exit;
use crate::job::{self, Machine, Talk};
use crate::printable::{Printable, printable};
use crate::signals::{Signal, Signals};

const PROMPT: &str = "> ";

/// Why the conversation is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The person wants it.
    Quit,
    /// A signal came.
    Stopped,
    /// There is nobody to show anything to.
    NoTerminal,
}

/// Carries out the command and tells its exit code.
pub(crate) fn main(args: ChatArgs) -> u8 {
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        let hint = "teamster session talks to programs; teamster run takes one prompt";
        return refuse(&"a chat needs a terminal for input and output".into(), Some(hint));
    }
    // A person answers when they are back.
    match job::check_talk(args.talk, Duration::ZERO, &mut Machine) {
        Ok(talk) => begin::carry_out(hold(talk)),
        Err(error) => refuse(&Printable::error(&error), error.hint()),
    }
}

async fn hold(talk: Talk) -> io::Result<u8> {
    let terminal = Terminal::of_stdin()?;

    // Before anything is started: from now on no signal leaves something behind.
    let mut signals = Signals::catch()?;
    let editor = Editor::start(history::file())?;
    let page = page::start()?;
    let session = match talk.runtime.open(&talk.agent, talk.frame.clone()) {
        Ok(session) => session,
        Err(error) => return Ok(refuse(&Printable::error(&error), None)),
    };
    let mut chat = Chat {
        terminal: &terminal,
        signals: &mut signals,
        editor,
        page,
        talk,
        session,
        tally: Tally::default(),
        waiting: VecDeque::new(),
        control: None,
        interrupted: false,
    };
    let end = chat.hold().await;
    let resumed = chat.session.id().map(|id| {
        let (agent, id) = (Printable::shell_word(&chat.talk.agent), Printable::shell_word(id.as_str()));
        printable!("go on with it: teamster chat --agent {} --resume {}", agent, id)
    });
    if let (Some(resumed), End::Quit | End::Stopped) = (resumed, end) {
        _ = chat.put(Item::Say(resumed)).await;
        _ = chat.settle().await;
    }
    let Chat { session, signals, talk, .. } = chat;
    tokio::select! {
        () = session.close() => {}
        // Dropped, it is ended at once.
        _ = signals.next() => {}
    }
    talk.runtime.shutdown().await;
    Ok(match end {
        End::Quit => exit::SUCCESS,
        End::Stopped => exit::INTERRUPTED,
        End::NoTerminal => exit::NO_READER,
    })
}

struct Chat<'a> {
    terminal: &'a Terminal,
    signals: &'a mut Signals,
    editor: Editor,
    page: mpsc::Sender<Item>,
    /// Who talks, and what its turns have in common.
    talk: Talk,
    session: Session,
    tally: Tally,
    /// Lines that were typed while the agent worked.
    waiting: VecDeque<String>,
    /// Of the turn that runs.
    control: Option<Control>,
    /// Whether that turn was interrupted.
    interrupted: bool,
}

impl Chat<'_> {
    async fn hold(&mut self) -> End {
        let greeting = printable!("{}: /help tells what there is, Ctrl-D ends it", &self.talk.agent);
        if let Err(end) = self.say(greeting).await {
            return end;
        }
        loop {
            if let Err(end) = self.next().await {
                return end;
            }
        }
    }

    /// Takes a line and does what it asks for.
    async fn next(&mut self) -> Result<(), End> {
        let line = match self.waiting.pop_front() {
            Some(line) => {
                self.say(printable!("{}{}", PROMPT, Printable::prose(&line))).await?;
                line
            }
            None => self.prompt().await?,
        };
        match command::read(&line) {
            Line::Nothing => Ok(()),
            Line::Say(text) => self.turn(text).await,
            Line::Help => self.say(HELP).await,
            Line::Cost => self.say(self.tally.line()).await,
            Line::Quit => Err(End::Quit),
            Line::Wrong(why) => self.say(why).await,
            Line::New => self.begin(self.talk.agent.clone(), Conversation::New).await,
            Line::Resume(Some(id)) => self.begin(self.talk.agent.clone(), Conversation::Resume(id.into())).await,
            Line::Resume(None) => {
                let id = self.session.id().map_or_else(|| "no id yet".into(), |id| Printable::exact(id.as_str()));
                self.say(printable!("this conversation: {}; /resume ID goes on with another one", id)).await
            }
            Line::Agent(Some(agent)) => self.begin(agent.to_lowercase(), Conversation::New).await,
            Line::Agent(None) => {
                let names = Printable::join(self.talk.runtime.registry().names().map(Printable::exact), ", ");
                let agent = &self.talk.agent;
                self.say(printable!("{}; /agent NAME begins a conversation with another one: {}", agent, names)).await
            }
            Line::Model(Some(model)) => match self.session.set_model(model.clone()) {
                Ok(()) => {
                    self.talk.frame.model = Some(model);
                    self.say("it answers from the next turn on").await
                }
                Err(error) => self.say(Printable::error(&error)).await,
            },
            Line::Model(None) => {
                let model = self.talk.frame.model.as_deref();
                let model = model.map_or_else(|| "the agent's own choice".into(), Printable::exact);
                self.say(model).await
            }
            Line::Permission(Some(mode)) => match self.session.set_permission_mode(mode) {
                Ok(()) => {
                    self.talk.frame.permissions.mode = mode;
                    self.say(printable!("{} from the next turn on", name_of(mode))).await
                }
                Err(error) => self.say(Printable::error(&error)).await,
            },
            Line::Permission(None) => self.say(name_of(self.talk.frame.permissions.mode)).await,
        }
    }

    /// Begins another conversation; if that cannot be, this one goes on.
    async fn begin(&mut self, agent: String, conversation: Conversation) -> Result<(), End> {
        let mut frame = self.talk.frame.clone();
        frame.conversation = conversation;
        if agent != self.talk.agent {
            // They are in that agent's words.
            (frame.model, frame.effort, frame.cli_path) = (None, None, None);
            frame.cli_args.clear();
        }
        match self.talk.runtime.open(&agent, frame.clone()) {
            Ok(session) => {
                let old = std::mem::replace(&mut self.session, session);
                (self.talk.agent, self.talk.frame, self.tally) = (agent, frame, Tally::default());
                tokio::select! {
                    () = old.close() => {}
                    signal = self.signals.next() => self.signalled(signal)?,
                }
                self.say(printable!("another conversation with {} begins", &self.talk.agent)).await
            }
            Err(error) => self.say(Printable::error(&error)).await,
        }
    }

    /// A line of the person's.
    async fn prompt(&mut self) -> Result<String, End> {
        self.settle().await?;
        let mut warned = false;
        loop {
            match self.read(PROMPT.into(), Purpose::Words).await? {
                Typed::Line(line) => return Ok(line),
                Typed::Ended => return Err(End::Quit),
                Typed::Interrupted if std::mem::replace(&mut warned, true) => return Err(End::Quit),
                Typed::Interrupted => self.say("Ctrl-C again, or Ctrl-D, ends the conversation").await?,
            }
            self.settle().await?;
        }
    }

    /// Reads a line while signals are heard.
    async fn read(&mut self, prompt: Printable, purpose: Purpose) -> Result<Typed, End> {
        let mut typed = pin!(self.editor.ask(prompt, purpose));
        tokio::select! {
            typed = &mut typed => Ok(typed),
            // The line is lost with the conversation, and the editor, which still reads it, leaves nothing as it was.
            signal = self.signals.next() => {
                self.terminal.restore();
                _ = self.page.try_send(Item::Say(self.terminal.without_pasting().into()));
                // On a terminal without modes Ctrl-C is a signal.
                Err(if signal == Signal::Interrupt { End::Quit } else { End::Stopped })
            }
        }
    }

    async fn say(&mut self, text: impl Into<Printable>) -> Result<(), End> {
        self.put(Item::Say(text.into())).await
    }

    /// Waits until all is written.
    async fn settle(&mut self) -> Result<(), End> {
        let (settled, mut waits) = oneshot::channel();
        self.put(Item::Settle(settled)).await?;
        loop {
            tokio::select! {
                settled = &mut waits => return settled.map_err(|_| End::NoTerminal),
                signal = self.signals.next() => self.signalled(signal)?,
            }
        }
    }

    /// Gives the writer something, and hears signals meanwhile.
    async fn put(&mut self, item: Item) -> Result<(), End> {
        let page = self.page.clone();
        loop {
            tokio::select! {
                place = page.reserve() => {
                    place.map_err(|_| End::NoTerminal)?.send(item);
                    return Ok(());
                }
                signal = self.signals.next() => self.signalled(signal)?,
            }
        }
    }

    /// Ctrl-C stops the agent, twice at once; other signals end the conversation.
    fn signalled(&mut self, signal: Signal) -> Result<(), End> {
        match (signal, &self.control) {
            (Signal::Interrupt, Some(control)) => {
                let again = std::mem::replace(&mut self.interrupted, true);
                if again {
                    control.abort();
                } else {
                    control.interrupt();
                }
                let waiting = std::mem::take(&mut self.waiting).len();
                let said = if again { begin::ENDING } else { begin::ASKED_TO_STOP };
                let said = match waiting {
                    0 => said.into(),
                    waiting => printable!("{}; what was typed meanwhile is not sent ({})", said, waiting),
                };
                // Where the page is full, it is not the moment for more.
                _ = self.page.try_send(Item::Say(said));
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

fn name_of(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::ReadOnly => "read-only",
        PermissionMode::Edit => "edit",
        PermissionMode::Full => "full",
        _ => "ask",
    }
}
