//! People, and what they write.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::files::Upload;
use super::ids::TEAM;

/// A person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// The id, such as `U0ADA`.
    pub id: String,
    /// The name.
    pub name: String,
    /// Whether it is another bot.
    #[serde(default)]
    pub is_bot: bool,
}

/// What a person writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Post {
    /// The channel.
    pub channel: String,
    /// The first message of the thread.
    #[serde(default)]
    pub thread: Option<String>,
    /// Who writes.
    pub from: Person,
    /// The text, as the service has it: `&`, `<` and `>` are escaped, and mentions are `<@ID>`.
    #[serde(default)]
    pub text: String,
    /// The files.
    #[serde(default)]
    pub files: Vec<Upload>,
}

impl Person {
    /// Describes a person.
    pub fn new(id: &str, name: &str) -> Self {
        Self { id: id.to_owned(), name: name.to_owned(), is_bot: false }
    }

    /// Returns the id of the direct messages with the bot.
    pub fn direct(&self) -> String {
        format!("D{}", self.id.get(1..).unwrap_or_default())
    }

    pub(super) fn object(&self) -> Value {
        json!({"id": self.id, "team_id": TEAM, "name": self.name.to_lowercase(), "real_name": self.name,
            "is_bot": self.is_bot, "profile": {"real_name": self.name, "display_name": self.name}})
    }
}

impl Post {
    /// A direct message to the bot.
    pub fn direct(from: &Person, text: &str) -> Self {
        Self::to(&from.direct(), from, text)
    }

    /// A message in a channel.
    pub fn to(channel: &str, from: &Person, text: &str) -> Self {
        let (channel, text) = (channel.to_owned(), text.to_owned());
        Self { channel, thread: None, from: from.clone(), text, files: Vec::new() }
    }

    /// Writes in a thread.
    #[must_use]
    pub fn thread(mut self, ts: &str) -> Self {
        self.thread = Some(ts.to_owned());
        self
    }

    /// Attaches a file.
    #[must_use]
    pub fn file(mut self, name: &str, content: &str) -> Self {
        self.files.push(Upload {
            name: name.to_owned(),
            media_type: "text/plain".to_owned(),
            content: content.to_owned(),
            stated_size: None,
            foreign_url: None,
            is_of_other_workspace: false,
        });
        self
    }

    /// Changes the last file.
    #[must_use]
    pub fn with_file(mut self, change: impl FnOnce(&mut Upload)) -> Self {
        if let Some(file) = self.files.last_mut() {
            change(file);
        }
        self
    }
}
