//! Rules: which agent, model, permission and directory a chat or an author gets.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use teamster::request::PermissionMode;

use super::Config;

/// A rule. A field that is `None` matches everything, or selects nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// Matches this channel.
    pub channel: Option<String>,
    /// Matches these chats.
    pub chats: Option<Vec<String>>,
    /// Matches these authors.
    pub authors: Option<Vec<String>>,
    /// The agent.
    pub agent: Option<String>,
    /// The model.
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
    /// Who may answer permission requests. The default is the author of the message.
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
    /// The working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// Instructions, appended to all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Values of the caller, which the gateway returns and does not interpret.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub metadata: serde_json::Map<String, serde_json::Value>,
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
    /// Who may answer permission requests: ids of authors, as `CHANNEL:AUTHOR`.
    pub approvers: Vec<String>,
}

impl TurnSettings {
    /// Returns whether a session with these settings can be used for a turn with the others.
    pub fn opens_like(&self, other: &Self) -> bool {
        self.agent == other.agent
            && self.cli_path == other.cli_path
            && self.model == other.model
            && self.permission == other.permission
            && self.allow_tools == other.allow_tools
            && self.directory == other.directory
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
pub fn resolve(
    config: &Config,
    agent: Option<&str>,
    conversation: &ConversationSettings,
    origin: Origin<'_>,
) -> Option<TurnSettings> {
    let matches = |wanted: &Option<Vec<String>>, value: &str| {
        wanted.as_ref().is_none_or(|list| list.iter().any(|item| item == value))
    };
    let rule = config.rules.iter().find(|rule| {
        rule.channel.as_deref().is_none_or(|channel| channel == origin.channel)
            && matches(&rule.chats, origin.chat)
            && matches(&rule.authors, origin.author)
    });
    let none = Rule::default();
    let rule = rule.unwrap_or(&none);
    if rule.reject {
        return None;
    }
    let defaults = &config.turn;
    let agent = agent.map(str::to_owned).or_else(|| rule.agent.clone()).unwrap_or_else(|| defaults.agent.clone());
    let is_default = agent == defaults.agent;
    Some(TurnSettings {
        cli_path: defaults.cli_path.clone().filter(|_| is_default),
        model: conversation
            .model
            .clone()
            .or_else(|| rule.model.clone())
            .or_else(|| defaults.model.clone().filter(|_| is_default)),
        permission: conversation.permission.or(rule.permission).unwrap_or(defaults.permission),
        allow_tools: rule.allow_tools.clone().unwrap_or_else(|| defaults.allow_tools.clone()),
        directory: conversation
            .directory
            .clone()
            .or_else(|| rule.directory.clone())
            .unwrap_or_else(|| defaults.directory.clone()),
        instructions: [&config.instructions.text, &rule.instructions, &conversation.instructions]
            .into_iter()
            .flatten()
            .cloned()
            .collect(),
        daily_budget: rule
            .daily_budget_usd
            .map(|limit| (format!("author:{}:{}", origin.channel, origin.author), limit)),
        approvers: rule.approvers.clone().unwrap_or_else(|| vec![format!("{}:{}", origin.channel, origin.author)]),
        agent,
    })
}
