//! What the chat sends to the gateway. Each call is a task, so that a slow gateway blocks nothing.

use std::time::Duration;

use serde_json::Value;
use teamster::event::RequestId;
use teamster::request::Answer;
use uuid::Uuid;

use super::conversation::{CallResult, GatewayConversation, Unconfirmed};
use crate::chat::backend::{Activity, Backend as _};
use crate::chat::state::Chat;
use crate::client::{Accepted, ClientError, MessageMode, RequestAnswer};
use crate::printable::{Printable, printable};

/// How long a call is repeated while the gateway cannot be reached.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Formats an error with its hint.
fn with_hint(error: &ClientError) -> Printable {
    let hint = error.hint().map(|hint| printable!("; {}", hint)).unwrap_or_default();
    printable!("{}{}", Printable::error(error), hint)
}

impl Chat<'_, GatewayConversation> {
    /// Sends a message. It is repeated with the same idempotency key.
    pub(super) fn post(&mut self, text: String, mode: MessageMode) {
        let key = match self.backend.unconfirmed.take().filter(|unconfirmed| unconfirmed.text == text) {
            Some(unconfirmed) => unconfirmed.key,
            None => Uuid::new_v4().to_string(),
        };
        self.backend.turns.begin_sending(&text);
        let (connection, id) = (self.backend.connection.clone(), self.backend.conversation.id.clone());
        self.backend.calls.spawn(async move {
            let result = connection.send_message(&id, (&text, mode), &key, CALL_TIMEOUT).await;
            CallResult::Sent { text, key, result }
        });
    }

    /// Requests the abort of the running turn. Returns false if no turn runs.
    pub(super) fn abort(&mut self) -> bool {
        let Some(running) = &mut self.backend.turns.running else { return false };
        if std::mem::replace(&mut running.is_stopping, true) {
            self.notify("the agent was asked to stop; Ctrl-D leaves the chat");
            return true;
        }
        let (connection, turn) = (self.backend.connection.clone(), running.id.clone());
        self.backend.calls.spawn(async move {
            let result = connection.abort_turn(&turn, CALL_TIMEOUT).await;
            CallResult::Aborted { turn, result }
        });
        self.input.waiting.hold();
        let next = match self.backend.turns.waiting() {
            0 => Printable::default(),
            count => printable!("; {} queued follow", count),
        };
        self.notify(printable!("asked the agent to stop{}", next));
        true
    }

    /// Passes an answer to the gateway. The abort of a turn closes its requests.
    pub(super) fn post_answer(&mut self, request: &RequestId, answer: Answer) {
        if self.backend.activity() == Activity::Stopping {
            return;
        }
        let answer = match answer {
            Answer::AllowAlways => RequestAnswer::AllowAlways,
            Answer::Choose(choices) => RequestAnswer::Allow { answers: Some(choices) },
            Answer::Allow { .. } => RequestAnswer::Allow { answers: None },
            Answer::Deny { message } => RequestAnswer::Deny { message },
            Answer::Option { .. } => RequestAnswer::Deny { message: None },
        };
        self.backend.answered.insert(request.clone());
        let (connection, id) = (self.backend.connection.clone(), request.clone());
        self.backend.calls.spawn(async move {
            let result = connection.answer_request(id.as_str(), &answer, CALL_TIMEOUT).await;
            CallResult::Answered(id, result)
        });
    }

    /// Changes the conversation.
    pub(super) fn change(&mut self, what: Printable, change: Value) {
        let (connection, id) = (self.backend.connection.clone(), self.backend.conversation.id.clone());
        self.backend.calls.spawn(async move {
            let result = connection.change_conversation(&id, &change).await;
            CallResult::Changed(what, result)
        });
    }

    pub(super) fn on_call(&mut self, result: CallResult) {
        match result {
            CallResult::Sent { text, key, result } => self.on_sent(text, key, result),
            CallResult::Aborted { result: Ok(()), .. } | CallResult::Answered(_, Ok(())) => {}
            CallResult::Aborted { turn, result: Err(error) } => {
                let running = self.backend.turns.running.as_mut().filter(|running| running.id == turn);
                if let Some(running) = running {
                    running.is_stopping = false;
                    self.notify(printable!("not stopped: {}", with_hint(&error)));
                }
            }
            CallResult::Answered(id, Err(error)) => {
                self.backend.answered.remove(&id);
                self.message(printable!("  not answered: {}", with_hint(&error)));
                let open = self.backend.open_requests.get(&id).filter(|_| error.is_transient());
                self.requests.extend(open.cloned());
            }
            CallResult::Changed(what, Ok(conversation)) => {
                self.backend.conversation = conversation;
                self.message(printable!("{} from the next turn on", what));
            }
            CallResult::Changed(_, Err(error)) => self.message(with_hint(&error)),
        }
    }

    fn on_sent(&mut self, text: String, key: String, result: Result<Accepted, ClientError>) {
        self.input.waiting.end_sending(&text);
        let turn = result.as_ref().ok().map(|accepted| (accepted.turn_id.as_str(), accepted.seq));
        let last_seq = self.backend.last_seq;
        self.backend.turns.end_sending(&text, turn, last_seq);
        if let Err(error) = result {
            self.message(printable!("not sent: {}", with_hint(&error)));
            self.input.waiting.add_first(text.clone());
            self.input.waiting.hold();
            self.backend.unconfirmed = error.is_transient().then_some(Unconfirmed { text, key });
        }
    }
}
