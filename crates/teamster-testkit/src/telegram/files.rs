//! Files in both directions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::params::SentFile;

/// The largest file that a bot can download.
pub(super) const MAX_DOWNLOAD: u64 = 20 << 20;

/// A file of a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Upload {
    /// The name. Without one, the file is a photo.
    #[serde(default)]
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

/// A stored file.
#[derive(Clone, Debug)]
struct Stored {
    bytes: Vec<u8>,
    size: u64,
    path: String,
}

/// The files of the service, by their ids.
#[derive(Debug, Default)]
pub(super) struct Files(BTreeMap<String, Stored>);

impl Files {
    fn add(&mut self, bytes: Vec<u8>, size: u64, folder: &str) -> String {
        let number = self.0.len() + 1;
        let id = format!("file-{number}");
        self.0.insert(id.clone(), Stored { bytes, size, path: format!("{folder}/file_{number}.bin") });
        id
    }

    /// Stores a file of a person. Returns the field of the message and its content.
    pub(super) fn received(&mut self, file: Upload) -> (&'static str, Value) {
        let Upload { name, media_type, content, stated_size } = file;
        let bytes = content.into_bytes();
        let size = stated_size.unwrap_or_else(|| u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        if !name.is_empty() {
            let id = self.add(bytes, size, "documents");
            let object = json!({"file_id": id, "file_unique_id": id, "file_name": name, "mime_type": media_type,
                "file_size": size});
            return ("document", object);
        }
        let small = self.add(Vec::new(), 1, "photos");
        let large = self.add(bytes, size, "photos");
        let object = |id: &str, size: u64| json!({"file_id": id, "file_unique_id": id, "width": 90, "height": 90, "file_size": size});
        ("photo", json!([object(&small, 1), object(&large, size)]))
    }

    /// Stores a file of the bot. Returns its content as a field of the message.
    pub(super) fn sent(&mut self, file: SentFile, is_photo: bool) -> Value {
        let SentFile { name, media_type, bytes } = file;
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let id = self.add(bytes, size, if is_photo { "photos" } else { "documents" });
        if is_photo {
            return json!([{"file_id": id, "file_unique_id": id, "width": 90, "height": 90, "file_size": size}]);
        }
        json!({"file_id": id, "file_unique_id": id, "file_name": name, "mime_type": media_type, "file_size": size})
    }

    /// Returns size and path of a file.
    pub(super) fn find(&self, id: &str) -> Option<(u64, String)> {
        self.0.get(id).map(|file| (file.size, file.path.clone()))
    }

    pub(super) fn content(&self, id: &str) -> Option<Vec<u8>> {
        self.0.get(id).map(|file| file.bytes.clone())
    }

    pub(super) fn at(&self, path: &str) -> Option<Vec<u8>> {
        self.0.values().find(|file| file.path == path).map(|file| file.bytes.clone())
    }
}
