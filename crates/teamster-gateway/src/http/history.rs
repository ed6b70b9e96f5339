//! Lists both sides of a conversation, turn by turn.

use std::collections::HashMap;

use axum::extract::State as Extract;
use serde::{Deserialize, Serialize};
use teamster_store::{Conversation, ConversationId, Cursor, Event, PageRequest, Seq, Turn, TurnId};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::conversations::find;
use super::extract::{Authenticated, Id, Params};
use super::problem::{Problem, Result};
use super::state::State;
use super::turns::{MessageView, ResultFields, StateName, TurnError, error, message};
use super::wire::{Time, page, read};
use crate::access::Scope;
use crate::config::ConversationSettings;
use crate::engine::Gateway;

/// The number of turns that are read at once. A turn's result may have 16 MiB.
const CHUNK: u32 = 16;

/// The size of the texts of a page. A page that is larger ends early.
const PAGE_BYTES: usize = 4 << 20;

/// The number of events that are read at once.
const EVENTS: u32 = 500;

/// Which part of the history is listed.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct HistoryQuery {
    /// The number of items. A page with long texts has fewer.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u32>,
    /// The position of the page: `nextCursor` of the page before.
    #[param(pattern = "^(turns:[0-9]{0,18}|copied:[0-9]{1,18})$")]
    cursor: Option<String>,
}

/// A page of the history, the oldest turn first.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct History {
    /// The turns with their messages and answers.
    items: Vec<Exchange>,
    /// The page contains all events up to this number: continue with `events?after=lastSeq`. Use the value of the first
    /// page.
    last_seq: u64,
    /// The value of `cursor` for the next page. It is absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A message and its answer.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Exchange {
    /// The turn. In a fork it may belong to the original conversation.
    turn_id: Uuid,
    /// The number of the event `turn_queued`.
    seq: u64,
    /// The state of the turn. It is absent if a fork was made before the turn ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<StateName>,
    /// The running turn that the message joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    joined_turn_id: Option<Uuid>,
    /// The message.
    message: MessageView,
    /// The agent's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<AnswerView>,
    /// Why the turn has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<TurnError>,
}

/// An answer.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Answer)]
pub(super) struct AnswerView {
    /// All texts of the turn.
    text: String,
    /// The last message of the turn. It is what a chat shows.
    final_text: String,
    /// When the turn ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Time>,
}

/// The position of a page.
enum Position {
    /// In the copied log of a fork: the number of exchanges before the page.
    Copied(usize),
    /// In the turns.
    Turns(Option<Cursor>),
}

/// Lists both sides of a conversation, turn by turn, the oldest first.
#[utoipa::path(get, path = "/v1/conversations/{id}/messages", tag = "messages", operation_id = "listMessages",
    params(("id" = Uuid, Path, description = "The conversation."), HistoryQuery),
    responses((status = 200, body = History)))]
pub(super) async fn list(
    Extract(api): State,
    caller: Authenticated,
    Id(id): Id<ConversationId>,
    Params(query): Params<HistoryQuery>,
) -> Result<axum::Json<History>> {
    caller.require(Scope::Read)?;
    let PageRequest { limit, cursor } = page(query.limit, query.cursor)?;
    // This number is read before the turns, so a later event is in the events after it, and may be in the page as well.
    let conversation = find(&api.gateway, id).await?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut builder = Builder { items: Vec::new(), bytes: 0, limit };
    let fork = read::<ConversationSettings>(&conversation.settings)?.forked_from;
    let mut position = match (cursor, fork) {
        (Some(cursor), _) => Position::parse(&cursor)?,
        (None, Some(_)) => Position::Copied(0),
        (None, None) => Position::Turns(None),
    };
    let mut is_complete = false;
    if let (Position::Copied(skip), Some(fork)) = (&position, fork) {
        let next = builder.add_copied(&api.gateway, &conversation, Seq::new(fork.seq), *skip).await?;
        position = next.map_or(Position::Turns(None), Position::Copied);
    }
    while let (Position::Turns(cursor), false) = (&position, is_complete || builder.is_full()) {
        let room = u32::try_from(limit - builder.items.len()).unwrap_or(CHUNK);
        let request = PageRequest { limit: room.min(CHUNK), cursor: cursor.clone() };
        let found = api.gateway.store().turns(id, request).await?;
        for turn in &found.items {
            builder.add(exchange(turn)?);
        }
        is_complete = found.next.is_none();
        position = Position::Turns(found.next);
    }
    let next_cursor = (!is_complete).then(|| position.text());
    Ok(axum::Json(History { items: builder.items, last_seq: conversation.last_seq.get(), next_cursor }))
}

/// Collects a page.
struct Builder {
    items: Vec<Exchange>,
    bytes: usize,
    limit: usize,
}

impl Builder {
    fn is_full(&self) -> bool {
        self.items.len() >= self.limit || self.bytes >= PAGE_BYTES
    }

    fn add(&mut self, exchange: Exchange) {
        let answer = exchange.answer.as_ref().map_or(0, |answer| answer.text.len() + answer.final_text.len());
        self.bytes += exchange.message.text.len() + answer;
        self.items.push(exchange);
    }

