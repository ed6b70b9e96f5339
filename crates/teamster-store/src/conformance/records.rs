//! Records with plain values.

use uuid::Uuid;

use crate::ids::{ConversationId, DeliveryId, Json, MessageId, Timestamp, TurnId};
use crate::records::{
    ChatAddress, IdempotencyKey, MessageMode, NewConversation, NewDelivery, NewEvent, NewMessage, Target,
};

pub(super) fn address(chat: &str, thread: &str) -> ChatAddress {
    ChatAddress { channel: "webhook".to_owned(), chat: chat.to_owned(), thread: thread.to_owned() }
}

pub(super) fn new_conversation(id: Uuid, chat: &str, thread: &str) -> NewConversation {
    NewConversation {
        id: ConversationId::new(id),
        address: address(chat, thread),
        agent: "claude".to_owned(),
        title: None,
        settings: Json::empty(),
    }
}

pub(super) fn message(target: Target, id: Uuid, turn: Uuid, now: Timestamp) -> NewMessage {
    NewMessage {
        id: MessageId::new(id),
        turn: TurnId::new(turn),
        target,
        channel_ids: vec![id.to_string()],
        idempotency: None,
        author: "alice".to_owned(),
        text: format!("Text {id}"),
        details: Json::empty(),
        mode: MessageMode::Queue,
        event: NewEvent { turn: Some(TurnId::new(turn)), ..event("turn_queued", now) },
    }
}

pub(super) fn event(kind: &str, at: Timestamp) -> NewEvent {
    NewEvent { kind: kind.to_owned(), turn: None, at, body: Json::empty() }
}

pub(super) fn key(key: &str, body: u8) -> IdempotencyKey {
    IdempotencyKey { scope: "token".to_owned(), key: key.to_owned(), body_hash: [body; 32] }
}

pub(super) fn delivery(id: Uuid, chat: &str, not_before: Timestamp) -> NewDelivery {
    NewDelivery {
        id: DeliveryId::new(id),
        key: id.to_string(),
        address: address(chat, ""),
        conversation: None,
        turn: None,
        body: Json::empty(),
        not_before,
    }
}
