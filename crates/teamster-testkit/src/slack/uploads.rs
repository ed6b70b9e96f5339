//! The methods of files.

use serde_json::{Value, json};

use super::error::ApiError;
use super::files::{Stored, Upload};
use super::ids::{BOT_ID, BOT_USER};
use super::world::World;
use crate::params::Params;

impl World {
    /// Stores a file of a person, and returns its object in the message.
    pub(super) fn store_file(&mut self, file: Upload) -> Value {
        let number = self.next_id();
        let Upload { name, media_type, content, stated_size, foreign_url, is_of_other_workspace } = file;
        let bytes = content.into_bytes();
        let size = stated_size.unwrap_or_else(|| u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let id = format!("F{number:08}");
        let url = foreign_url.unwrap_or_else(|| format!("{}/files/{id}", self.base));
        let stored = Stored { name, media_type, bytes: Some(bytes), size, url, is_shared: true };
        self.files.0.insert(id.clone(), stored);
        if is_of_other_workspace {
            return json!({"id": id, "file_access": "check_file_info"});
        }
        self.files.object(&id)
    }

    pub(super) fn file_info(&self, params: &Params) -> Result<Value, ApiError> {
        match self.files.object(params.text("file").unwrap_or_default()) {
            Value::Null => Err(ApiError::new("file_not_found")),
            file => Ok(json!({"file": file})),
        }
    }

    pub(super) fn upload_url(&mut self, params: &Params) -> Result<Value, ApiError> {
        let name = params.text("filename").filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| ApiError::detailed("invalid_arguments", "missing filename"))?.to_owned();
        let size = params.number("length").and_then(|length| u64::try_from(length).ok()).filter(|length| *length > 0);
        let size = size.ok_or_else(|| ApiError::detailed("invalid_arguments", "invalid length"))?;
        let number = self.next_id();
        let id = format!("F{number:08}");
        let media_type = "application/octet-stream".to_owned();
        let url = format!("{}/files/{id}", self.base);
        self.files.0.insert(id.clone(), Stored { name, media_type, bytes: None, size, url, is_shared: false });
        Ok(json!({"upload_url": format!("{}/upload/{id}", self.base), "file_id": id}))
    }

    /// Shows files that were uploaded in a channel.
    pub(super) fn complete_upload(&mut self, params: &Params) -> Result<Value, ApiError> {
        let files = params.json("files").unwrap_or_default();
        let ids: Vec<String> = files
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|file| file.get("id")?.as_str().map(str::to_owned))
            .collect();
        let has_all = |id: &String| self.files.0.get(id).is_some_and(|file| file.bytes.is_some() && !file.is_shared);
        if ids.is_empty() || !ids.iter().all(has_all) {
            return Err(ApiError::new("file_not_found"));
        }
        let Some(channel) = params.text("channel_id").map(str::to_owned) else {
            return Ok(json!({"files": files}));
        };
        self.writable(&channel)?;
        for id in &ids {
            if let Some(file) = self.files.0.get_mut(id) {
                file.is_shared = true;
            }
        }
        let objects: Vec<_> = ids.iter().map(|id| self.files.object(id)).collect();
        let message = json!({"type": "message", "subtype": "file_share", "user": BOT_USER, "bot_id": BOT_ID,
            "text": params.text("initial_comment").unwrap_or_default(), "files": objects,
            "thread_ts": params.text("thread_ts")});
        self.store(&channel, message);
        Ok(json!({"files": ids.iter().map(|id| json!({"id": id})).collect::<Vec<_>>()}))
    }
}
