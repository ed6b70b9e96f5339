//! Values of JSON and of texts.

use serde_json::Value;

/// Returns an id, which is a text in JSON.
pub(super) fn id_of(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => text.parse().ok(),
        other => other.as_u64(),
    }
}

/// Returns the users and the roles that a text mentions.
pub(super) fn found_mentions(text: &str) -> (Vec<u64>, Vec<String>) {
    let (mut users, mut roles) = (Vec::new(), Vec::new());
    for part in text.split("<@").skip(1) {
        let Some((inner, _)) = part.split_once('>') else { continue };
        if let Some(role) = inner.strip_prefix('&') {
            roles.push(role.to_owned());
        } else if let Ok(user) = inner.trim_start_matches('!').parse() {
            users.push(user);
        }
    }
    (users, roles)
}
