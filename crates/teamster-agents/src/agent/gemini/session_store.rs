//! The sessions that Gemini CLI 0.61.0 stores: `tmp/PROJECT/chats/session-TIME-ID.jsonl` in its directory, where ID is the
//! start of the session's id. `tmp/PROJECT/.project_root` names the working directory.
//!
//! A line is the header, a message, or a change: `$set` replaces fields of the session, also all messages, and `$rewindTo`
//! removes a message with all that follow.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::agent::session_store::{
    Exchange, IdPart, NotASession, SessionFiles, SessionReader, SessionRecord, Variables, directory, file_name,
    name_of, read_line, time_of, title_of,
};

pub(super) static STORE: SessionFiles = SessionFiles {
    root,
    depth: 2,
    id,
    // The file `.project_root` names the working directory.
    may_belong: |_: &Path, _: &Path| true,
    directory_file: Some("../.project_root"),
    names: None,
    reader: || Box::<Reader>::default(),
};

/// The maximum number of messages.
const MAX_MESSAGES: usize = 100_000;

/// The maximum number of removals. Each searches all messages.
const MAX_REWINDS: usize = 1000;

/// The start of a message that the CLI writes in the name of the user.
const CONTEXT: &str = "<session_context>";

fn root(variables: Variables<'_>) -> Option<PathBuf> {
    let home = match variables("GEMINI_CLI_HOME") {
        Some(home) => PathBuf::from(home).join(".gemini"),
        None => directory(variables, "HOME", "")?.join(".gemini"),
    };
    Some(home.join("tmp"))
}

fn id(file: &Path) -> Option<IdPart> {
    if file.parent()?.file_name()? != "chats" {
        return None;
    }
    let name = file_name(file)?.strip_prefix("session-")?.strip_suffix(".jsonl")?;
    // The time is `2026-11-24T07-04`.
    let id = name.get(16..)?.strip_prefix('-').filter(|id| !id.is_empty())?;
    Some(IdPart::Start(id.to_owned()))
}

/// A line, or a message in a change.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    start_time: Option<String>,
    #[serde(default)]
    kind: Option<String>,
    #[serde(borrow, default, rename = "$set")]
    set: Option<Change<'a>>,
    #[serde(default, rename = "$rewindTo")]
    rewind_to: Option<String>,
    #[serde(default)]
    id: Option<String>,
    #[serde(borrow, default, rename = "type")]
    author: Option<Cow<'a, str>>,
    #[serde(default)]
    timestamp: Option<String>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    display_content: Option<&'a RawValue>,
    #[serde(default)]
    model: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Change<'a> {
    #[serde(borrow, default)]
    messages: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    summary: Option<String>,
    #[serde(default)]
    last_updated: Option<String>,
}

#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    text: String,
    /// Whether it is a thought.
    #[serde(default)]
    thought: bool,
}

/// Returns the text of a message: a text, a part, or a list of parts.
fn text_of(content: &RawValue) -> Option<String> {
    let content = content.get();
    if let Ok(text) = serde_json::from_str(content) {
        return Some(text);
    }
    let parts = match serde_json::from_str::<Part>(content) {
        Ok(part) => vec![part],
        Err(_) => serde_json::from_str::<Vec<Part>>(content).ok()?,
    };
    let texts: Vec<&str> = parts.iter().filter(|part| !part.thought).map(|part| part.text.as_str()).collect();
    Some(texts.concat())
}

#[derive(Default)]
struct Reader {
    record: SessionRecord,
    has_lines: bool,
    is_subagent: bool,
    /// Whether a line could not be read that may have replaced messages.
    is_incomplete: bool,
    /// The ids of the messages of people, each with the number of messages before it.
    prompts: Vec<(String, usize)>,
    /// The ids of all messages.
    messages: Vec<String>,
    rewinds: usize,
    first_prompt: Option<String>,
    summary: Option<String>,
    last_time: Option<String>,
}

impl Reader {
    fn read(&mut self, line: Line<'_>) {
        if let Some(id) = &line.session_id
            && line.start_time.is_some()
        {
            self.record.id = name_of(id).or(self.record.id.take());
            self.is_subagent |= line.kind.is_some_and(|kind| kind != "main");
            // A resumed session has several headers.
            if self.record.created.is_none() {
                self.record.created = line.start_time.as_deref().and_then(time_of);
            }
        } else if let Some(id) = line.rewind_to {
            self.rewind_to(&id);
        } else if let Some(change) = line.set {
            self.change(change);
        } else if line.author.is_some() {
            self.message(&line);
        }
    }

    fn change(&mut self, change: Change<'_>) {
        self.summary = change.summary.as_deref().and_then(title_of).map(String::from).or(self.summary.take());
        self.last_time = change.last_updated.as_deref().and_then(name_of).or(self.last_time.take());
        let Some(messages) = change.messages else { return };
        self.prompts.clear();
        self.messages.clear();
        (self.first_prompt, self.record.last_exchange) = (None, Exchange::default());
        for message in messages {
            if let Ok(message) = serde_json::from_str(message.get()) {
                self.message(&message);
            }
        }
    }

