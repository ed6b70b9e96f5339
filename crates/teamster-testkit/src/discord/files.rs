//! Files in both directions, at signed URLs that expire.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::body::SentFile;

/// A file of a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Upload {
    /// The name.
    pub name: String,
    /// The media type.
    #[serde(default)]
    pub media_type: String,
    /// The content, as text.
    #[serde(default)]
    pub content: String,
    /// The size that the service states, instead of that of the content.
    #[serde(default)]
    pub stated_size: Option<u64>,
}

/// The files of the service, by their ids.
#[derive(Debug, Default)]
pub(super) struct Files(BTreeMap<u64, Vec<u8>>);

impl Files {
    /// Stores a file. Returns the attachment.
    pub(super) fn add(&mut self, id: u64, host: &str, file: SentFile, stated_size: Option<u64>) -> Value {
        let SentFile { name, media_type, bytes } = file;
        let size = stated_size.unwrap_or_else(|| u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        self.0.insert(id, bytes);
        // The service replaces other characters.
        let is_kept = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | '_');
        let safe: String = name.chars().map(|character| if is_kept(character) { character } else { '_' }).collect();
        let url = format!("http://{host}/cdn/attachments/1/{id}/{safe}?ex=1&is=1&hm=1");
        json!({"id": id.to_string(), "filename": safe, "content_type": media_type, "size": size, "url": url,
            "proxy_url": url})
    }

    pub(super) fn content(&self, id: u64) -> Option<Vec<u8>> {
        self.0.get(&id).cloned()
    }
}
