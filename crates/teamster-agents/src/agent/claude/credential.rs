//! The credential that Claude Code 2.1.197 uses. With `-p` a key in a variable takes precedence over a login.

use std::path::Path;

use serde::Deserialize;

use crate::agent::credential::CredentialPlaces;
use crate::agent::session_store::directory;
use teamster_types::event::{Credential, CredentialKind};

const CLOUDS: &[&str] = &[
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_MANTLE",
    "CLAUDE_CODE_USE_ANTHROPIC_AWS",
];

/// Returns the credential that `apiKeySource` of `system/init` names. It is `none` with a login, a token or a cloud.
pub(super) fn reported(source: &str) -> Credential {
    match source {
        "none" => Credential::new(CredentialKind::Unknown),
        source => Credential::new(CredentialKind::ApiKey).named(source),
    }
}

/// Returns the credential that the CLI finds.
pub(super) fn find(places: &CredentialPlaces<'_>) -> Option<Credential> {
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Settings {
        api_key_helper: Option<String>,
    }
    if let Some(cloud) = CLOUDS.iter().find(|name| places.enables(name)) {
        return Some(Credential::new(CredentialKind::Cloud).named(*cloud));
    }
    if let Some(key) = places.key(&["ANTHROPIC_API_KEY"]) {
        return Some(key);
    }
    let tokens = ["ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"];
    if let Some(token) = tokens.iter().find(|name| places.has(name)) {
        return Some(Credential::new(CredentialKind::Token).named(*token));
    }
    let home = directory(places.variable, "CLAUDE_CONFIG_DIR", ".claude")?;
    let settings: Settings = places.json(&home.join("settings.json")).unwrap_or_default();
    if settings.api_key_helper.is_some() {
        return Some(Credential::new(CredentialKind::ApiKey).named("apiKeyHelper"));
    }
    let has_login = |file: &Path| (places.file)(file).is_some_and(|content| content.contains("claudeAiOauth"));
    has_login(&home.join(".credentials.json")).then(|| Credential::new(CredentialKind::Login))
}

#[cfg(test)]
mod tests {
    use crate::agent::claude::Claude;
    use crate::agent::credential::tests::found;
    use teamster_types::request::RunRequest;

    #[test]
    fn a_cloud_a_key_a_token_a_helper_and_a_login_are_used_in_this_order() {
        let login = ("/h/.claude/.credentials.json", r#"{"claudeAiOauth": {"accessToken": "s3cret"}}"#);
        let helper = ("/h/.claude/settings.json", r#"{"apiKeyHelper": "print-key"}"#);
        let found = |variables: &[(&str, &str)], files: &[(&str, &str)]| {
            found(&Claude, &RunRequest::new("x"), variables, files)
        };
        let key = ("ANTHROPIC_API_KEY", "s3cret");
        assert_eq!(found(&[key], &[login]), "api_key ANTHROPIC_API_KEY");
        assert_eq!(found(&[("CLAUDE_CODE_USE_BEDROCK", "1"), key], &[login]), "cloud CLAUDE_CODE_USE_BEDROCK");
        assert_eq!(found(&[("CLAUDE_CODE_USE_BEDROCK", "0"), key], &[login]), "api_key ANTHROPIC_API_KEY");
        assert_eq!(found(&[("CLAUDE_CODE_OAUTH_TOKEN", "s3cret")], &[helper]), "token CLAUDE_CODE_OAUTH_TOKEN");
        assert_eq!(found(&[("ANTHROPIC_API_KEY", "")], &[helper, login]), "api_key apiKeyHelper");
        assert_eq!(found(&[], &[login]), "login");
        assert_eq!(found(&[("CLAUDE_CONFIG_DIR", "/other")], &[login]), "unknown");
        assert_eq!(found(&[], &[]), "unknown");
    }
}