    /// Adds the exchanges of the copied log after the first `skip`, and returns the position of the next page in it.
    async fn add_copied(
        &mut self,
        gateway: &Gateway,
        conversation: &Conversation,
        end: Seq,
        skip: usize,
    ) -> Result<Option<usize>> {
        let mut copied = Copied { skip, limit: self.limit, ..Copied::default() };
        let mut after = Seq::new(conversation.oldest_seq.get().saturating_sub(1));
        while after < end {
            let events = gateway.store().events(conversation.id, after, EVENTS).await?.events;
            let Some(last) = events.last() else { break };
            after = last.seq;
            events.iter().filter(|event| event.seq <= end).for_each(|event| copied.add(event));
        }
        let mut taken = 0;
        for exchange in copied.items {
            if self.is_full() {
                break;
            }
            taken += 1;
            self.add(exchange);
        }
        let next = skip.saturating_add(taken);
        Ok((next < copied.count).then_some(next))
    }
}

impl Position {
    fn parse(cursor: &Cursor) -> Result<Self> {
        let text = cursor.as_str();
        let position = match text.split_once(':') {
            Some(("copied", count)) => count.parse().ok().map(Self::Copied),
            Some(("turns", "")) => Some(Self::Turns(None)),
            Some(("turns", rest)) => Some(Self::Turns(Some(Cursor::new(rest)))),
            _ => None,
        };
        position.ok_or_else(|| Problem::invalid("cursor", "is not one of this list"))
    }

    fn text(&self) -> String {
        match self {
            Self::Copied(count) => format!("copied:{count}"),
            Self::Turns(None) => "turns:".to_owned(),
            Self::Turns(Some(cursor)) => format!("turns:{}", cursor.as_str()),
        }
    }
}

fn exchange(turn: &Turn) -> Result<Exchange> {
    let result: Option<ResultFields> = turn.result.as_ref().and_then(|result| result.to().ok());
    let answer = result.map(|result| result.answer(turn.ended_at.map(Time)));
    Ok(Exchange {
        turn_id: turn.id.uuid(),
        seq: turn.queued_seq.get(),
        state: Some(turn.state.into()),
        joined_turn_id: turn.joined.map(TurnId::uuid),
        message: message(turn)?,
        answer: answer.filter(|answer| !answer.text.is_empty() || turn.error_code.is_none()),
        error: error(turn),
    })
}

impl ResultFields {
    fn answer(self, at: Option<Time>) -> AnswerView {
        AnswerView { text: self.text, final_text: self.final_text, at }
    }
}

/// The exchanges of a copied log. Their turns belong to the original conversation.
#[derive(Default)]
struct Copied {
    skip: usize,
    limit: usize,
    /// The number of exchanges so far, also those before and after the page.
    count: usize,
    items: Vec<Exchange>,
    /// The positions in `items`. `None` is not in the page.
    turns: HashMap<TurnId, Option<usize>>,
}

/// The fields that are read from an event. Fields of other events are absent.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Fields {
    message_id: Option<Uuid>,
    author: String,
    text: String,
    state: Option<StateName>,
    error_code: Option<String>,
    error: Option<String>,
    result: Option<ResultFields>,
}

impl Copied {
    fn add(&mut self, event: &Event) {
        let Some(turn) = event.turn else { return };
        if !matches!(event.kind.as_str(), "turn_queued" | "turn_edited" | "turn_finished" | "done") {
            return;
        }
        let Ok(fields) = event.body.to::<Fields>() else { return };
        if event.kind == "turn_queued" {
            self.add_message(turn, event, fields);
            return;
        }
        let at = self.turns.get(&turn).copied().flatten();
        let Some(exchange) = at.and_then(|at| self.items.get_mut(at)) else { return };
        match event.kind.as_str() {
            "turn_edited" => exchange.message.text = fields.text,
            // Each attempt has its own result. The last one is used.
            "done" => exchange.answer = fields.result.map(|result| result.answer(Some(Time(event.at)))),
            _ => {
                exchange.state = fields.state;
                exchange.error = fields.error_code.map(|code| TurnError::new(code, fields.error));
            }
        }
    }

    fn add_message(&mut self, turn: TurnId, event: &Event, fields: Fields) {
        // A turn that was queued again has its message already.
        if self.turns.contains_key(&turn) {
            return;
        }
        let is_in_page = self.count >= self.skip && self.items.len() < self.limit;
        self.count += 1;
        self.turns.insert(turn, is_in_page.then_some(self.items.len()));
        if !is_in_page {
            return;
        }
        let message = MessageView {
            id: fields.message_id.unwrap_or_default(),
            author: fields.author,
            text: fields.text,
            attachments: Vec::new(),
            mode: None,
            at: Time(event.at),
        };
        self.items.push(Exchange {
            turn_id: turn.uuid(),
            seq: event.seq.get(),
            state: None,
            joined_turn_id: None,
            message,
            answer: None,
            error: None,
        });
    }
}
