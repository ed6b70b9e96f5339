//! The commands of a chat. Each reply is a text in Markdown.

use std::fmt::Write as _;

use teamster_channel::{ChatCommand, render};
use teamster_store::{
    CancelOutcome, ChatAddress, Conversation, ConversationId, ConversationState, Day, Json, NewConversation,
    StoreError, TurnState, Usage, UsageQuery,
};
use uuid::Uuid;

use crate::config::{ConversationSettings, Origin, Rule, TurnSettings, resolve, rule_for};
use crate::engine::{ConversationChange, Gateway, MAX_NAME};
use crate::error::GatewayError;

const NOTHING_HERE: &str = "There is no conversation here yet.";

/// Runs a command.
pub(super) async fn run(
    gateway: &Gateway,
    address: ChatAddress,
    command: &ChatCommand,
) -> Result<String, GatewayError> {
    let chat = Chat { gateway, address, author: &command.author.id };
    let argument = command.argument.trim();
    match command.name.as_str() {
        "agent" => chat.agent(argument).await,
        "model" => chat.model(argument).await,
        "new" => chat.restart().await,
        "stop" => chat.stop().await,
        "status" => chat.status().await,
        "usage" => chat.usage().await,
        other => Ok(format!("There is no command {}.", render::inline_code(other))),
    }
}

struct Chat<'a> {
    gateway: &'a Gateway,
    address: ChatAddress,
    author: &'a str,
}

