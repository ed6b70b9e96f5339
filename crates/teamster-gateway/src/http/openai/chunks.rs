//! Answers as clients of OpenAI expect them: one object, or chunks.

use serde::Serialize;
use teamster_store::{TurnId, Usage};

/// What all chunks of an answer have in common.
#[derive(Clone, Debug)]
pub(super) struct Head {
    id: String,
    created: i64,
    model: String,
    /// Whether the last chunk has the usage.
    includes_usage: bool,
}

/// The numbers of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_field_names, reason = "names of the API")]
pub(super) struct Tokens {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
}

#[derive(Serialize)]
struct Chunk<'a> {
    id: &'a str,
    object: &'static str,
    created: i64,
    model: &'a str,
    choices: &'a [ChunkChoice<'a>],
    #[serde(skip_serializing_if = "ChunkUsage::is_absent")]
    usage: ChunkUsage,
}

/// The usage in a chunk.
#[derive(Clone, Copy, Serialize)]
#[serde(untagged)]
enum ChunkUsage {
    /// The client has not requested it: the field is absent.
    Absent,
    /// It is null in each chunk before the last one.
    Null,
    /// It is in the last chunk.
    Known(Tokens),
}

impl ChunkUsage {
    const fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

#[derive(Serialize)]
struct ChunkChoice<'a> {
    index: u32,
    delta: Delta<'a>,
    logprobs: Option<()>,
    finish_reason: Option<&'static str>,
}

#[derive(Default, Serialize)]
struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
}

/// A whole answer.
#[derive(Serialize)]
pub(super) struct Completion<'a> {
    id: &'a str,
    object: &'static str,
    created: i64,
    model: &'a str,
    choices: [Choice<'a>; 1],
    usage: Tokens,
}

#[derive(Serialize)]
struct Choice<'a> {
    index: u32,
    message: Message<'a>,
    logprobs: Option<()>,
    finish_reason: &'static str,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
    refusal: Option<()>,
}

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Self {
        let (prompt_tokens, completion_tokens) = (usage.input_tokens, usage.output_tokens);
        Self { prompt_tokens, completion_tokens, total_tokens: prompt_tokens.saturating_add(completion_tokens) }
    }
}

impl Head {
    pub(super) fn new(turn: TurnId, created: i64, model: &str, includes_usage: bool) -> Self {
        Self { id: format!("chatcmpl-{turn}"), created, model: model.to_owned(), includes_usage }
    }

    /// Returns the first chunk: the role, before any text.
    pub(super) fn start(&self) -> String {
        self.chunk(Delta { role: Some("assistant"), content: Some("") }, None)
    }

    /// Returns a chunk with text. An empty one keeps the connection alive: some clients ignore comments, and older ones take
    /// them for events.
    pub(super) fn text(&self, text: &str) -> String {
        self.chunk(Delta { role: None, content: Some(text) }, None)
    }

    /// Returns the last chunks.
    pub(super) fn end(&self, usage: Usage) -> Vec<String> {
        let mut chunks = vec![self.chunk(Delta::default(), Some("stop"))];
        if self.includes_usage {
            chunks.push(self.render(&[], ChunkUsage::Known(usage.into())));
        }
        chunks.push("[DONE]".to_owned());
        chunks
    }

    /// Returns a whole answer.
    pub(super) fn completion<'a>(&'a self, text: &'a str, usage: Usage) -> Completion<'a> {
        let message = Message { role: "assistant", content: text, refusal: None };
        Completion {
            id: &self.id,
            object: "chat.completion",
            created: self.created,
            model: &self.model,
            choices: [Choice { index: 0, message, logprobs: None, finish_reason: "stop" }],
            usage: usage.into(),
        }
    }

    fn chunk(&self, delta: Delta<'_>, finish_reason: Option<&'static str>) -> String {
        let choice = ChunkChoice { index: 0, delta, logprobs: None, finish_reason };
        let usage = if self.includes_usage { ChunkUsage::Null } else { ChunkUsage::Absent };
        self.render(&[choice], usage)
    }

    fn render(&self, choices: &[ChunkChoice<'_>], usage: ChunkUsage) -> String {
        let object = "chat.completion.chunk";
        let chunk = Chunk { id: &self.id, object, created: self.created, model: &self.model, choices, usage };
        // Texts and numbers can always be written.
        serde_json::to_string(&chunk).unwrap_or_default()
    }
}
