//! Whose a key is: which variables carry credentials, and which of them are an agent's own.
//!
//! Facts of the tested versions. A request may have all keys withheld from an agent that are not its own.

use super::Capabilities;
use teamster_types::request::{Inherit, RequestError, RunRequest, env_name_matches};

/// Variables that carry credentials: of model vendors, clouds, code hosts and package registries. Withheld on request from
/// every agent whose own they are not; agents' own ones belong to it too.
pub const WITHHELD_KEYS: &[&str] = &[
    "*_API_KEY",
    "*_API_TOKEN",
    "*_ACCESS_TOKEN",
    "*_AUTH_TOKEN",
    "*_CLIENT_SECRET",
    "*_SECRET_KEY",
    "*_SECRET_ACCESS_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_SESSION_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_*",
    "AZURE_CLIENT_CERTIFICATE_*",
    "AZURE_FEDERATED_TOKEN_FILE",
    "AZURE_PASSWORD",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_CREDENTIALS",
    "GOOGLE_OAUTH_*",
    "AICORE_SERVICE_KEY",
    "CLARIFAI_PAT",
    "DATABRICKS_TOKEN",
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "SNOWFLAKE_CORTEX_PAT",
    "WATSONX_AI_APIKEY",
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "GH_ENTERPRISE_TOKEN",
    "GITHUB_ENTERPRISE_TOKEN",
    "GITHUB_PAT",
    "GITLAB_TOKEN",
    "CI_JOB_TOKEN",
    "ACTIONS_RUNTIME_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    "NPM_TOKEN",
    "NODE_AUTH_TOKEN",
    "CARGO_REGISTRY_TOKEN",
    "TWINE_PASSWORD",
    "DOCKER_PASSWORD",
    "VAULT_TOKEN",
];

/// Keys of an agent, and when they are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnKeys {
    /// In every run.
    Always(&'static [&'static str]),
    /// Where this variable is switched on: neither empty, `0` nor `false`.
    Switched(&'static str, &'static [&'static str]),
    /// The agent takes any vendor's keys: its own are those of the model's provider, whose variables begin with the first
    /// word of its name, in capitals. For a provider that is called otherwise in them, its first word and those names.
    OfProvider(&'static [(&'static str, &'static str)]),
}

impl Capabilities {
    /// Whether a variable is a key that this agent knows of.
    pub fn knows_key(&self, name: &str) -> bool {
        self.own_keys.iter().any(|keys| match keys {
            OwnKeys::Always(names) | OwnKeys::Switched(_, names) => is_any(names, name),
            OwnKeys::OfProvider(_) => false,
        })
    }

    /// Whether a variable is the agent's own key in this request. `switch` gives the value of a variable of the run.
    pub fn owns_key(&self, name: &str, request: &RunRequest, switch: impl Fn(&str) -> Option<String>) -> bool {
        self.own_keys.iter().any(|keys| match keys {
            OwnKeys::Always(names) => is_any(names, name),
            OwnKeys::Switched(by, names) => is_any(names, name) && switch(by).is_some_and(|value| is_on(&value)),
            OwnKeys::OfProvider(others) => provider(request).is_some_and(|provider| is_of(&provider, others, name)),
        })
    }

    /// Refuses to withhold keys where nobody knows which ones the agent needs.
    pub(super) fn check_keys(&self, agent: &str, request: &RunRequest) -> Result<(), RequestError> {
        let Inherit::WithholdKeys { keep } = &request.inherit else { return Ok(()) };
        if self.own_keys.is_empty() && keep.is_empty() {
            return Err(RequestError::Unsupported {
                agent: agent.to_owned(),
                option: "--withhold-keys",
                why: "nobody knows which keys it needs: name those that stay with --keep-key".to_owned(),
            });
        }
        let any_provider = self.own_keys.iter().any(|keys| matches!(keys, OwnKeys::OfProvider(_)));
        if any_provider && keep.is_empty() && provider(request).is_none() {
            return Err(RequestError::Unsupported {
                agent: agent.to_owned(),
                option: "--withhold-keys",
                why: "it takes any provider's key: name the model as PROVIDER/MODEL, or the keys that stay with --keep-key"
                    .to_owned(),
            });
        }
        Ok(())
    }
}

fn is_any(patterns: &[&str], name: &str) -> bool {
    patterns.iter().any(|pattern| env_name_matches(pattern, name))
}

fn is_on(value: &str) -> bool {
    !matches!(value.to_ascii_lowercase().as_str(), "" | "0" | "false")
}

/// The first word of the model's provider: `google` for `google-vertex/gemini`.
fn provider(request: &RunRequest) -> Option<String> {
    let (provider, _) = request.model.as_deref()?.split_once('/')?;
    let word = provider.split(|c: char| !c.is_ascii_alphanumeric()).next()?;
    (!word.is_empty()).then(|| word.to_ascii_lowercase())
}

fn is_of(provider: &str, others: &[(&str, &str)], name: &str) -> bool {
    let of_its_name = name.strip_prefix(&provider.to_ascii_uppercase()).is_some_and(|rest| rest.starts_with('_'));
    of_its_name || others.iter().any(|(other, pattern)| *other == provider && env_name_matches(pattern, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{Agent, claude::Claude, opencode::OpenCode};

    fn check(agent: &impl Agent, model: Option<&str>, keep: &[&str]) -> Result<(), String> {
        let mut request = RunRequest::new("x");
        request.model = model.map(str::to_owned);
        request.inherit = Inherit::WithholdKeys { keep: keep.iter().map(|name| (*name).to_owned()).collect() };
        let checked = agent.capabilities().unwrap().check(agent.name(), &request);
        checked.map(|_| ()).map_err(|error| error.to_string())
    }

    #[test]
    fn an_agent_that_takes_any_providers_key_must_be_told_whose_it_keeps() {
        let refused = "opencode does not support --withhold-keys: it takes any provider's key: name the model as \
                       PROVIDER/MODEL, or the keys that stay with --keep-key";
        assert_eq!(check(&OpenCode, None, &[]), Err(refused.to_owned()));
        assert_eq!(check(&OpenCode, Some("model"), &[]), Err(refused.to_owned()));
        assert_eq!(check(&OpenCode, Some("/model"), &[]), Err(refused.to_owned()));
        assert_eq!(check(&OpenCode, Some("lab/model"), &[]), Ok(()));
        assert_eq!(check(&OpenCode, None, &["LAB_API_KEY"]), Ok(()));
        assert_eq!(check(&Claude, None, &[]), Ok(()));
    }

    #[test]
    fn a_providers_keys_begin_with_the_first_word_of_its_name_or_are_listed() {
        let owns = |model: &str, name: &str| {
            let mut request = RunRequest::new("x");
            request.model = Some(model.to_owned());
            OpenCode.capabilities().unwrap().owns_key(name, &request, |_| None)
        };
        for (model, name, own) in [
            ("openai/gpt", "OPENAI_API_KEY", true),
            ("openai/gpt", "OPENAIX_API_KEY", false),
            ("open/gpt", "OPENAI_API_KEY", false),
            ("google-vertex-anthropic/x", "GOOGLE_APPLICATION_CREDENTIALS", true),
            ("google/x", "GEMINI_API_KEY", true),
            ("zai-coding-plan/glm", "ZHIPU_API_KEY", true),
            ("openrouter/anthropic/claude", "ANTHROPIC_API_KEY", false),
            ("openrouter/anthropic/claude", "OPENROUTER_API_KEY", true),
            ("any/x", "OPENCODE_AUTH_CONTENT", true),
        ] {
            assert_eq!(owns(model, name), own, "{model} {name}");
        }
    }
}
