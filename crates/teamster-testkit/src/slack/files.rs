//! Files in both directions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

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
    /// Where the file is, instead of this service.
    #[serde(default)]
    pub foreign_url: Option<String>,
    /// Whether the message has no URL: the bot must ask for it.
    #[serde(default)]
    pub is_of_other_workspace: bool,
}

/// A stored file.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) name: String,
    pub(super) media_type: String,
    pub(super) bytes: Option<Vec<u8>>,
    pub(super) size: u64,
    pub(super) url: String,
    pub(super) is_shared: bool,
}

/// The files of the service, by their ids.
#[derive(Debug, Default)]
pub(super) struct Files(pub(super) BTreeMap<String, Stored>);

impl Files {
    pub(super) fn content(&self, id: &str) -> Option<(Vec<u8>, String)> {
        self.0.get(id).and_then(|file| Some((file.bytes.clone()?, file.media_type.clone())))
    }

    /// Takes the content of a file whose upload was announced. Returns whether it was.
    pub(super) fn take(&mut self, id: &str, bytes: &[u8]) -> bool {
        let Some(file) = self.0.get_mut(id).filter(|file| file.bytes.is_none()) else { return false };
        file.bytes = Some(bytes.to_vec());
        true
    }

    pub(super) fn object(&self, id: &str) -> Value {
        let Some(file) = self.0.get(id) else { return Value::Null };
        json!({"id": id, "name": file.name, "title": file.name, "mimetype": file.media_type, "mode": "hosted",
            "size": file.size, "url_private": file.url, "url_private_download": file.url})
    }
}