    fn message(&mut self, message: &Line<'_>) {
        let id = message.id.as_deref().and_then(name_of).unwrap_or_default();
        if self.messages.len() >= MAX_MESSAGES {
            self.is_incomplete = true;
            return;
        }
        self.messages.push(id.clone());
        self.last_time = message.timestamp.as_deref().and_then(name_of).or(self.last_time.take());
        let text = message.display_content.or(message.content).and_then(text_of).unwrap_or_default();
        match message.author.as_deref() {
            Some("user") if !text.trim().is_empty() && !text.starts_with(CONTEXT) => {
                self.prompts.push((id, self.messages.len()));
                self.first_prompt = self.first_prompt.take().or_else(|| title_of(&text).map(String::from));
                self.record.last_exchange.start(&text);
            }
            Some("gemini") => {
                self.record.model = message.model.as_deref().and_then(name_of).or(self.record.model.take());
                self.record.last_exchange.answer(&id, &text);
            }
            _ => {}
        }
    }

    fn rewind_to(&mut self, id: &str) {
        if self.rewinds >= MAX_REWINDS {
            self.is_incomplete = true;
            return;
        }
        self.rewinds += 1;
        let Some(at) = self.messages.iter().position(|message| message == id) else { return };
        self.messages.truncate(at);
        let before = self.prompts.len();
        self.prompts.retain(|(_, number)| *number <= at);
        if self.prompts.len() < before {
            // The texts of earlier prompts are not kept.
            self.record.last_exchange = Exchange::default();
        }
        if self.prompts.is_empty() {
            self.first_prompt = None;
        }
    }
}

impl SessionReader for Reader {
    fn line(&mut self, line: &[u8]) {
        let has_content = read_line(line, |text| {
            self.read(serde_json::from_str(text)?);
            Ok(())
        });
        self.has_lines |= has_content;
    }

    fn skipped_line(&mut self) {
        (self.has_lines, self.is_incomplete) = (true, true);
    }

    fn has_prompt(&self) -> bool {
        !self.prompts.is_empty()
    }

    fn last_time(&self) -> Option<&str> {
        self.last_time.as_deref()
    }

    fn finish(self: Box<Self>) -> Result<Option<SessionRecord>, NotASession> {
        if self.has_lines && self.record.id.is_none() {
            return Err(NotASession("Gemini CLI"));
        }
        if self.is_subagent || (self.prompts.is_empty() && !self.is_incomplete) {
            return Ok(None);
        }
        let mut record = self.record;
        record.title = self.summary.or(self.first_prompt).map(Into::into);
        record.turns = (!self.is_incomplete).then_some(self.prompts.len() as u64);
        record.updated = self.last_time.as_deref().and_then(time_of);
        Ok(Some(record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Option<SessionRecord> {
        let mut reader = Box::<Reader>::default();
        let header = r#"{"sessionId":"a-b","startTime":"2026-11-24T07:04:48.178Z","kind":"main"}"#;
        [header].iter().chain(lines).for_each(|line| reader.line(line.as_bytes()));
        reader.finish().unwrap()
    }

    #[test]
    fn removed_and_replaced_messages_do_not_count() {
        let [one, two, three] = ["one", "two", "three"]
            .map(|name| format!(r#"{{"id":"{name}","type":"user","content":[{{"text":"{name}"}}]}}"#));
        let answer = r#"{"id":"answer","type":"gemini","content":"Hi","model":"m"}"#;
        let both = read(&[&one, answer, &two]).unwrap();
        assert_eq!((both.turns, both.title.as_deref()), (Some(2), Some("one")));
        assert_eq!(both.last_exchange.prompt.as_deref(), Some("two"));
        let rewound = read(&[&one, answer, &two, r#"{"$rewindTo":"two"}"#]).unwrap();
        assert_eq!((rewound.turns, rewound.last_exchange), (Some(1), Exchange::default()));
        let replaced = read(&[&one, &two, &format!(r#"{{"$set":{{"messages":[{three}]}}}}"#), answer]).unwrap();
        assert_eq!((replaced.turns, replaced.title.as_deref()), (Some(1), Some("three")));
        assert_eq!(replaced.last_exchange.answer.as_deref(), Some("Hi"));
        assert_eq!(read(&[r#"{"id":"x","type":"user","content":"<session_context>\nx"}"#]), None);
    }

    #[test]
    fn a_file_with_very_many_removals_is_read_in_bounded_time() {
        let message = r#"{"id":"x","type":"user","content":"Hi"}"#;
        let (messages, rewinds) = (vec![message; 20_000], vec![r#"{"$rewindTo":"y"}"#; 20_000]);
        let record = read(&[messages, rewinds].concat()).unwrap();
        assert_eq!((record.turns, record.title.as_deref()), (None, Some("Hi")));
    }

    #[test]
    fn the_start_of_the_id_is_the_end_of_a_files_name() {
        let file_id = |name: &str| id(&Path::new("project/chats").join(name));
        assert_eq!(id(Path::new("project/logs/session-2026-11-24T07-04-d62ad470.jsonl")), None);
        assert_eq!(file_id("session-2026-11-24T07-04-d62ad470.jsonl"), Some(IdPart::Start("d62ad470".to_owned())));
        for other in ["session-.jsonl", "session-2026-11-24T07-04.jsonl", "logs.json", "session-ä.jsonl"] {
            assert_eq!(file_id(other), None, "{other}");
        }
    }
}