impl Chat<'_> {
    async fn find(&self) -> Result<Option<Conversation>, GatewayError> {
        Ok(self.gateway.store().conversation_at(self.address.clone(), self.gateway.now()).await?)
    }

    /// Returns the conversation, which is created if there is none.
    async fn find_or_create(&self) -> Result<Conversation, GatewayError> {
        if let Some(found) = self.find().await? {
            return Ok(found);
        }
        let settings = ConversationSettings::default();
        let new = NewConversation {
            id: ConversationId::new(Uuid::now_v7()),
            address: self.address.clone(),
            agent: self.resolved(None, &settings)?.agent,
            title: None,
            settings: Json::of(&settings)?,
        };
        match self.gateway.store().create_conversation(new, None, self.gateway.now()).await {
            // A message has created it in the meantime.
            Err(StoreError::Exists { .. }) => {
                let found = self.find().await?;
                found.ok_or_else(|| GatewayError::Rejected { reason: "the conversation was deleted".to_owned() })
            }
            created => Ok(created?),
        }
    }

    fn resolved(&self, agent: Option<&str>, settings: &ConversationSettings) -> Result<TurnSettings, GatewayError> {
        let ChatAddress { channel, chat, .. } = &self.address;
        let origin = Origin { channel, chat, author: self.author };
        let reason = "a rule of the operator does not permit messages from here".to_owned();
        resolve(self.gateway.config(), agent, settings, origin).ok_or(GatewayError::Rejected { reason })
    }

    async fn agent(&self, name: &str) -> Result<String, GatewayError> {
        let conversation = self.find_or_create().await?;
        if name.is_empty() {
            let settings: ConversationSettings = conversation.settings.to()?;
            let agent = self.resolved(Some(&conversation.agent), &settings)?.agent;
            let mut text = format!("The agent is {}. Available:", render::inline_code(&agent));
            for name in self.gateway.runtime().registry().names() {
                // Writing to a text cannot fail.
                _ = write!(text, " {}", render::inline_code(name));
            }
            return Ok(text);
        }
        self.check_free("agent", |rule| rule.agent.as_deref())?;
        check_name("agent", name)?;
        // A model belongs to its agent.
        let mut settings: ConversationSettings = conversation.settings.to()?;
        settings.model = None;
        let change = ConversationChange {
            agent: Some(name.to_owned()),
            settings: Some(settings),
            expected_version: Some(conversation.version),
            ..ConversationChange::default()
        };
        self.gateway.update_conversation(conversation.id, change).await?;
        Ok(format!("The agent is {} from the next turn on.", render::inline_code(name)))
    }

    async fn model(&self, name: &str) -> Result<String, GatewayError> {
        let conversation = self.find_or_create().await?;
        let mut settings: ConversationSettings = conversation.settings.to()?;
        if name.is_empty() {
            let model = self.resolved(Some(&conversation.agent), &settings)?.model;
            return Ok(match model {
                Some(model) => format!("The model is {}.", render::inline_code(&model)),
                None => "The agent uses its own default model.".to_owned(),
            });
        }
        self.check_free("model", |rule| rule.model.as_deref())?;
        check_name("model", name)?;
        settings.model = (name != "default").then(|| name.to_owned());
        let change = ConversationChange {
            settings: Some(settings),
            expected_version: Some(conversation.version),
            ..ConversationChange::default()
        };
        self.gateway.update_conversation(conversation.id, change).await?;
        Ok(format!("The model is {} from the next turn on.", render::inline_code(name)))
    }

    /// Refuses a selection that a rule has made.
    fn check_free(&self, what: &str, of: impl Fn(&Rule) -> Option<&str>) -> Result<(), GatewayError> {
        let ChatAddress { channel, chat, .. } = &self.address;
        let rule = rule_for(self.gateway.config(), Origin { channel, chat, author: self.author });
        match rule.and_then(of) {
            Some(fixed) => {
                let reason = format!("a rule of the operator selects the {what} here: {fixed}");
                Err(GatewayError::Forbidden { reason })
            }
            None => Ok(()),
        }
    }

    async fn restart(&self) -> Result<String, GatewayError> {
        let Some(conversation) = self.find().await? else { return Ok(NOTHING_HERE.to_owned()) };
        let by = format!("{}:{}", self.address.channel, self.author);
        match self.gateway.restart_conversation(conversation.id, &by).await {
            Ok(()) => {
                Ok("The agent gets a new session with the next message. The log of the conversation is kept."
                    .to_owned())
            }
            Err(GatewayError::Store(StoreError::ConversationBusy { .. })) => {
                Ok("A turn is running. Send /stop first, then /new.".to_owned())
            }
            Err(error) => Err(error),
        }
    }

    async fn stop(&self) -> Result<String, GatewayError> {
        let Some(conversation) = self.find().await? else { return Ok(NOTHING_HERE.to_owned()) };
        let turns = self.gateway.store().open_turns(conversation.id).await?;
        // The running turn, or else the one that waits longest, for example for the end of a pause.
        let running = turns.iter().find(|turn| turn.state == TurnState::Running && turn.joined.is_none());
        let Some(turn) = running.or_else(|| turns.first()) else { return Ok("No turn is running.".to_owned()) };
        let waiting = turns.len().saturating_sub(1);
        let mut text = match self.gateway.abort_turn(turn.id).await? {
            CancelOutcome::Requested => "The turn is being stopped.".to_owned(),
            CancelOutcome::Aborted => "The waiting turn is stopped.".to_owned(),
            CancelOutcome::Unchanged(_) => "The turn has ended already.".to_owned(),
        };
        if waiting > 0 {
            _ = write!(text, " {waiting} more waiting.");
        }
        Ok(text)
    }

    async fn status(&self) -> Result<String, GatewayError> {
        let Some(conversation) = self.find().await? else { return Ok(NOTHING_HERE.to_owned()) };
        let settings: ConversationSettings = conversation.settings.to()?;
        let resolved = self.resolved(Some(&conversation.agent), &settings)?;
        let state = match conversation.state {
            ConversationState::Idle => "idle",
            ConversationState::Queued => "waiting for a worker",
            ConversationState::Running => "a turn is running",
            ConversationState::Waiting => "the agent waits for an answer",
            ConversationState::Paused => "paused until the end of a rate limit",
        };
        let mut text = format!("- State: {state}\n- Agent: {}", render::inline_code(&resolved.agent));
        if let Some(model) = resolved.model {
            _ = write!(text, "\n- Model: {}", render::inline_code(&model));
        }
        _ = write!(text, "\n- Waiting messages: {}", conversation.queued);
        if let Some(until) = conversation.paused_until.filter(|until| *until > self.gateway.now()) {
            _ = write!(text, "\n- Paused until: {}", crate::event::rfc3339(until));
        }
        Ok(text)
    }

    async fn usage(&self) -> Result<String, GatewayError> {
        let Some(conversation) = self.find().await? else { return Ok(NOTHING_HERE.to_owned()) };
        let today = crate::clock::day(self.gateway.now());
        let query = UsageQuery { from: Day::new(0), to: today, conversation: Some(conversation.id) };
        let rows = self.gateway.store().usage(query).await?;
        let sum = |rows: &mut dyn Iterator<Item = Usage>| rows.fold(Usage::default(), Usage::plus);
        let of_today = sum(&mut rows.iter().filter(|row| row.day == today).map(|row| row.usage));
        let total = sum(&mut rows.iter().map(|row| row.usage));
        Ok(format!("- Today: {}\n- In all: {}", usage_text(of_today), usage_text(total)))
    }
}

fn check_name(field: &'static str, name: &str) -> Result<(), GatewayError> {
    if name.chars().count() <= MAX_NAME {
        return Ok(());
    }
    Err(GatewayError::Invalid { field, problem: format!("must have at most {MAX_NAME} characters") })
}

fn usage_text(usage: Usage) -> String {
    let Usage { input_tokens, output_tokens, cost_micros } = usage;
    // Rounded to cents, half up.
    let cents = cost_micros.saturating_add(5_000) / 10_000;
    format!("{input_tokens} tokens in, {output_tokens} tokens out, {}.{:02} USD", cents / 100, cents % 100)
}
