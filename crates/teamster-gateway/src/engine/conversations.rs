//! Conversations and their settings.

use std::path::{Path, PathBuf};

use teamster_store::{
    ChatAddress, Conversation, ConversationId, ConversationPatch, Effects, Fork, Json, NewConversation, Seq,
};
use uuid::Uuid;

use super::gateway::Gateway;
use crate::config::{Config, ConversationSettings, Origin, resolve};
use crate::error::GatewayError;
use crate::event::GatewayEvent;
use crate::session_request::refusal;

/// The largest number of characters of names and titles.
pub(crate) const MAX_NAME: usize = 500;

/// The largest number of characters of instructions.
pub(crate) const MAX_INSTRUCTIONS: usize = 100_000;

/// The largest size of the caller's own values, in bytes of JSON.
pub(crate) const MAX_METADATA: usize = 64 << 10;

/// A conversation to create.
#[derive(Clone, Debug, Default)]
pub struct NewConversationRequest {
    /// The channel; `http` or `web`.
    pub channel: String,
    /// Who creates it.
    pub author: String,
    /// The agent. `None` is that of the rules.
    pub agent: Option<String>,
    /// A title for people.
    pub title: Option<String>,
    /// Model, permission, directory and other settings.
    pub settings: ConversationSettings,
    /// The conversation whose history is copied, and the last event that is copied.
    pub fork: Option<(ConversationId, Option<Seq>)>,
}

/// A change of a conversation. `None` keeps a value.
#[derive(Clone, Debug, Default)]
pub struct ConversationChange {
    /// Another agent.
    pub agent: Option<String>,
    /// Another title, or none.
    pub title: Option<Option<String>>,
    /// Other settings.
    pub settings: Option<ConversationSettings>,
    /// Applies the change only to this version.
    pub expected_version: Option<u64>,
}

impl Gateway {
    /// Returns whether an agent may work in a directory: below a root, with symbolic links resolved.
    pub fn permits_directory(&self, directory: &Path) -> Result<PathBuf, GatewayError> {
        permitted_directory(&self.shared.config, directory)
    }

    /// Creates a conversation.
    pub async fn create_conversation(&self, request: NewConversationRequest) -> Result<Conversation, GatewayError> {
        let shared = &self.shared;
        let NewConversationRequest { channel, author, agent, title, mut settings, fork } = request;
        self.check_settings(&mut settings)?;
        if settings.permission.is_some() {
            settings.permission_by.get_or_insert_with(|| author.clone());
        }
        let id = ConversationId::new(Uuid::now_v7());
        let chat = id.to_string();
        let origin = Origin { channel: &channel, chat: &chat, author: &author };
        let resolved = resolve(&shared.config, agent.as_deref(), &settings, origin).ok_or_else(rejected)?;
        self.check_agent(&resolved.agent)?;
        let new = NewConversation {
            id,
            address: ChatAddress { channel, chat, thread: String::new() },
            agent: resolved.agent,
            title,
            settings: Json::of(&settings)?,
        };
        let now = shared.clock.now();
        let fork = match fork {
            None => None,
            Some((from, Some(after))) => Some(Fork { from, after }),
            Some((from, None)) => {
                let source = shared.store.conversation(from, now).await?;
                let source = source.ok_or_else(|| not_found(from))?;
                Some(Fork { from, after: source.last_seq })
            }
        };
        Ok(shared.store.create_conversation(new, fork, now).await?)
    }

    /// Changes a conversation.
    pub async fn update_conversation(
        &self,
        id: ConversationId,
        change: ConversationChange,
    ) -> Result<Conversation, GatewayError> {
        let ConversationChange { agent, title, mut settings, expected_version } = change;
        if let Some(agent) = &agent {
            self.check_agent(agent)?;
        }
        if let Some(settings) = &mut settings {
            self.check_settings(settings)?;
        }
        let settings = settings.as_ref().map(Json::of).transpose()?;
        let patch = ConversationPatch { agent, title, settings, expected_version };
        let changed = self.shared.store.update_conversation(id, patch, Effects::default(), self.now()).await?;
        self.shared.hub.announce_growth(id);
        Ok(changed)
    }

