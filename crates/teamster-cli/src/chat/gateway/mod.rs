//! A conversation of a gateway as the agent of a chat.
//!
//! - [`conversation`]: the state; [`start`]: finds the conversation, or creates one.
//! - [`history`]: the part of the log before the chat; [`log`]: applies each event of the log, once and in order.
//! - [`turns`]: the turns that wait and the one that runs.
//! - [`calls`]: messages, answers and aborts that are sent; [`commands`]: the commands.
//!
//! Invariants: what is shown of turns comes from the log only, also that of messages which were sent from here. A message
//! is sent with an idempotency key, so a repeated call is no second turn. Leaving the chat changes nothing in the gateway.

mod calls;
mod commands;
mod conversation;
mod history;
mod log;
mod start;
mod turns;

use std::future::pending;
use std::io;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use teamster::Registry;
use teamster::event::{PermissionOptionKind, PermissionRequest, RequestId};
use teamster::request::Answer;
use tokio::sync::OwnedSemaphorePermit;

use self::commands::COMMANDS;
use self::conversation::{CallResult, GatewayConversation};
use super::backend::{Activity, Backend, Origin, Phase, Status};
use super::command::{Command, Line};
use super::page::Page;
use super::request::{Always, Lasting, Prompt};
use super::state::{Chat, End};
use crate::client::{self, Change, ClientError, Conversation, Follower, MessageMode};
use crate::exit;
use crate::printable::{Printable, printable};
use crate::signals::Signals;

pub(super) use self::start::main;

/// How long a chat that ends waits for the confirmation of messages.
const CONFIRMATION: Duration = Duration::from_millis(1_500);

const DIM: Style = Style::new().dimmed();
const NOTICE: Style = AnsiColor::Yellow.on_default();

/// What arrives from the gateway.
#[derive(Debug)]
enum Arrival {
    Change(Result<Change, ClientError>, OwnedSemaphorePermit),
    Call(CallResult),
    /// A task panicked.
    Failed(io::Error),
}

impl Backend for GatewayConversation {
    type Arrival = Arrival;

    const IS_SHARED: bool = true;
    const COMMANDS: &'static [Command] = COMMANDS;
    const STOP_KEYS: &'static str = "stop the turn; Ctrl-D leaves, and the turn continues";

    async fn next(&mut self, page: &Page, _phase: Phase) -> Arrival {
        tokio::select! {
            Some(result) = self.calls.join_next() => result.map_or_else(|error| Arrival::Failed(error.into()), Arrival::Call),
            (change, permit) = next_change(&mut self.follower, page) => Arrival::Change(change, permit),
        }
    }

    fn receive(chat: &mut Chat<'_, Self>, arrival: Arrival) -> Result<(), End> {
        match arrival {
            Arrival::Change(Ok(Change::Event(event)), permit) => chat.on_log_event(*event, Some(permit)),
            Arrival::Change(Ok(Change::Lost(error)), _) => {
                let why = printable!("{}: connecting again", Printable::error(&error));
                if !chat.page.is_live() {
                    chat.message(why.clone());
                }
                chat.backend.lost = Some(why);
            }
            Arrival::Change(Ok(Change::Connected), _) => {
                chat.backend.lost = None;
                chat.notify("the gateway is reached again");
            }
            Arrival::Change(Err(error), _) => {
                chat.backend.failure = Some(error);
                return Err(End::Quit);
            }
            Arrival::Call(result) => chat.on_call(result),
            Arrival::Failed(error) => chat.message(Printable::error(&error)),
        }
        Ok(())
    }

    fn introduce(chat: &mut Chat<'_, Self>) {
        let Conversation { id, title, .. } = &chat.backend.conversation;
        let title = title.as_ref().map(|title| printable!(" ({})", Printable::exact(title))).unwrap_or_default();
        let id = Printable::exact(id);
        chat.message(printable!("conversation {}{}: /help lists the commands, Ctrl-D leaves", id, title));
        if let Some(history) = chat.backend.history.take_if(|history| history.is_complete()) {
            chat.show_history(history.finish());
        }
    }

    fn activity(&self) -> Activity {
        match &self.turns.running {
            Some(running) if running.is_stopping => Activity::Stopping,
            Some(_) => Activity::Working,
            None => Activity::Idle,
        }
    }

    fn is_ready(&self) -> bool {
        self.history.is_none() && !self.turns.is_sending()
    }

