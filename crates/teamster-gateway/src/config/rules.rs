//! Rules: which agent, model, permission and directory a chat or an author gets.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use teamster::request::PermissionMode;

use super::Config;

/// The author of the message, in a list of approvers.
pub(super) const AUTHOR: &str = "author";

/// The channel of messages that come through the API.
pub(crate) const API: &str = "http";

/// All members of the chat, in a list of approvers.
pub(crate) const EVERYONE: &str = "*";

/// A rule. A field that is `None` matches everything, or selects nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// Matches this channel.
    pub channel: Option<String>,
    /// Matches these chats.
    pub chats: Option<Vec<String>>,
    /// Matches these authors.
    pub authors: Option<Vec<String>>,
    /// The agent. A conversation cannot select another one.
    pub agent: Option<String>,
    /// The model. A conversation cannot select another one.
    pub model: Option<String>,
    /// What the agent may do.
    pub permission: Option<PermissionMode>,
    /// The working directory.
    pub directory: Option<PathBuf>,
    /// Instructions, appended to the general ones.
    pub instructions: Option<String>,
    /// Rules of allowed tools.
    pub allow_tools: Option<Vec<String>>,
    /// The budget of an author per day, in US dollars.
    pub daily_budget_usd: Option<f64>,
    /// Who may answer permission requests besides admins: `CHANNEL:AUTHOR`, `token:ID`, `author` or `*`. By default these are
    /// no members of a chat, and the author of a message that came through the API.
    pub approvers: Option<Vec<String>>,
    /// Whether messages are rejected.
    pub reject: bool,
}

/// The settings of a conversation that its creator has selected. They are stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConversationSettings {
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What the agent may do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<PermissionMode>,
    /// Who has selected the permission. A permission above that of the configuration applies to messages of this author
    /// only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_by: Option<String>,
    /// The working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// Instructions, appended to all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Values of the caller, which the gateway returns and does not interpret.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub metadata: serde_json::Map<String, serde_json::Value>,
    /// The conversation whose log was copied, if it is a fork.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkOrigin>,
}

/// The origin of a fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForkOrigin {
    /// The conversation.
    pub conversation_id: uuid::Uuid,
    /// The last event that was copied.
    pub seq: u64,
}

/// What one turn uses.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnSettings {
    /// The agent.
    pub agent: String,
    /// The program of its CLI.
    pub cli_path: Option<PathBuf>,
    /// The model.
    pub model: Option<String>,
    /// What the agent may do.
    pub permission: PermissionMode,
    /// Rules of allowed tools.
    pub allow_tools: Vec<String>,
    /// The working directory.
    pub directory: PathBuf,
    /// Instructions before placeholders are replaced, without those of files.
    pub instructions: Vec<String>,
    /// The budget per day: its scope and its limit in US dollars.
    pub daily_budget: Option<(String, f64)>,
    /// Who may answer permission requests besides admins: `CHANNEL:AUTHOR`, `token:ID` or `*`.
    pub approvers: Vec<String>,
}

impl TurnSettings {
    /// Returns whether a turn with the other settings may use a session with these. A permission for the whole session
    /// is never used in a turn with other approvers.
    pub fn shares_session_with(&self, other: &Self) -> bool {
        let Self {
            agent,
            cli_path,
            model,
            permission,
            allow_tools,
            directory,
            instructions,
            approvers,
            daily_budget: _,
        } = self;
        *agent == other.agent
            && *cli_path == other.cli_path
            && *model == other.model
            && *permission == other.permission
            && *allow_tools == other.allow_tools
            && *directory == other.directory
            && *instructions == other.instructions
            && *approvers == other.approvers
            && self.budget_usd() == other.budget_usd()
    }

    /// Returns the limit of the budget per day, in US dollars.
    pub fn budget_usd(&self) -> Option<f64> {
        self.daily_budget.as_ref().map(|(_, limit)| *limit)
    }
}

/// Who writes, and where.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The channel.
    pub channel: &'a str,
    /// The chat.
    pub chat: &'a str,
    /// The author.
    pub author: &'a str,
}

/// Selects the settings of a turn. `None` means that a rule rejects the message.
///
/// The first rule that matches applies. A conversation cannot exceed it: its agent and its model are those of the rule,
/// its permission is at most that of the rule, and its directory must be the directory of the rule or one below it. In
/// the channel of a chat service, the defaults limit a conversation in the same way, because strangers may write there.
pub fn resolve(
    config: &Config,
    agent: Option<&str>,
    conversation: &ConversationSettings,
    origin: Origin<'_>,
) -> Option<TurnSettings> {
    let none = Rule::default();
    let rule = rule_for(config, origin).unwrap_or(&none);
    if rule.reject {
        return None;
    }
    let defaults = &config.turn;
    let selected = rule.agent.as_deref().or(agent).unwrap_or(&defaults.agent).to_owned();
    // A model belongs to its agent.
    let is_conversations = agent.is_none_or(|agent| agent == selected);
    let is_default = selected == defaults.agent;
    Some(TurnSettings {
        cli_path: defaults.cli_path.clone().filter(|_| is_default),
        model: (rule.model.clone())
            .or_else(|| conversation.model.clone().filter(|_| is_conversations))
            .or_else(|| defaults.model.clone().filter(|_| is_default)),
        permission: permission(config, rule, conversation, origin),
        // The rules of tools belong to their agent.
        allow_tools: (rule.allow_tools.clone())
            .or_else(|| is_default.then(|| defaults.allow_tools.clone()))
            .unwrap_or_default(),
        directory: directory(config, rule, conversation.directory.as_deref(), origin),
        instructions: [&config.instructions.text, &rule.instructions, &conversation.instructions]
            .into_iter()
            .flatten()
            .cloned()
            .collect(),
        daily_budget: rule
            .daily_budget_usd
            .map(|limit| (format!("author:{}:{}", origin.channel, origin.author), limit)),
        approvers: approvers(rule, origin),
        agent: selected,
    })
}

