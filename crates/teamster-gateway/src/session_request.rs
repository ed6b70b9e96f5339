//! The request of an agent's session, as far as the agent supports it.
//!
//! A gateway has one configuration for all agents, and each agent lacks something. An option that only limits or
//! extends a turn is omitted if the agent does not support it. An option that protects the machine is never omitted:
//! without support for it, the turn does not start. The only exception are literal prompts, for an agent that the
//! configuration names.

use std::fmt;
use std::num::NonZeroU32;

use teamster::RunRequest;
use teamster::agent::{Agent, Feature, Support};
use teamster::request::{Inherit, McpServer, Permissions, ProjectTrust, PromptMode};

use crate::config::{Config, ConversationSettings, Origin, TurnSettings, resolve};

/// The limit of model calls, if the configuration has none.
const MAX_TURNS: u32 = 25;

/// An option that a session omits because its agent does not support it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Omission {
    /// The limit of model calls. With it, each turn would be a separate process, which cannot request permission.
    MaxTurns,
    /// The rules of allowed tools. The tools need permission then.
    AllowTools,
    /// The tools of the gateway.
    Tools,
    /// Literal prompts: it is unknown whether the agent interprets a prompt. Only for an agent that the configuration names.
    LiteralPrompts,
}

impl fmt::Display for Omission {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::MaxTurns => "max_turns is not used: the agent cannot limit the model calls of a turn in a session",
            Self::AllowTools => {
                "allow_tools is not used: the agent cannot enforce the rules, so its tools need permission"
            }
            Self::LiteralPrompts => {
                "prompts may not be literal: the agent may take a message that starts with `/` or `@` as a command"
            }
            Self::Tools => {
                "the tools of the gateway are not offered: the agent starts no MCP server in a directory that is not \
                 trusted (project_trust = \"trusted\" trusts it)"
            }
        })
    }
}

/// Returns the request of a session, without instructions and tools.
pub(crate) fn session_request(config: &Config, settings: &TurnSettings) -> RunRequest {
    let mut request = RunRequest::session()
        .with_cwd(&settings.directory)
        .with_permissions(Permissions::new(settings.permission).with_allow(settings.allow_tools.clone()))
        .with_prompt_mode(PromptMode::Literal)
        .with_project_trust(config.turn.project_trust)
        .with_inherit(Inherit::WithholdKeys { keep: config.turn.keep_keys.clone() });
    request.model.clone_from(&settings.model);
    request.cli_path.clone_from(&settings.cli_path);
    request.max_turns = config.turn.max_turns.or(NonZeroU32::new(MAX_TURNS));
    request.max_budget_usd = settings.budget_usd();
    request.limits.answer = config.timing.permission_timeout;
    request.limits.deadline = config.turn.deadline.unwrap_or_default();
    request
}

/// Removes what the agent does not support, and returns what it was.
pub(crate) fn fit(agent: &dyn Agent, config: &Config, request: &mut RunRequest) -> Vec<Omission> {
    let mut omissions = Vec::new();
    if refuses(agent, Feature::LiteralPrompt) && is_named(config, agent.name()) {
        request.prompt_mode = PromptMode::default();
        omissions.push(Omission::LiteralPrompts);
    }
    if refuses(agent, Feature::AllowTools) && !request.permissions.allow.is_empty() {
        request.permissions.allow.clear();
        omissions.push(Omission::AllowTools);
    }
    if refuses(agent, Feature::MaxTurns) && request.max_turns.take().is_some() {
        omissions.push(Omission::MaxTurns);
    }
    let mut omit = |omission, change: fn(&mut RunRequest), is_better: fn(&dyn Agent, &RunRequest) -> bool| {
        let mut without = request.clone();
        change(&mut without);
        if without != *request && !is_better(agent, request) && is_better(agent, &without) {
            *request = without;
            omissions.push(omission);
        }
    };
    omit(Omission::AllowTools, |request| request.permissions.allow.clear(), is_supported);
    omit(Omission::MaxTurns, |request| request.max_turns = None, is_supported);
    omit(Omission::MaxTurns, |request| request.max_turns = None, is_live);
    omissions
}

/// Returns whether the configuration names an agent, so that the operator has selected it.
fn is_named(config: &Config, name: &str) -> bool {
    let mut names = config.rules.iter().filter_map(|rule| rule.agent.as_deref()).chain([config.turn.agent.as_str()]);
    names.any(|named| named.eq_ignore_ascii_case(name))
}

/// Removes the instructions from a request whose agent accepts them only in the prompt.
pub(crate) fn instructions_of_prompt(agent: &dyn Agent, request: &mut RunRequest) -> Option<String> {
    if refuses(agent, Feature::AppendSystemPrompt) { request.append_system_prompt.take() } else { None }
}

fn refuses(agent: &dyn Agent, feature: Feature) -> bool {
    agent.capabilities().is_some_and(|known| matches!(known.support(feature), Support::Refused(_)))
}

/// Returns why a conversation cannot select an agent: the agent does not support an option that protects the machine.
pub(crate) fn refusal(agent: &dyn Agent, config: &Config) -> Option<String> {
    let name = agent.name();
    if refuses(agent, Feature::LiteralPrompt) && !is_named(config, name) {
        return Some(format!(
            "the agent {name} may interpret prompts: only the operator can select it, in the configuration"
        ));
    }
    if refuses(agent, Feature::UntrustedProject) && config.turn.project_trust == ProjectTrust::Untrusted {
        return Some(format!(
            "the agent {name} may use the configuration of its directory: the operator must set serve.project_trust = \
             \"trusted\" for it"
        ));
    }
    None
}

