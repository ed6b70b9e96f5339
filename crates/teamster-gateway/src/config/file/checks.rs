//! Checks of values that need the machine or the registry of agents: agents, directories, files and rules.

use std::path::{Path, PathBuf};

use teamster::Registry;
use teamster::agent::rules::ToolRules;
use teamster::request::Permissions;

use super::channel_names::ChannelNames;
use super::reader::suggestion;
use crate::channels::services;
use crate::config::cost::without_cost;
use crate::config::rules::{AUTHOR, EVERYONE};
use crate::config::separation::conflicts;
use crate::config::{Config, Rule};

/// What precedes the id of a token in a list of approvers.
const TOKEN: &str = "token";

/// A problem with the value of a key, such as `limits.max_running` or `rules.0.agent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyProblem {
    /// The path of the key.
    pub key: String,
    /// What is wrong, and how to correct it.
    pub problem: String,
}

/// The problems so far.
#[derive(Debug, Default)]
pub(super) struct Checks {
    problems: Vec<KeyProblem>,
}

impl Checks {
    pub(super) fn add(&mut self, key: &str, problem: String) {
        self.problems.push(KeyProblem { key: key.to_owned(), problem });
    }

    /// Returns the value if there is no problem.
    pub(super) fn result<T>(self, value: T) -> Result<T, Vec<KeyProblem>> {
        if self.problems.is_empty() { Ok(value) } else { Err(self.problems) }
    }

    pub(super) fn agent(&mut self, key: &str, name: &str, registry: &Registry) {
        if registry.get(name).is_err() {
            let known: Vec<_> = registry.names().collect();
            let nearest = suggestion(name, known.iter().copied());
            self.add(key, format!("unknown agent {name:?}{nearest}; valid are: {}", known.join(", ")));
        }
    }

    /// Checks the directories of agents, and replaces each with its real path.
    pub(super) fn directories(&mut self, config: &mut Config) {
        self.resolve("directory", &mut config.turn.directory);
        for (index, root) in config.roots.iter_mut().enumerate() {
            self.resolve(&format!("roots.{index}"), root);
        }
    }

    fn resolve(&mut self, key: &str, directory: &mut PathBuf) {
        let problem = match directory.canonicalize() {
            Ok(real) if real.is_dir() => {
                *directory = real;
                return;
            }
            Ok(_) => "it is not a directory".to_owned(),
            Err(error) => error.to_string(),
        };
        self.add(key, format!("cannot use {}: {problem}", directory.to_string_lossy()));
    }

    /// Checks that the files exist and can be read.
    pub(super) fn files(&mut self, config: &Config) {
        if let Some(tls) = &config.tls {
            self.readable("tls.certificate", &tls.certificate);
            self.readable("tls.key", &tls.key);
        }
        for (index, file) in config.instructions.files.iter().enumerate() {
            self.readable(&format!("instructions.files.{index}"), file);
        }
    }

    /// Checks that agents do not work where the gateway keeps its data and secrets.
    pub(super) fn separation(&mut self, config: &Config, store: &Path) {
        let store = Some(store).filter(|store| !store.as_os_str().is_empty());
        for (key, problem) in conflicts(config, store) {
            self.add(&key, problem);
        }
    }

    fn readable(&mut self, key: &str, file: &Path) {
        let problem = match std::fs::File::open(file).and_then(|file| file.metadata()) {
            Ok(metadata) if metadata.is_file() => return,
            Ok(_) => "it is not a file".to_owned(),
            Err(error) => error.to_string(),
        };
        self.add(key, format!("cannot read {}: {problem}", file.to_string_lossy()));
    }

    pub(super) fn rules(&mut self, config: &mut Config, registry: &Registry) {
        let mut rules = std::mem::take(&mut config.rules);
        let catches_all =
            rules.iter().position(|rule| rule.channel.is_none() && rule.chats.is_none() && rule.authors.is_none());
        for (index, rule) in rules.iter_mut().enumerate() {
            let key = format!("rules.{index}");
            self.rule(&key, rule, config, registry);
            if catches_all.is_some_and(|first| first < index) {
                self.add(&key, "a rule before this one matches every message: put that one at the end".to_owned());
            }
        }
        config.rules = rules;
    }

    pub(super) fn hooks(&mut self, config: &Config) {
        for (index, hook) in config.hooks.iter().enumerate() {
            if let Err(error) = hook.check() {
                self.add(&format!("hooks.{index}.{}", error.key), format!("it {}", error.problem));
            }
            if config.hooks.iter().take(index).any(|earlier| earlier.name == hook.name) {
                self.add(&format!("hooks.{index}.name"), format!("another hook has the name {:?}", hook.name));
            }
        }
    }