/// Selects the settings of a turn, whose message came through the API if `by_api`. `None` means that a rule rejects the message.
///
/// In the conversation of a chat, the rule for the chat and the rule for the sender both apply: the message gets the
/// lower permission and the tools that both allow. The owner of a token is not an author of the chat, even if an author
/// there has the same id.
pub(crate) fn resolve_message(
    config: &Config,
    agent: Option<&str>,
    conversation: &ConversationSettings,
    origin: Origin<'_>,
    by_api: bool,
) -> Option<TurnSettings> {
    if !by_api || !origin.is_chat() {
        return resolve(config, agent, conversation, origin);
    }
    let sender = Origin { channel: API, ..origin };
    let stranger = sender.author_id();
    let in_chat = resolve(config, agent, conversation, Origin { author: &stranger, ..origin })?;
    let by_sender = resolve(config, agent, conversation, sender)?;
    let is_lower = rank(by_sender.permission) < rank(in_chat.permission);
    Some(TurnSettings {
        permission: if is_lower { by_sender.permission } else { in_chat.permission },
        allow_tools: in_chat.allow_tools.into_iter().filter(|tool| by_sender.allow_tools.contains(tool)).collect(),
        daily_budget: by_sender.daily_budget.or(in_chat.daily_budget),
        approvers: by_sender.approvers,
        ..in_chat
    })
}

/// Returns the rule for a message.
pub(crate) fn rule_for<'a>(config: &'a Config, origin: Origin<'_>) -> Option<&'a Rule> {
    config.rules.iter().find(|rule| rule.matches(origin))
}

impl Rule {
    /// Returns whether the rule is for a message.
    pub fn matches(&self, origin: Origin<'_>) -> bool {
        let contains = |wanted: &Option<Vec<String>>, value: &str| {
            wanted.as_ref().is_none_or(|list| list.iter().any(|item| item == value))
        };
        self.channel.as_deref().is_none_or(|channel| channel == origin.channel)
            && contains(&self.chats, origin.chat)
            && contains(&self.authors, origin.author)
    }
}

/// Returns the approvers. By default, members of a chat who may write are not approvers.
fn approvers(rule: &Rule, origin: Origin<'_>) -> Vec<String> {
    match &rule.approvers {
        Some(list) => list.iter().map(|id| if id == AUTHOR { origin.author_id() } else { id.clone() }).collect(),
        None if origin.is_chat() => Vec::new(),
        None => vec![origin.author_id()],
    }
}

impl Origin<'_> {
    /// Returns the author as lists of approvers name it: `CHANNEL:AUTHOR`.
    pub(crate) fn author_id(self) -> String {
        format!("{}:{}", self.channel, self.author)
    }

    /// Whether the conversation is in a chat service, where strangers may write. The API and the page need a token.
    pub(crate) fn is_chat(self) -> bool {
        !matches!(self.channel, API | "web")
    }
}

/// An admin may select a higher permission than that of the configuration, through the API and where no rule applies.
/// It applies to messages of this admin only; others who send to the conversation keep their permission.
fn permission(config: &Config, rule: &Rule, conversation: &ConversationSettings, origin: Origin<'_>) -> PermissionMode {
    let given = rule.permission.unwrap_or(config.turn.permission);
    let is_limited = rule.permission.is_some() || origin.is_chat();
    let may_raise = !is_limited && conversation.permission_by.as_deref() == Some(origin.author);
    match conversation.permission {
        Some(selected) if may_raise || rank(selected) <= rank(given) => selected,
        _ => given,
    }
}

/// Orders permissions by what they permit.
fn rank(permission: PermissionMode) -> u8 {
    match permission {
        PermissionMode::ReadOnly => 0,
        PermissionMode::Ask => 1,
        PermissionMode::Edit => 2,
        PermissionMode::Full => 3,
    }
}

fn directory(config: &Config, rule: &Rule, selected: Option<&Path>, origin: Origin<'_>) -> PathBuf {
    let given = rule.directory.as_deref().unwrap_or(&config.turn.directory);
    let is_limited = rule.directory.is_some() || origin.is_chat();
    match selected {
        Some(selected) if !is_limited || is_below(selected, given) => selected.to_owned(),
        _ => given.to_owned(),
    }
}

/// Returns whether a path is a directory or below it. Only the texts of the paths are compared; both were resolved when
/// they were stored.
fn is_below(path: &Path, directory: &Path) -> bool {
    path.starts_with(directory) && !path.components().any(|part| part == Component::ParentDir)
}

#[cfg(test)]
mod tests;