    /// Sends the first text that waits, also while a turn runs: the gateway keeps the messages in order.
    async fn start_next(chat: &mut Chat<'_, Self>) -> Result<(), End> {
        while chat.backend.is_ready() && chat.tasks.is_empty() {
            let Some(text) = chat.input.waiting.next() else { break };
            chat.execute(text, false).await?;
        }
        Ok(())
    }

    fn send(chat: &mut Chat<'_, Self>, text: String) {
        chat.input.waiting.begin_sending(text.clone());
        chat.post(text, MessageMode::Queue);
    }

    fn send_now(chat: &mut Chat<'_, Self>, text: String) {
        chat.post(text, MessageMode::Steer);
    }

    fn stop(chat: &mut Chat<'_, Self>) -> bool {
        chat.abort()
    }

    fn terminate(&mut self) {}

    async fn execute(chat: &mut Chat<'_, Self>, line: Line) -> Result<(), End> {
        chat.execute_in_conversation(line);
        Ok(())
    }

    fn always(&self, request: &PermissionRequest) -> Option<Always> {
        let option = request.options.iter().find(|option| option.kind == PermissionOptionKind::AllowAlways)?;
        Some(Always::Option(option.name.as_str().to_owned()))
    }

    fn can_save(&self) -> bool {
        false
    }

    fn allow_always(_chat: &mut Chat<'_, Self>, _prompt: &Prompt<'_>, _lasting: Lasting) -> Answer {
        Answer::AllowAlways
    }

    async fn answer(chat: &mut Chat<'_, Self>, request: &RequestId, answer: Answer) {
        chat.post_answer(request, answer);
    }

    fn agent(&self) -> &str {
        &self.conversation.agent
    }

    fn agents(&self) -> Vec<String> {
        Registry::default().names().map(str::to_owned).collect()
    }

    fn status(chat: &Chat<'_, Self>) -> Status {
        let Conversation { model, permission, .. } = &chat.backend.conversation;
        let directory = Some(&chat.directory).filter(|directory| !directory.as_os_str().is_empty());
        let directory = directory.map(|directory| Printable::exact(&directory.to_string_lossy()));
        let shown = |value: &Option<String>| value.as_deref().map(Printable::exact);
        Status { model: shown(model), permission: shown(permission), directory }
    }

    fn origin(chat: &Chat<'_, Self>) -> Origin {
        Origin { id: Some(chat.backend.conversation.id.clone()), is_partial: chat.backend.is_partial }
    }

    fn lines(&self, width: usize) -> Vec<Printable> {
        let lost = self.lost.iter().flat_map(|why| why.rows(width)).map(|row| row.styled(NOTICE));
        let queued = self.turns.lines().into_iter().map(|line| line.cut(width).styled(DIM));
        queued.chain(lost).collect()
    }

    async fn leave(chat: &mut Chat<'_, Self>) {
        // A message that is not confirmed may be accepted all the same.
        let confirmed = async {
            while chat.backend.turns.is_sending()
                && let Some(Ok(result)) = chat.backend.calls.join_next().await
            {
                chat.on_call(result);
            }
        };
        _ = tokio::time::timeout(CONFIRMATION, confirmed).await;
        for text in chat.backend.turns.unconfirmed().to_vec() {
            chat.message(printable!("not confirmed by the gateway: {}", Printable::prose(&text)));
        }
        for text in chat.input.waiting.take_all() {
            chat.message(printable!("not sent: {}", Printable::prose(&text)));
        }
        if chat.backend.failure.is_some() {
            return;
        }
        let works = match (chat.is_working(), chat.backend.turns.waiting()) {
            (false, 0) => "",
            (true, 0) => "the turn continues in the gateway; ",
            _ => "the queued turns continue in the gateway; ",
        };
        let (id, server) = (Printable::exact(&chat.backend.conversation.id), &chat.backend.server_option);
        let text = printable!("{}to return:\n  teamster chat --conversation {}{}", works, id, server);
        chat.message(text);
    }

    async fn close(self, _signals: &mut Signals) -> u8 {
        self.failure.map_or(exit::SUCCESS, |error| client::report(&error))
    }
}

/// Waits for the next change, once the writer accepts an event. After the last one it waits forever. Cancel-safe.
async fn next_change(follower: &mut Follower, page: &Page) -> (Result<Change, ClientError>, OwnedSemaphorePermit) {
    let Some(permit) = page.event_permit().await else { return pending().await };
    match follower.next().await {
        Some(change) => (change, permit),
        None => pending().await,
    }
}