    /// Ends the pause of a conversation.
    pub async fn resume_conversation(&self, id: ConversationId) -> Result<Conversation, GatewayError> {
        let event = self.shared.event(&GatewayEvent::TurnResumed, None)?;
        let resumed = self.shared.store.resume_conversation(id, Effects::events(vec![event]), self.now()).await?;
        self.announce_growth(id);
        Ok(resumed)
    }

    /// Deletes a conversation with its log, and closes its agent.
    pub async fn delete_conversation(&self, id: ConversationId) -> Result<(), GatewayError> {
        self.shared.store.delete_conversation(id, self.now()).await?;
        self.shared.sessions.discard(id);
        self.shared.hub.announce_growth(id);
        Ok(())
    }

    /// Restarts a conversation: the agent gets a new session and none of the earlier messages. The log is kept.
    ///
    /// # Errors
    /// A turn is running.
    pub async fn restart_conversation(&self, id: ConversationId, by: &str) -> Result<(), GatewayError> {
        let event = self.shared.event(&GatewayEvent::ConversationRestarted { by: by.to_owned() }, None)?;
        self.shared.store.forget_sessions(id, Effects::events(vec![event]), self.now()).await?;
        self.announce_growth(id);
        Ok(())
    }

    fn check_agent(&self, agent: &str) -> Result<(), GatewayError> {
        let invalid = |problem| GatewayError::Invalid { field: "agent", problem };
        let known = self.shared.runtime.registry().get(agent).map_err(|error| invalid(error.to_string()))?;
        refusal(&*known, &self.shared.config).map_or(Ok(()), |reason| Err(GatewayError::Forbidden { reason }))
    }

    fn check_settings(&self, settings: &mut ConversationSettings) -> Result<(), GatewayError> {
        if let Some(directory) = &mut settings.directory {
            *directory = permitted_directory(&self.shared.config, directory)?;
        }
        check_sizes(settings)
    }
}

/// Checks the sizes of settings: they are read with each list of conversations.
fn check_sizes(settings: &ConversationSettings) -> Result<(), GatewayError> {
    let ConversationSettings { model, instructions, metadata, .. } = settings;
    for (field, text, max) in [("model", model, MAX_NAME), ("instructions", instructions, MAX_INSTRUCTIONS)] {
        if text.as_ref().is_some_and(|text| text.chars().nth(max).is_some()) {
            return Err(GatewayError::Invalid { field, problem: format!("must have at most {max} characters") });
        }
    }
    if serde_json::to_vec(metadata)?.len() > MAX_METADATA {
        let problem = format!("must have at most {MAX_METADATA} bytes of JSON");
        return Err(GatewayError::Invalid { field: "metadata", problem });
    }
    Ok(())
}

pub(super) fn not_found(id: ConversationId) -> GatewayError {
    let entity = teamster_store::Entity::Conversation;
    teamster_store::StoreError::NotFound { entity, id: id.to_string() }.into()
}

pub(super) fn rejected() -> GatewayError {
    GatewayError::Rejected { reason: "a rule of the operator does not permit messages from here".to_owned() }
}

/// Returns the real path of a directory if it is the default one, that of a rule or a root, or below one of them.
/// Symbolic links are resolved.
pub(super) fn permitted_directory(config: &Config, directory: &Path) -> Result<PathBuf, GatewayError> {
    let invalid = |problem: String| GatewayError::Invalid { field: "directory", problem };
    let real = directory.canonicalize().map_err(|error| invalid(format!("cannot be used: {error}")))?;
    let of_rules = config.rules.iter().filter_map(|rule| rule.directory.as_ref());
    let mut roots = config.roots.iter().chain([&config.turn.directory]).chain(of_rules);
    let is_below = roots.any(|root| root.canonicalize().is_ok_and(|root| real.starts_with(root)));
    if !is_below || !real.is_dir() {
        return Err(invalid(
            "must be an existing directory: `directory` or one of `roots` of the configuration, or below them"
                .to_owned(),
        ));
    }
    Ok(real)
}
