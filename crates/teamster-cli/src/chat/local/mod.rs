//! A session of this process as the agent of a chat.
//!
//! - [`turn`]: turns: prompts that are sent, and the events of the agent.
//! - [`commands`], [`rules`], [`sessions`]: the commands that change the session.

mod commands;
mod rules;
mod sessions;
mod turn;

use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use teamster::event::{Event, PermissionRequest, RequestId, SessionId, WarningCode};
use teamster::request::{Answer, Conversation};
use teamster::{Control, Readiness, Registry, Run, SendError, Sent, Session};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;

use super::backend::{Activity, Backend, Origin, Phase, Status};
use super::command::{COMMANDS, Command, Line, STOP_KEYS, name_of};
use super::page::Page;
use super::request::{Always, Lasting, Prompt};
use super::state::{Chat, End};
use crate::exit;
use crate::path_text::home_relative;
use crate::plan::SessionPlan;
use crate::printable::{Printable, printable};
use crate::render::width_of_stdout;
use crate::signals::Signals;
use crate::usage::Journal;
use crate::vendor;

/// A session of this process.
#[derive(Debug)]
pub(super) struct LocalSession {
    /// The agent and the settings of all turns.
    plan: SessionPlan,
    session: Arc<Session>,
    journal: Journal,
    /// The running turn.
    turn: Option<Turn>,
    /// Turns that follow it: prompts that could not be sent into it.
    next_turns: VecDeque<(Option<String>, Run)>,
    /// Prompts that are sent into the running turn. Their results precede the next prompt.
    sends: JoinSet<(String, Result<Sent, SendError>)>,
    /// The last model with which a turn succeeded. It is used again if the agent refuses a new one.
    accepted_model: Option<String>,
}

/// The running turn.
#[derive(Debug)]
struct Turn {
    prompt: Option<String>,
    /// The selected model at its start.
    model: Option<String>,
    run: Run,
    control: Control,
    /// Whether it was stopped.
    is_interrupted: bool,
    /// Whether it emitted an event.
    has_started: bool,
    /// Whether it emitted its last event.
    has_ended: bool,
}

/// An event of the turn, with the permit to write it. `None` is the end of the turn.
#[derive(Debug)]
pub(super) struct TurnItem(Option<(Event, OwnedSemaphorePermit)>);

/// What arrives from the agent.
#[derive(Debug)]
pub(super) enum Arrival {
    Turn(TurnItem),
    /// The agent starts a turn by itself.
    AgentTurn(Run),
    /// A prompt was sent into the running turn.
    Sent(String, Result<Sent, SendError>),
    /// A task panicked.
    Failed(io::Error),
}

/// The start of the warning of every agent that refuses a model.
const MODEL_REFUSED: &str = "the model was not changed";

const CAUTION: Style = AnsiColor::Yellow.on_default();

impl LocalSession {
    pub(super) fn new(plan: SessionPlan, session: Session, journal: Journal) -> Self {
        let session = Arc::new(session);
        plan.saved_rules.allow_in(&session, &plan.agent);
        let (turn, next_turns, sends) = (None, VecDeque::new(), JoinSet::new());
        let accepted_model = plan.request.model.clone();
        Self { plan, session, journal, turn, next_turns, sends, accepted_model }
    }

    /// Returns the id of the conversation. That of a resumed one is known before its first turn.
    fn id(&self) -> Option<SessionId> {
        let resumed = match &self.plan.request.conversation {
            Conversation::Resume(id) if !id.as_str().is_empty() => Some(id.clone()),
            _ => None,
        };
        self.session.id().or(resumed)
    }

    /// Uses the last accepted model again, if an event reports that the agent refused it.
    fn restore_refused_model(&mut self, event: &Event) {
        if let Event::Warning(warning) = event
            && warning.code == WarningCode::OptionIgnored
            && warning.message.starts_with(MODEL_REFUSED)
        {
            self.plan.request.model.clone_from(&self.accepted_model);
            if let Some(turn) = &mut self.turn {
                turn.model.clone_from(&self.accepted_model);
            }
            if let Some(model) = &self.plan.request.model {
                self.journal.set_model(model.clone());
            }
        }
    }
}

impl Backend for LocalSession {
    type Arrival = Arrival;

    const IS_SHARED: bool = false;
    const COMMANDS: &'static [Command] = COMMANDS;
    const STOP_KEYS: &'static str = STOP_KEYS;

    /// While a request is shown, everything of the agent waits.
    async fn next(&mut self, page: &Page, phase: Phase) -> Arrival {
        if phase == Phase::Asking {
            return pending().await;
        }
        tokio::select! {
            item = next_item(&mut self.turn, page) => Arrival::Turn(item),
            Some(run) = self.session.next_agent_turn(), if self.plan.request.background_tasks => Arrival::AgentTurn(run),
            Some(sent) = self.sends.join_next() => match sent {
                Ok((prompt, sent)) => Arrival::Sent(prompt, sent),
                Err(error) => Arrival::Failed(error.into()),
            },
        }
    }

    fn receive(chat: &mut Chat<'_, Self>, arrival: Arrival) -> Result<(), End> {
        match arrival {
            Arrival::Turn(item) => chat.on_turn_item(item),
            Arrival::AgentTurn(run) => chat.start_agent_turn(run),
            Arrival::Sent(prompt, sent) => chat.on_sent(prompt, sent),
            Arrival::Failed(error) => chat.message(Printable::error(&error)),
        }
        Ok(())
    }

