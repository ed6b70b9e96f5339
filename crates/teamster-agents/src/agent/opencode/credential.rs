//! The credential that OpenCode 1.18.33 uses for the provider of the model: of the configuration, of a login, or of a variable.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::agent::credential::CredentialPlaces;
use crate::agent::session_store::directory;
use teamster_types::event::{Credential, CredentialKind};
use teamster_types::request::{ProjectTrust, RunRequest};

const FILES: [&str; 4] = ["opencode.jsonc", "opencode.json", ".opencode/opencode.jsonc", ".opencode/opencode.json"];

/// Returns the credential that the CLI finds. `None` if the provider is unknown, or if a configuration cannot be read here.
pub(super) fn find(request: &RunRequest, places: &CredentialPlaces<'_>) -> Option<Credential> {
    let documents = documents(request, places)?;
    let of_documents = || documents.iter().find_map(|document| document.get("model")?.as_str());
    let (provider, _) = request.model.as_deref().or_else(of_documents)?.split_once('/')?;
    let key = |document: &Value| {
        let key = document.get("provider")?.get(provider)?.get("options")?.get("apiKey")?.as_str()?;
        let variable = key.strip_prefix("{env:").and_then(|key| key.strip_suffix('}'));
        Some(variable.map_or_else(|| format!("provider.{provider}.options.apiKey"), str::to_owned))
    };
    if let Some(name) = documents.iter().find_map(key) {
        return Some(Credential::new(CredentialKind::ApiKey).named(name));
    }
    let logins: Option<Value> = match (places.variable)("OPENCODE_AUTH_CONTENT").filter(|text| !text.is_empty()) {
        Some(text) => serde_json::from_str(&text.to_string_lossy()).ok(),
        None => places.json(&directory(places.variable, "XDG_DATA_HOME", ".local/share")?.join("opencode/auth.json")),
    };
    match logins.as_ref().and_then(|logins| logins.get(provider)?.get("type")?.as_str()) {
        Some("oauth") => return Some(Credential::new(CredentialKind::Login)),
        Some(_) => return Some(Credential::new(CredentialKind::ApiKey).named("auth.json")),
        None => {}
    }
    let name: String =
        provider.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    let google = if provider == "google" { ["GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"] } else { [""; 2] };
    places.key(&[&[format!("{name}_API_KEY").as_str()][..], &google].concat())
}

/// Returns the configurations, the one that takes precedence first. `None` if one cannot be read here, such as with comments.
fn documents(request: &RunRequest, places: &CredentialPlaces<'_>) -> Option<Vec<Value>> {
    let variable = |name: &str| (places.variable)(name).filter(|value: &OsString| !value.is_empty());
    let mut texts: Vec<String> = Vec::new();
    texts.extend(variable("OPENCODE_CONFIG_CONTENT").map(|text| text.to_string_lossy().into_owned()));
    let mut add = |file: &Path| texts.extend((places.file)(file));
    let project = request.cwd.as_deref().filter(|_| request.project_trust == ProjectTrust::Trusted);
    for directory in project.into_iter().flat_map(Path::ancestors) {
        for name in FILES {
            add(&directory.join(name));
        }
    }
    if let Some(file) = variable("OPENCODE_CONFIG") {
        add(&PathBuf::from(file));
    }
    let global = directory(places.variable, "XDG_CONFIG_HOME", ".config")?.join("opencode");
    for name in ["opencode.jsonc", "opencode.json", "config.json"] {
        add(&global.join(name));
    }
    texts.iter().map(|text| serde_json::from_str(text).ok()).collect()
}

#[cfg(test)]
mod tests {
    use crate::agent::credential::tests::found;
    use crate::agent::opencode::OpenCode;
    use teamster_types::request::RunRequest;

    #[test]
    fn the_configuration_a_login_and_a_variable_are_used_in_this_order() {
        let mut request = RunRequest::new("x");
        request.cwd = Some("/p/q".into());
        request.model = Some("acme/large".into());
        let config = |key: &str| format!(r#"{{"provider": {{"acme": {{"options": {{"apiKey": "{key}"}}}}}}}}"#);
        let auth = |kind: &str| format!(r#"{{"acme": {{"type": "{kind}", "key": "s3cret"}}}}"#);
        let find = |files: &[(&str, String)]| {
            let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
            found(&OpenCode, &request, &[("ACME_API_KEY", "s3cret")], &files)
        };
        let auth_file = "/h/.local/share/opencode/auth.json";
        assert_eq!(find(&[]), "api_key ACME_API_KEY");
        assert_eq!(find(&[(auth_file, auth("api"))]), "api_key auth.json");
        assert_eq!(find(&[(auth_file, auth("oauth"))]), "login");
        let global = "/h/.config/opencode/opencode.json";
        assert_eq!(find(&[(global, config("{env:MY_KEY}")), (auth_file, auth("oauth"))]), "api_key MY_KEY");
        assert_eq!(find(&[("/p/opencode.json", config("s3cret"))]), "api_key provider.acme.options.apiKey");
        assert_eq!(find(&[(global, "// mine".to_owned())]), "unknown");
        let without_model = found(&OpenCode, &RunRequest::new("x"), &[("ACME_API_KEY", "s3cret")], &[]);
        assert_eq!(without_model, "unknown");
        let model = [(global, r#"{"model": "acme/small"}"#)];
        let of_config = found(&OpenCode, &RunRequest::new("x"), &[("ACME_API_KEY", "s3cret")], &model);
        assert_eq!(of_config, "api_key ACME_API_KEY");
    }
}
