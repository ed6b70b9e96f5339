//! The settings of a run: a merged copy of the user's, in a stand-in for the user's home.
//!
//! The CLI takes MCP servers, the limit of turns, the retention of sessions and folder trust from settings alone. Its folder
//! in the stand-in holds links to everything else of the user's: login, commands, extensions, sessions.

use serde_json::{Map, Value, json};

use super::{mcp, unsupported};
use crate::agent::mcp::Names;
use crate::launch::{ConditionalDefaults, JsonMerge, ShadowEntry, ShadowHome};
use teamster_types::request::{McpDelivery, ProjectTrust, RequestError, RunRequest};

/// The stand-in's name among the private files.
pub(super) const STAND_IN: &str = "home";

/// A variable that holds `$`.
pub(super) const DOLLAR: &str = "TEAMSTER_DOLLAR";

/// How the user logs in, by the variables that the CLI looks at in a run, in its order. A base URL alone makes it choose a way
/// that it then refuses (trap 9); and in a session it looks at none when it loads an old one.
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
        // Written by renaming, which would replace a link. Which folder belongs to which project stands in the folders too.
        ("projects.json", ShadowEntry::Copy),
    ];
    if let Some(text) = &request.append_system_prompt {
        // `@path` at the beginning of a word imports a file there.
        let imports = text.split(char::is_whitespace).any(|word| {
            let path = word.strip_prefix('@').and_then(|path| path.chars().next());
            path.is_some_and(|first| first == '.' || first == '/' || first.is_ascii_alphabetic())
        });
        if imports {
            return Err(unsupported("--append-system-prompt with @path", "the CLI would put a file in its place"));
        }
        entries.push(("GEMINI.md", ShadowEntry::Append(format!("\n\n{text}"))));
    }
    entries.extend(command);
    Ok(ShadowHome {
        name: STAND_IN,
        homes: &["GEMINI_CLI_HOME", "HOME"],
        folder: ".gemini",
        kept: &["tmp", "history"],
        entries,
    })
}

fn login(&(variable, value, login): &(&'static str, Option<&'static str>, &'static str)) -> ConditionalDefaults {
    ConditionalDefaults { variable, value, values: json!({"security": {"auth": {"selectedType": login}}}) }
}

fn settings(request: &RunRequest, names: &Names) -> Result<Value, RequestError> {
    // The clean-up after a resumed session deletes it (trap 1), and one at a concurrent start a new one (trap 4).
    let mut settings = Map::new();
    let mut set = |section: &str, values: Value| settings.insert(section.to_owned(), values);
    set("general", json!({"sessionRetention": {"enabled": false}}));
    if let Some(turns) = request.max_turns {
        set("model", json!({"maxSessionTurns": turns}));
    }
    if request.project_trust == ProjectTrust::Untrusted {
        // With folder trust on, a headless run in a folder that is not trusted exits with 55; that the folder is not
        // trusted is said by a variable.
        set("security", json!({"folderTrust": {"enabled": false}}));
        // A `.env` file there may hold credentials.
        set("advanced", json!({"ignoreLocalEnv": true}));
    }
    if !request.mcp_servers.is_empty() {
        if request.project_trust == ProjectTrust::Untrusted {
            return Err(unsupported("--mcp-config with --project-trust untrusted", "the CLI starts no server there"));
        }
        if request.mcp_delivery == McpDelivery::Auto {
            set("mcpServers", mcp::servers(request, names)?);
        }
    }
    Ok(Value::Object(settings))
}