    pub(super) fn webhooks(&mut self, config: &Config) {
        for (index, webhook) in config.webhooks.iter().enumerate() {
            let key = format!("webhooks.{index}");
            if config.webhooks.iter().take(index).any(|earlier| earlier.name == webhook.name) {
                self.add(&format!("{key}.name"), format!("another webhook has the name {:?}", webhook.name));
            }
            for (name, error) in webhook.problems() {
                self.add(&format!("{key}.{name}"), error.to_string());
            }
        }
    }

    /// Checks the chats to which agents may send.
    pub(super) fn other_chats(&mut self, config: &Config) {
        for (index, chat) in config.tools.other_chats.iter().enumerate() {
            let key = format!("tools.other_chats.{index}");
            match chat.split_once(':') {
                Some((channel, chat)) if !channel.is_empty() && !chat.is_empty() => self.channel(&key, channel, config),
                _ => self.add(&key, format!("{chat:?} must be CHANNEL:CHAT, or CHANNEL:* for all chats of a channel")),
            }
        }
    }

    /// Checks the syntax of rules for tools. Each invalid entry is a problem of its own.
    pub(super) fn tool_rules(&mut self, key: &str, rules: &[String]) {
        for (index, rule) in rules.iter().enumerate() {
            if let Err(error) = ToolRules::read(&Permissions::default().with_allow([rule.as_str()]), None) {
                self.add(&format!("{key}.{index}"), error.to_string());
            }
        }
    }

    /// Checks the channel of a rule, of an approver or of a chat. One that does not exist would match nothing.
    fn channel(&mut self, key: &str, name: &str, config: &Config) {
        if let Some(problem) = ChannelNames::of(config).problem(name) {
            self.add(key, problem);
        }
    }

    /// Checks the tables of chat services.
    pub(super) fn services(&mut self, config: &Config) {
        for (key, problem) in services::problems(config) {
            self.add(&key, problem);
        }
    }

    fn rule(&mut self, key: &str, rule: &mut Rule, config: &Config, registry: &Registry) {
        if let Some(agent) = &rule.agent {
            self.agent(&format!("{key}.agent"), agent, registry);
        }
        self.tool_rules(&format!("{key}.allow_tools"), rule.allow_tools.as_deref().unwrap_or_default());
        if let Some(channel) = &rule.channel {
            self.channel(&format!("{key}.channel"), channel, config);
        }
        for (name, list) in [("chats", &rule.chats), ("authors", &rule.authors), ("approvers", &rule.approvers)] {
            if list.as_ref().is_some_and(Vec::is_empty) {
                self.add(
                    &format!("{key}.{name}"),
                    "the list is empty, so it matches nothing: remove it or fill it".to_owned(),
                );
            }
        }
        if rule.authors.is_some() && rule.channel.is_none() {
            let problem = "set channel too: another channel may have an author with the same id";
            self.add(&format!("{key}.authors"), problem.to_owned());
        }
        for (index, approver) in rule.approvers.iter().flatten().enumerate() {
            let key = format!("{key}.approvers.{index}");
            match approver.split_once(':') {
                Some((TOKEN, _)) => {}
                Some((channel, _)) => self.channel(&key, channel, config),
                None if approver == EVERYONE || approver == AUTHOR => {}
                None => self.add(&key, format!("{approver:?} must be CHANNEL:AUTHOR, token:ID, author or *")),
            }
        }
        if rule.daily_budget_usd.is_some_and(|budget| !budget.is_finite() || budget < 0.0) {
            self.add(&format!("{key}.daily_budget_usd"), "it must be 0 or more".to_owned());
        }
        let agent = rule.agent.as_ref().unwrap_or(&config.turn.agent);
        if let (Some(_), Some(problem)) = (rule.daily_budget_usd, without_cost(registry, agent)) {
            self.add(&format!("{key}.daily_budget_usd"), format!("{problem}: set the rule's agent to one that does"));
        }
        if rule.reject && *rule != rejection(rule) {
            self.add(&format!("{key}.reject"), "a rule that rejects messages can select nothing else".to_owned());
        }
        if let Some(directory) = &mut rule.directory {
            let key = format!("{key}.directory");
            let known = self.problems.len();
            self.resolve(&key, directory);
            let mut roots = config.roots.iter().chain([&config.turn.directory]);
            if self.problems.len() == known && !roots.any(|root| directory.starts_with(root)) {
                let text = directory.to_string_lossy();
                self.add(&key, format!("{text} must be below serve.directory or one of serve.roots"));
            }
        }
    }
}

/// Returns the rule that rejects the same messages.
fn rejection(rule: &Rule) -> Rule {
    Rule {
        channel: rule.channel.clone(),
        chats: rule.chats.clone(),
        authors: rule.authors.clone(),
        reject: true,
        ..Rule::default()
    }
}
