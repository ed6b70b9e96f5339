//! The sessions that OpenCode 1.18.33 stores: the SQLite database `opencode.db` in its data directory.

use std::path::PathBuf;

use serde::Deserialize;

use crate::agent::session_store::{SessionDatabase, Variables, directory, name_of};

pub(super) static STORE: SessionDatabase = SessionDatabase { path, sessions: SESSIONS, texts: TEXTS, model };

/// Sessions of subagents have a parent. An archived session is not listed by the CLI either. Values of more than 8 MiB are
/// not read: SQLite would report an error, which ends the query.
const SESSIONS: &str = "
SELECT newest.*, (
    SELECT count(*) FROM message
    WHERE session_id = newest.id
        AND CASE WHEN octet_length(data) < 8388608 AND json_valid(data)
            THEN json_extract(data, '$.role') = 'user' ELSE 0 END
)
FROM (
    SELECT id, title, directory, model, cost, time_created, time_updated FROM session
    WHERE parent_id IS NULL AND time_archived IS NULL
        AND (?1 IS NULL OR directory IN (?1, ?2))
        AND substr(id, 1, length(?3)) = ?3
    ORDER BY time_updated DESC LIMIT ?4
) AS newest";

/// The CLI adds synthetic texts to prompts, such as the content of files.
const TEXTS: &str = "
SELECT json_extract(message.data, '$.role'), message.id, json_extract(part.data, '$.text')
FROM message JOIN part ON part.message_id = message.id
WHERE message.session_id = ?1
    AND CASE WHEN octet_length(message.data) < 8388608 THEN json_valid(message.data) ELSE 0 END
    AND CASE WHEN octet_length(part.data) < 8388608 AND json_valid(part.data) THEN
        json_extract(part.data, '$.type') = 'text'
        AND coalesce(json_extract(part.data, '$.synthetic'), 0) = 0
        AND coalesce(json_extract(part.data, '$.ignored'), 0) = 0
    ELSE 0 END
ORDER BY message.time_created DESC, message.id DESC, part.id DESC
LIMIT 200";

fn path(variables: Variables<'_>) -> Option<PathBuf> {
    let data = match variables("XDG_DATA_HOME") {
        Some(data) => PathBuf::from(data).join("opencode"),
        None => directory(variables, "HOME", "")?.join(".local/share/opencode"),
    };
    // An absolute path replaces the directory.
    Some(data.join(variables("OPENCODE_DB").unwrap_or_else(|| "opencode.db".into())))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Model {
    id: String,
    #[serde(default, rename = "providerID")]
    provider: Option<String>,
}

/// Returns `PROVIDER/MODEL`, as the option of the CLI takes it.
fn model(json: &str) -> Option<String> {
    let Model { id, provider } = serde_json::from_str(json).ok()?;
    name_of(&provider.map_or(id.clone(), |provider| format!("{provider}/{id}")))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn the_database_is_where_the_cli_opens_it() {
        let path_with = |set: &[(&str, &str)]| {
            let value =
                |name: &str| set.iter().find(|(other, _)| *other == name).map(|(_, value)| OsString::from(value));
            path(&value).map(|path| path.to_string_lossy().into_owned())
        };
        assert_eq!(path_with(&[]), None);
        let default = path_with(&[("HOME", "/h")]);
        assert_eq!(default.as_deref(), Some("/h/.local/share/opencode/opencode.db"));
        let data = path_with(&[("HOME", "/h"), ("XDG_DATA_HOME", "/d"), ("OPENCODE_DB", "x.db")]);
        assert_eq!(data.as_deref(), Some("/d/opencode/x.db"));
        assert_eq!(path_with(&[("HOME", "/h"), ("OPENCODE_DB", "/x.db")]).as_deref(), Some("/x.db"));
    }

    #[test]
    fn a_model_is_named_with_its_provider() {
        assert_eq!(model(r#"{"id":"m1","providerID":"test"}"#).as_deref(), Some("test/m1"));
        assert_eq!(model(r#"{"id":"m1"}"#).as_deref(), Some("m1"));
        assert_eq!(model("m1"), None);
    }
}
