//! Orders: what the caller of a session sends to its driver.

use teamster_agents::rules::ToolRules;
use teamster_types::event::RequestId;
use teamster_types::request::{Answer, PermissionMode};
use tokio::sync::oneshot;

use super::error::{AnswerError, MAX_TURNS};
use crate::run::Run;
use crate::turns::list::TurnOrder;

/// The maximum number of other waiting orders. The driver takes them at once.
pub(crate) const MAX_ORDERS: usize = MAX_TURNS + 64;

/// An order of a session's caller.
pub(crate) enum Order {
    Turn(TurnOrder),
    SendNow(Box<SendNow>),
    Answer {
        request: RequestId,
        answer: Answer,
        reply: oneshot::Sender<Result<(), AnswerError>>,
    },
    SetModel(String),
    SetPermissionMode(PermissionMode),
    /// Replaces the rules for the agent's permission requests.
    SetRules(Box<ToolRules>),
    /// No more turns follow. The session ends when the sent turns have ended.
    Close,
}

/// A prompt for the running turn. It becomes a turn of its own if the agent does not accept it there.
pub(crate) struct SendNow {
    pub(crate) turn: TurnOrder,
    /// The caller's side of that turn.
    pub(crate) run: Box<Run>,
    pub(crate) reply: oneshot::Sender<Sent>,
}

/// The effect of a prompt that was [sent at once](crate::Session::send_now).
#[derive(Debug)]
#[non_exhaustive]
pub enum Sent {
    /// The running turn received it. The answer is in the stream of that turn.
    Steered,
    /// It is a turn of its own.
    Turn(Box<Run>),
}