    fn introduce(chat: &mut Chat<'_, Self>) {
        chat.message(printable!("{}: /help lists the commands, Ctrl-D quits", &chat.backend.plan.agent));
        if let Some(notice) = missing_login(&chat.backend.plan) {
            chat.message(notice);
        }
        if let Some(resumed) = chat.backend.plan.resumed.take() {
            chat.message(resumed.summary(width_of_stdout()));
        }
    }

    fn activity(&self) -> Activity {
        match &self.turn {
            Some(turn) if turn.has_ended => Activity::Idle,
            Some(turn) if turn.is_interrupted => Activity::Stopping,
            Some(_) => Activity::Working,
            None => Activity::Idle,
        }
    }

    fn is_ready(&self) -> bool {
        self.turn.is_none() && self.next_turns.is_empty() && self.sends.is_empty()
    }

    async fn start_next(chat: &mut Chat<'_, Self>) -> Result<(), End> {
        chat.start_next_turn().await
    }

    fn send(chat: &mut Chat<'_, Self>, text: String) {
        chat.send_prompt(text);
    }

    fn send_now(chat: &mut Chat<'_, Self>, text: String) {
        chat.steer(text);
    }

    fn stop(chat: &mut Chat<'_, Self>) -> bool {
        chat.stop_agent()
    }

    fn terminate(&mut self) {
        if let Some(turn) = &self.turn {
            turn.control.interrupt();
        }
    }

    async fn execute(chat: &mut Chat<'_, Self>, line: Line) -> Result<(), End> {
        chat.execute_in_session(line).await
    }

    fn always(&self, request: &PermissionRequest) -> Option<Always> {
        Some(match self.session.suggest_rules(request) {
            Ok(rules) => Always::Rules(rules),
            Err(reason) => Always::Never(Printable::message(&reason.to_string())),
        })
    }

    fn can_save(&self) -> bool {
        self.plan.saved_rules.file().is_some()
    }

    fn allow_always(chat: &mut Chat<'_, Self>, prompt: &Prompt<'_>, lasting: Lasting) -> Answer {
        if let Some(Always::Rules(rules)) = prompt.always {
            chat.add_rules(rules, &prompt.scopes(rules), lasting);
        }
        Answer::Allow { input: None }
    }

    async fn answer(chat: &mut Chat<'_, Self>, request: &RequestId, answer: Answer) {
        chat.pass_answer(request, answer).await;
    }

    fn agent(&self) -> &str {
        &self.plan.agent
    }

    fn agents(&self) -> Vec<String> {
        self.plan.runtime.registry().names().map(str::to_owned).collect()
    }

    fn models(&self) -> Option<(Registry, String)> {
        Some((self.plan.runtime.registry().clone(), self.plan.agent.clone()))
    }

    fn status(chat: &Chat<'_, Self>) -> Status {
        let request = &chat.backend.plan.request;
        Status {
            model: request.model.as_deref().map(Printable::exact),
            permission: Some(name_of(request.permissions.mode).into()),
            directory: Some(home_relative(&chat.directory)),
        }
    }

    fn origin(chat: &Chat<'_, Self>) -> Origin {
        let id = chat.backend.id();
        Origin {
            id: id.as_ref().map(SessionId::as_str).map(str::to_owned),
            is_partial: chat.backend.plan.request.conversation != Conversation::New,
        }
    }

    fn lines(&self, _width: usize) -> Vec<Printable> {
        Vec::new()
    }

    async fn leave(chat: &mut Chat<'_, Self>) {
        let Some(id) = chat.backend.id() else { return };
        let (agent, id) = (Printable::shell_word(chat.backend.agent()), Printable::shell_word(id.as_str()));
        chat.message(printable!("to resume:\n  teamster chat --agent {} --resume {}", agent, id));
    }

    async fn close(self, signals: &mut Signals) -> u8 {
        let Self { plan, session, journal, turn, next_turns, sends, .. } = self;
        drop((sends, next_turns, turn));
        tokio::select! {
            () = session.close() => {}
            // The dropped session kills its processes.
            _ = signals.next() => {}
        }
        drop(session);
        journal.close().await;
        plan.runtime.shutdown(Duration::ZERO).await;
        exit::SUCCESS
    }
}

/// Waits for the next event of the turn, once the writer accepts one. Without a turn it waits forever. Cancel-safe.
async fn next_item(turn: &mut Option<Turn>, page: &Page) -> TurnItem {
    let Some(turn) = turn else { return pending().await };
    let Some(permit) = page.event_permit().await else { return pending().await };
    TurnItem(turn.run.next().await.map(|event| (event, permit)))
}

/// Returns how to log in, if the agent's usual program has no login. Only variables and files are checked.
fn missing_login(plan: &SessionPlan) -> Option<Printable> {
    let has_own_login = plan.request.cli_path.is_some() || !plan.request.env.is_empty();
    let readiness = plan.runtime.readiness(&plan.agent).ok().filter(|_| !has_own_login)?;
    let login = vendor::login_here(&plan.agent).filter(|_| readiness == Readiness::NoCredentials)?;
    Some(printable!("{} {}: no login found; {}", Printable::from("!").styled(CAUTION), &plan.agent, login))
}
