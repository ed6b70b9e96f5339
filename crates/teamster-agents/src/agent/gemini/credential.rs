//! The credential that Gemini CLI 0.61.0 uses: by the login method in the settings, or else by the variables.

use std::path::PathBuf;

use serde_json::Value;

use super::settings::login_of_variables;
use crate::agent::credential::CredentialPlaces;
use teamster_types::event::{Credential, CredentialKind};

/// Returns the credential that the CLI finds.
pub(super) fn find(places: &CredentialPlaces<'_>) -> Option<Credential> {
    let home = (places.variable)("GEMINI_CLI_HOME").or_else(|| (places.variable)("HOME"))?;
    let file = PathBuf::from(home).join(".gemini/settings.json");
    let selected = match (places.file)(&file) {
        // Settings that cannot be read here, such as with comments, may select a method.
        Some(_) => {
            let settings: Value = places.json(&file)?;
            settings.pointer("/security/auth/selectedType").and_then(Value::as_str).map(str::to_owned)
        }
        None => None,
    };
    let of_variables = || login_of_variables(places.variable).map(str::to_owned);
    match selected.or_else(of_variables)?.as_str() {
        "oauth-personal" => Some(Credential::new(CredentialKind::Login)),
        "gemini-api-key" => places.key(&["GEMINI_API_KEY"]),
        "vertex-ai" => Some(places.key(&["GOOGLE_API_KEY"]).unwrap_or_else(|| Credential::new(CredentialKind::Cloud))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::agent::credential::tests::found;
    use crate::agent::gemini::Gemini;
    use teamster_types::request::RunRequest;

    #[test]
    fn the_settings_select_the_credential_before_the_variables() {
        let settings = |selected: &str| format!(r#"{{"security": {{"auth": {{"selectedType": "{selected}"}}}}}}"#);
        let find = |variables: &[(&str, &str)], settings: Option<String>| {
            let files: Vec<_> = settings.iter().map(|text| ("/h/.gemini/settings.json", text.as_str())).collect();
            found(&Gemini, &RunRequest::new("x"), variables, &files)
        };
        let key = ("GEMINI_API_KEY", "s3cret");
        assert_eq!(find(&[key], None), "api_key GEMINI_API_KEY");
        assert_eq!(find(&[key], Some("{}".into())), "api_key GEMINI_API_KEY");
        assert_eq!(find(&[key], Some(settings("oauth-personal"))), "login");
        assert_eq!(find(&[], Some(settings("gemini-api-key"))), "unknown");
        assert_eq!(find(&[("GOOGLE_GENAI_USE_GCA", "true"), key], None), "login");
        assert_eq!(find(&[("GOOGLE_GENAI_USE_VERTEXAI", "true")], None), "cloud");
        let vertex = [("GOOGLE_GENAI_USE_VERTEXAI", "true"), ("GOOGLE_API_KEY", "s3cret")];
        assert_eq!(find(&vertex, None), "api_key GOOGLE_API_KEY");
        assert_eq!(find(&[key], Some("// mine\n{}".into())), "unknown");
    }
}
