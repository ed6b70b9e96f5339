//! The sessions that Codex 0.169.0 stores: `sessions/YEAR/MONTH/DAY/rollout-TIME-ID.jsonl` in its home. Older ones may be
//! compressed (`.jsonl.zst`).

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;

use teamster_types::text::UntrustedText;

use crate::agent::line::with_json;
use crate::agent::session_store::{
    IdPart, NamesFile, NotASession, SessionFiles, SessionReader, SessionRecord, Variables, directory, file_name,
    is_uuid, name_of, read_line, time_of, title_of,
};

pub(super) static STORE: SessionFiles = SessionFiles {
    root,
    depth: 3,
    id,
    // Only the content of a file names the working directory.
    may_belong: |_: &Path, _: &Path| true,
    directory_file: None,
    names: Some(NamesFile { path: "../session_index.jsonl", read: name }),
    reader: || Box::<Reader>::default(),
};

fn root(variables: Variables<'_>) -> Option<PathBuf> {
    Some(directory(variables, "CODEX_HOME", ".codex")?.join("sessions"))
}

fn id(file: &Path) -> Option<IdPart> {
    let name = file_name(file)?.strip_prefix("rollout-")?;
    let name = name.strip_suffix(".zst").unwrap_or(name).strip_suffix(".jsonl")?;
    let id = name.get(name.len().checked_sub(36)?..).filter(|id| is_uuid(id))?;
    Some(IdPart::Whole(id.to_owned()))
}

/// A line of the file with names.
#[derive(Deserialize)]
struct Named {
    id: String,
    thread_name: String,
}

fn name(line: &[u8]) -> Option<(String, UntrustedText)> {
    let named: Named = with_json(line, |text| serde_json::from_str(text)).ok()?;
    Some((name_of(&named.id)?, title_of(&named.thread_name)?))
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default)]
    timestamp: Option<String>,
    #[serde(borrow)]
    payload: &'a RawValue,
}

/// The first line: what does not change.
#[derive(Deserialize)]
struct Meta<'a> {
    id: String,
    #[serde(default)]
    cwd: Option<String>,
    /// A text, or an object for subagents.
    #[serde(borrow, default)]
    source: Option<&'a RawValue>,
    #[serde(default)]
    thread_source: Option<String>,
}

#[derive(Deserialize)]
struct Context {
    #[serde(default)]
    model: Option<String>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default)]
    message: Option<String>,
    #[serde(borrow, default)]
    item: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default)]
    id: String,
    #[serde(default)]
    content: Vec<Content>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    text: String,
}

/// The state of the current turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Turn {
    /// The file does not mark the start of turns: each prompt is a turn.
    #[default]
    Unmarked,
    Started,
    /// Its prompt was read. Prompts that were sent into the turn follow it.
    Counted,
}

#[derive(Default)]
struct Reader {
    record: SessionRecord,
    turns: u64,
    has_lines: bool,
    is_subagent: bool,
    turn: Turn,
    first_prompt: Option<String>,
    last_time: Option<String>,
}

impl Reader {
    fn read(&mut self, line: Line<'_>) -> serde_json::Result<()> {
        if let Some(time) = line.timestamp {
            if self.record.created.is_none() {
                self.record.created = time_of(&time);
            }
            self.last_time = name_of(&time);
        }
        match &*line.kind {
            // A fork repeats the first line of its origin.
            "session_meta" if self.record.id.is_none() => self.meta(&serde_json::from_str(line.payload.get())?),
            "turn_context" => {
                let context: Context = serde_json::from_str(line.payload.get())?;
                self.record.model = context.model.as_deref().and_then(name_of).or(self.record.model.take());
            }
            "event_msg" => self.event(serde_json::from_str(line.payload.get())?)?,
            _ => {}
        }
        Ok(())
    }

    fn meta(&mut self, meta: &Meta<'_>) {
        self.record.id = name_of(&meta.id);
        self.record.directory = meta.cwd.as_deref().and_then(name_of).map(PathBuf::from);
        let is_object = meta.source.is_some_and(|source| source.get().starts_with('{'));
        self.is_subagent = is_object || meta.thread_source.as_deref() == Some("subagent");
    }

    fn event(&mut self, event: Event<'_>) -> serde_json::Result<()> {
        match &*event.kind {
            "task_started" | "turn_started" => self.turn = Turn::Started,
            "user_message" => self.prompt(&event.message.unwrap_or_default()),
            "agent_message" => self.record.last_exchange.answer("", &event.message.unwrap_or_default()),
            "item_completed" => {
                let Some(item) = event.item else { return Ok(()) };
                let item: Item<'_> = serde_json::from_str(item.get())?;
                let texts: Vec<&str> = item.content.iter().map(|content| content.text.as_str()).collect();
                match &*item.kind {
                    "UserMessage" => self.prompt(&texts.join("\n")),
                    "AgentMessage" => self.record.last_exchange.answer(&item.id, &texts.join("\n")),
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn prompt(&mut self, text: &str) {
        if self.turn != Turn::Counted {
            self.turns += 1;
        }
        if self.turn == Turn::Started {
            self.turn = Turn::Counted;
        }
        self.first_prompt = self.first_prompt.take().or_else(|| title_of(text).map(String::from));
        self.record.last_exchange.start(text);
    }
}

impl SessionReader for Reader {
    fn line(&mut self, line: &[u8]) {
        let has_content = read_line(line, |text| self.read(serde_json::from_str(text)?));
        self.has_lines |= has_content;
    }

    fn skipped_line(&mut self) {
        self.has_lines = true;
    }

    fn directory(&self) -> Option<&Path> {
        self.record.directory.as_deref()
    }

    fn has_prompt(&self) -> bool {
        self.turns > 0
    }

    fn last_time(&self) -> Option<&str> {
        self.last_time.as_deref()
    }

    fn finish(self: Box<Self>) -> Result<Option<SessionRecord>, NotASession> {
        if self.has_lines && self.record.id.is_none() {
            return Err(NotASession("Codex"));
        }
        if self.turns == 0 || self.is_subagent {
            return Ok(None);
        }
        let Self { mut record, turns, first_prompt, last_time, .. } = *self;
        record.title = first_prompt.map(Into::into);
        record.turns = Some(turns);
        record.updated = last_time.as_deref().and_then(time_of);
        Ok(Some(record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_belongs_to_an_id() {
        let line = br#"{"id":"a-b","thread_name":"My  name","updated_at":"2026-11-24T07:46:48.957311856Z"}"#;
        assert_eq!(name(line), Some(("a-b".to_owned(), "My name".into())));
        assert_eq!(name(br#"{"id":"a-b"}"#), None);
    }

    #[test]
    fn the_id_is_the_end_of_a_rollouts_name() {
        let file_id = |name: &str| id(Path::new(name));
        let expected = Some(IdPart::Whole("01a20c5e-280a-7b32-a785-01dc072c7dce".to_owned()));
        assert_eq!(file_id("rollout-2026-11-24T07-03-46-01a20c5e-280a-7b32-a785-01dc072c7dce.jsonl"), expected);
        assert_eq!(file_id("rollout-2026-11-24T07-03-46-01a20c5e-280a-7b32-a785-01dc072c7dce.jsonl.zst"), expected);
        for other in ["rollout-.jsonl", "rollout-ä.jsonl", "history.jsonl", "rollout-2026-11-24T07-03-46.jsonl"] {
            assert_eq!(file_id(other), None, "{other}");
        }
    }
}