/// Returns whether the agent supports a request.
pub(crate) fn is_supported(agent: &dyn Agent, request: &RunRequest) -> bool {
    if agent.capabilities().is_some_and(|capabilities| capabilities.check(agent.name(), request).is_err()) {
        return false;
    }
    match agent.plan_session(request) {
        Ok(Some(_)) => true,
        Ok(None) => {
            let mut run = request.clone();
            "x".clone_into(&mut run.prompt);
            agent.plan(&run).is_ok()
        }
        Err(_) => false,
    }
}

/// Returns whether the agent serves many turns with one process, which can request permission.
fn is_live(agent: &dyn Agent, request: &RunRequest) -> bool {
    is_supported(agent, request) && matches!(agent.plan_session(request), Ok(Some(_)))
}

/// Returns the options that sessions of an agent omit.
pub fn omissions(agent: &dyn Agent, config: &Config) -> Vec<Omission> {
    let origin = Origin { channel: "http", chat: "", author: "" };
    let Some(settings) = resolve(config, Some(agent.name()), &ConversationSettings::default(), origin) else {
        return Vec::new();
    };
    let mut request = session_request(config, &settings);
    let mut omissions = fit(agent, config, &mut request);
    if config.tools.enabled && is_supported(agent, &request) {
        request.mcp_servers.insert("teamster".to_owned(), McpServer::http("http://127.0.0.1:1/mcp"));
        if !is_supported(agent, &request) {
            omissions.push(Omission::Tools);
        }
    }
    omissions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Rule;
    use teamster::Registry;

    fn of(name: &str, change: impl FnOnce(&mut Config)) -> Vec<Omission> {
        let mut config = Config::default();
        config.turn.agent = name.to_owned();
        config.turn.model = Some("acme/large".to_owned());
        config.turn.directory = std::env::temp_dir();
        change(&mut config);
        omissions(&*Registry::default().get(name).unwrap(), &config)
    }

    #[test]
    fn every_agent_keeps_a_live_session_and_only_gemini_cli_lacks_the_tools() {
        assert_eq!(of("claude", |_| {}), []);
        assert_eq!(of("codex", |_| {}), []);
        assert_eq!(of("opencode", |_| {}), []);
        assert_eq!(of("gemini", |_| {}), [Omission::MaxTurns, Omission::Tools]);
    }

    #[test]
    fn gemini_cli_gets_the_tools_in_a_trusted_directory() {
        assert_eq!(of("gemini", |config| config.turn.project_trust = ProjectTrust::Trusted), [Omission::MaxTurns]);
        let disabled = |config: &mut Config| config.tools.enabled = false;
        assert_eq!(of("gemini", disabled), [Omission::MaxTurns]);
    }

    #[test]
    fn messages_are_literal_the_project_is_untrusted_and_keys_of_others_are_withheld() {
        let config = Config::default();
        for channel in ["http", "discord"] {
            let origin = Origin { channel, chat: "c", author: "mallory" };
            let settings = resolve(&config, None, &ConversationSettings::default(), origin).unwrap();
            let request = session_request(&config, &settings);
            assert_eq!(request.prompt_mode, PromptMode::Literal);
            assert_eq!(request.project_trust, ProjectTrust::Untrusted);
            assert_eq!(request.inherit, Inherit::WithholdKeys { keep: Vec::new() });
            assert!(request.permissions.allow.is_empty());
        }
    }

    #[test]
    fn what_protects_the_machine_is_not_left_out() {
        let agent = Registry::default().get("acp").unwrap();
        let config = Config::default();
        let settings = resolve(
            &config,
            Some("acp"),
            &ConversationSettings::default(),
            Origin { channel: "http", chat: "", author: "" },
        );
        let mut request = session_request(&config, &settings.unwrap());
        fit(&*agent, &config, &mut request);
        assert_eq!(request.project_trust, ProjectTrust::Untrusted);
        assert!(!is_supported(&*agent, &request));
    }

    #[test]
    fn an_agent_that_speaks_acp_can_run_if_the_operator_names_and_trusts_it() {
        let registry = Registry::default();
        let acp = registry.get("acp").unwrap();
        let mut config = Config::default();
        assert!(refusal(&*acp, &config).unwrap().contains("only the operator"));
        config.rules.push(Rule {
            channel: Some("discord".to_owned()),
            agent: Some("ACP".to_owned()),
            ..Rule::default()
        });
        assert!(refusal(&*acp, &config).unwrap().contains("project_trust"));
        config.turn.project_trust = ProjectTrust::Trusted;
        config.turn.keep_keys = vec!["ACME_KEY".to_owned()];
        config.turn.directory = "/work".into();
        assert_eq!(refusal(&*acp, &config), None);
        (config.turn.agent, config.turn.cli_path) = ("acp".to_owned(), Some("an-agent".into()));
        let origin = Origin { channel: "http", chat: "", author: "" };
        let settings = resolve(&config, Some("acp"), &ConversationSettings::default(), origin).unwrap();
        let mut request = session_request(&config, &settings);
        request.append_system_prompt = Some("Be brief.".to_owned());
        assert_eq!(instructions_of_prompt(&*acp, &mut request).as_deref(), Some("Be brief."));
        assert_eq!(fit(&*acp, &config, &mut request), [Omission::LiteralPrompts, Omission::MaxTurns]);
        assert!(is_supported(&*acp, &request));
        for name in ["claude", "codex", "gemini", "opencode"] {
            assert_eq!(refusal(&*registry.get(name).unwrap(), &Config::default()), None, "{name}");
        }
    }
}
