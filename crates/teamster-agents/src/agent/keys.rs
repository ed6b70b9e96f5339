//! Credentials in the environment: which variables carry keys, and which of these keys are an agent's own.
//!
//! The lists are those of the tested versions. A request can withhold all keys that are not the agent's own.

use teamster_types::request::{Inherit, RequestError, RunRequest, env_name_matches};

/// Variables that carry credentials of model vendors, clouds, code hosts and package registries.
///
/// If a request withholds keys, these variables are withheld, and so are the own keys of other agents. The agent's own keys
/// are not.
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

/// Variables that carry an agent's own credentials, and the runs in which they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnKeys {
    /// In every run.
    Always(&'static [&'static str]),
    /// In runs where this variable is enabled: neither empty, `0` nor `false`.
    Switched(&'static str, &'static [&'static str]),
    /// The agent uses the keys of any vendor. Its own keys are those of the model's provider: the variables that start with
    /// the first word of the provider's name, in capitals. The list has further variables of a provider: the first word of
    /// its name, and a pattern.
    OfProvider(&'static [(&'static str, &'static str)]),
}

impl OwnKeys {
    /// Whether a variable is listed here.
    pub(super) fn lists(&self, name: &str) -> bool {
        match self {
            Self::Always(names) | Self::Switched(_, names) => is_any(names, name),
            Self::OfProvider(_) => false,
        }
    }

    /// Whether a variable is the agent's own key in this request. `value_of` returns the value of a variable of the run.
    pub(super) fn contain(&self, name: &str, request: &RunRequest, value_of: impl Fn(&str) -> Option<String>) -> bool {
        match self {
            Self::Always(names) => is_any(names, name),
            Self::Switched(switch, names) => is_any(names, name) && value_of(switch).is_some_and(|value| is_on(&value)),
            Self::OfProvider(others) => provider(request).is_some_and(|provider| is_of(&provider, others, name)),
        }
    }
}

/// Checks that the agent's own keys are known if the request withholds all others.
pub(super) fn check(own_keys: &[OwnKeys], agent: &str, request: &RunRequest) -> Result<(), RequestError> {
    let Inherit::WithholdKeys { keep } = &request.inherit else { return Ok(()) };
    let unsupported = |why: &str| {
        Err(RequestError::Unsupported { agent: agent.to_owned(), option: "inherit=withhold-keys", why: why.to_owned() })
    };
    if own_keys.is_empty() && keep.is_empty() {
        return unsupported("the keys that it needs are unknown: name the keys to keep in `inherit.keep`");
    }
    let any_provider = own_keys.iter().any(|keys| matches!(keys, OwnKeys::OfProvider(_)));
    if any_provider && keep.is_empty() && provider(request).is_none() {
        return unsupported(
            "it uses the key of any provider: give the model as PROVIDER/MODEL, or name the keys to keep in `inherit.keep`",
        );
    }
    Ok(())
}

fn is_any(patterns: &[&str], name: &str) -> bool {
    patterns.iter().any(|pattern| env_name_matches(pattern, name))
}

fn is_on(value: &str) -> bool {
    !matches!(value.to_ascii_lowercase().as_str(), "" | "0" | "false")
}

/// Returns the first word of the name of the model's provider: `google` for `google-vertex/gemini`.
fn provider(request: &RunRequest) -> Option<String> {
    let (provider, _) = request.model.as_deref()?.split_once('/')?;
    let word = provider.split(|c: char| !c.is_ascii_alphanumeric()).next()?;
    (!word.is_empty()).then(|| word.to_ascii_lowercase())
}

fn is_of(provider: &str, others: &[(&str, &str)], name: &str) -> bool {
    let has_its_name = name.strip_prefix(&provider.to_ascii_uppercase()).is_some_and(|rest| rest.starts_with('_'));
    has_its_name || others.iter().any(|(other, pattern)| *other == provider && env_name_matches(pattern, name))
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
    fn keys_cannot_be_withheld_from_an_agent_of_any_provider_unless_the_provider_is_known() {
        let refused = "opencode does not support inherit=withhold-keys: it uses the key of any provider: give the model \
                       as PROVIDER/MODEL, or name the keys to keep in `inherit.keep`";
        assert_eq!(check(&OpenCode, None, &[]), Err(refused.to_owned()));
        assert_eq!(check(&OpenCode, Some("model"), &[]), Err(refused.to_owned()));
        assert_eq!(check(&OpenCode, Some("/model"), &[]), Err(refused.to_owned()));
        assert_eq!(check(&OpenCode, Some("acme/model"), &[]), Ok(()));
        assert_eq!(check(&OpenCode, None, &["ACME_API_KEY"]), Ok(()));
        assert_eq!(check(&Claude, None, &[]), Ok(()));
    }

    #[test]
    fn a_providers_keys_start_with_the_first_word_of_its_name_or_are_listed() {
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
