//! The settings of a run: a merged copy of the user's settings, in a shadow home.
//!
//! MCP servers, the limit of turns, the retention of sessions and folder trust exist only in the settings. The CLI's folder in the
//! shadow home contains links to the user's other files: login, commands, extensions and sessions.

use serde_json::{Map, Value, json};

use super::error::unsupported;
use super::mcp;
use crate::agent::mcp::Names;
use crate::agent::session_store::Variables;
use crate::launch::{ConditionalDefaults, JsonMerge, ShadowEntry, ShadowHome};
use teamster_types::request::{McpDelivery, ProjectTrust, RequestError, RunRequest};

/// The name of the shadow home among the private files.
pub(super) const SHADOW_HOME: &str = "home";

/// The login method by environment variable, in the CLI's order for runs. Without it, a base URL alone makes the CLI select a method
/// that it then rejects. When a session is loaded, the CLI ignores these variables.
const LOGINS: &[(&str, Option<&str>, &str)] = &[
    ("GOOGLE_GENAI_USE_GCA", Some("true"), "oauth-personal"),
    ("GOOGLE_GENAI_USE_VERTEXAI", Some("true"), "vertex-ai"),
    ("GOOGLE_GEMINI_BASE_URL", None, "gemini-api-key"),
    ("GEMINI_API_KEY", None, "gemini-api-key"),
];

pub(super) fn shadow_home(
    request: &RunRequest,
    names: &Names,
    command: Option<(&'static str, ShadowEntry)>,
) -> Result<ShadowHome, RequestError> {
    let settings = ShadowEntry::Merge(JsonMerge {
        overrides: settings(request, names)?,
        replaced: &["mcpServers"],
        defaults: LOGINS.iter().map(login).collect(),
    });
    let mut entries = vec![
        ("settings.json", settings),
        // The CLI writes it by renaming, which would replace a link. The folders also contain the project of each folder.
        ("projects.json", ShadowEntry::Copy),
    ];
    if let Some(text) = &request.append_system_prompt {
        let text = prevent_imports(text);
        entries.push(("GEMINI.md", ShadowEntry::Append(format!("\n\n{text}"))));
    }
    entries.extend(command);
    Ok(ShadowHome {
        name: SHADOW_HOME,
        homes: &["GEMINI_CLI_HOME", "HOME"],
        folder: ".gemini",
        kept: &["tmp", "history"],
        entries,
    })
}

/// Returns the text with an invisible character (U+2060) before each `@path` that would import a file.
///
/// In GEMINI.md, the CLI replaces `@path` by a file or by an error, if white space precedes it and the path starts with a
/// letter, `.` or `/`.
fn prevent_imports(text: &str) -> String {
    let mut prevented = String::with_capacity(text.len());
    let mut after_space = true;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let starts_path = |next: &char| matches!(next, '.' | '/') || next.is_ascii_alphabetic();
        if character == '@' && after_space && characters.peek().is_some_and(starts_path) {
            prevented.push('\u{2060}');
        }
        prevented.push(character);
        after_space = character.is_whitespace();
    }
    prevented
}

/// Returns the login method that the variables select.
pub(super) fn login_of_variables(value: Variables<'_>) -> Option<&'static str> {
    let is_set = |name: &str, wanted: Option<&str>| {
        value(name).is_some_and(|value| wanted.map_or(!value.is_empty(), |wanted| value == wanted))
    };
    LOGINS.iter().find(|(name, wanted, _)| is_set(name, *wanted)).map(|(.., login)| *login)
}

fn login(&(variable, value, login): &(&'static str, Option<&'static str>, &'static str)) -> ConditionalDefaults {
    ConditionalDefaults { variable, value, values: json!({"security": {"auth": {"selectedType": login}}}) }
}

fn settings(request: &RunRequest, names: &Names) -> Result<Value, RequestError> {
    // The cleanup after a resumed session deletes the session, and the one at a concurrent start deletes a new session.
    let mut settings = Map::new();
    let mut set = |section: &str, values: Value| settings.insert(section.to_owned(), values);
    set("general", json!({"sessionRetention": {"enabled": false}}));
    if let Some(turns) = request.max_turns {
        set("model", json!({"maxSessionTurns": turns}));
    }
    if request.project_trust == ProjectTrust::Untrusted {
        // With folder trust enabled, a run in an untrusted folder exits with code 55. A variable marks the folder as untrusted
        // instead.
        set("security", json!({"folderTrust": {"enabled": false}}));
        // A `.env` file in the folder may contain credentials.
        set("advanced", json!({"ignoreLocalEnv": true}));
    }
    if !request.mcp_servers.is_empty() {
        if request.project_trust == ProjectTrust::Untrusted {
            return Err(unsupported("mcp_servers with project_trust=untrusted", "the CLI starts no server there"));
        }
        if request.mcp_delivery == McpDelivery::Auto {
            set("mcpServers", mcp::servers(request, names)?);
        }
    }
    Ok(Value::Object(settings))
}

#[cfg(test)]
mod tests {
    use super::prevent_imports;

    #[test]
    fn a_path_that_gemini_cli_would_import_follows_an_invisible_character() {
        for (text, expected) in [
            ("@a.md and\t@/etc/passwd\n@./b", "\u{2060}@a.md and\t\u{2060}@/etc/passwd\n\u{2060}@./b"),
            ("mail a@b.c, @1, @, @@x", "mail a@b.c, @1, @, @@x"),
            ("`@x` @", "`@x` @"),
        ] {
            assert_eq!(prevent_imports(text), expected);
        }
    }
}
