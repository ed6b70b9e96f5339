//! The credential that Codex 0.169.0 uses. Only `exec` reads `CODEX_API_KEY`; the app-server does not.

use serde::Deserialize;
use serde_json::Value;

use super::capabilities::{chosen_provider, provider_key};
use crate::agent::credential::CredentialPlaces;
use crate::agent::session_store::directory;
use teamster_types::event::{Credential, CredentialKind};
use teamster_types::request::{AgentInterface, RunRequest};

/// Returns the credential that the CLI finds. `None` if an argument of the caller may choose another provider.
pub(super) fn find(request: &RunRequest, places: &CredentialPlaces<'_>) -> Option<Credential> {
    #[derive(Deserialize)]
    struct Auth {
        #[serde(default, rename = "OPENAI_API_KEY")]
        key: Option<Value>,
        #[serde(default)]
        tokens: Option<Value>,
    }
    if !request.cli_args.is_empty() {
        return None;
    }
    let home = directory(places.variable, "CODEX_HOME", ".codex")?;
    let config = (places.file)(&home.join("config.toml")).unwrap_or_default();
    if chosen_provider(&config).is_some_and(|name| name != "openai") {
        let keys = provider_key(&config);
        return places.key(&keys.iter().map(String::as_str).collect::<Vec<_>>());
    }
    if let Some(key) = places.key(&["CODEX_API_KEY"]).filter(|_| request.interface == AgentInterface::Exec) {
        return Some(key);
    }
    let auth: Auth = places.json(&home.join("auth.json"))?;
    match auth {
        Auth { tokens: Some(Value::Object(_)), .. } => Some(Credential::new(CredentialKind::Login)),
        Auth { key: Some(Value::String(_)), .. } => Some(Credential::new(CredentialKind::ApiKey).named("auth.json")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::agent::codex::Codex;
    use crate::agent::credential::tests::found;
    use teamster_types::request::{AgentInterface, RunRequest};

    #[test]
    fn a_providers_key_the_key_of_exec_and_the_login_are_used_in_this_order() {
        let login = ("/h/.codex/auth.json", r#"{"OPENAI_API_KEY": null, "tokens": {"access_token": "s3cret"}}"#);
        let saved_key = ("/h/.codex/auth.json", r#"{"OPENAI_API_KEY": "s3cret"}"#);
        let provider = "model_provider = 'mine'\n[model_providers.mine]\nenv_key = 'MY_KEY'\n";
        let provider = ("/h/.codex/config.toml", provider);
        let variables = [("CODEX_API_KEY", "s3cret"), ("MY_KEY", "s3cret"), ("OPENAI_API_KEY", "s3cret")];
        let mut exec = RunRequest::new("x");
        exec.interface = AgentInterface::Exec;
        let request = RunRequest::new("x");
        assert_eq!(found(&Codex, &request, &variables, &[login]), "login");
        assert_eq!(found(&Codex, &request, &variables, &[saved_key]), "api_key auth.json");
        assert_eq!(found(&Codex, &exec, &variables, &[login]), "api_key CODEX_API_KEY");
        assert_eq!(found(&Codex, &exec, &variables, &[provider, login]), "api_key MY_KEY");
        assert_eq!(found(&Codex, &request, &variables[..1], &[provider, login]), "unknown");
        assert_eq!(found(&Codex, &request, &variables, &[]), "unknown");
        exec.cli_args = vec!["-cmodel_provider=other".into()];
        assert_eq!(found(&Codex, &exec, &variables, &[login]), "unknown");
    }
}
