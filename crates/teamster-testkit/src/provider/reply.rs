//! One reply of the model: its blocks, its delivery and its reported usage.
//!
//! A reply is independent of the wire format. It counts in deltas, the smallest pieces that every
//! vendor streams.

mod delivery;
mod delivery_builder;

use std::sync::Arc;

use serde_json::Value;

use super::failure::HttpError;
use super::record::ModelRequest;
use super::usage::Usage;
use delivery::Delivery;
pub(crate) use delivery::{DeliveryEvent, DeliveryEventKind};

/// The default number of characters per delta. It is small, so that words are split as by real
/// models.
const TEXT_DELTA_CHARS: usize = 7;
const TOOL_DELTA_CHARS: usize = 24;
const SIGNATURE: &str = "c2lnbmF0dXJlLW9mLXRoZS10ZXN0a2l0";

/// A reply of the model.
///
/// By default it ends with [`Stop::ToolUse`] if it calls a tool and with [`Stop::EndTurn`]
/// otherwise; [`stop`](Self::stop) replaces that.
///
/// ```
/// use serde_json::json;
/// use teamster_testkit::provider::Reply;
///
/// let reply = Reply::new()
///     .thinking("The shell will know.")
///     .text("Let me run that.")
///     .tool("Bash", json!({"command": "echo hi"}));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub(crate) blocks: Vec<Block>,
    pub(crate) stop: Option<Stop>,
    pub(crate) usage: Usage,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) delivery: Delivery,
    overrides: Vec<Override>,
}

#[derive(Debug, Clone)]
pub(crate) enum Block {
    Text {
        deltas: Vec<String>,
    },
    Thinking {
        deltas: Vec<String>,
        signature: String,
    },
    /// Thinking whose text is hidden: only its size is reported.
    HiddenThinking {
        estimated_tokens: Vec<u64>,
        signature: String,
    },
    RedactedThinking {
        data: String,
    },
    Tool {
        name: String,
        input_deltas: Vec<String>,
        runs_at: RunsAt,
    },
}

/// The place where a tool runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunsAt {
    Agent,
    Provider,
}

/// The reason why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// The reply is complete.
    EndTurn,
    /// It waits for the results of its tool calls.
    ToolUse,
    /// The limit of output tokens was reached.
    MaxTokens,
    /// The model declined to answer.
    Refusal,
    /// The model produced one of the request's stop sequences.
    StopSequence,
    /// The model paused a long turn of tools that run at the provider.
    PauseTurn,
    /// Another reason, as the vendor names it.
    Other(String),
}

/// The response to one request: a [`Reply`], an [`HttpError`], or the result of [`Reply::from_fn`].
#[derive(Clone)]
pub struct Turn(pub(crate) TurnKind);

#[derive(Clone)]
pub(crate) enum TurnKind {
    Reply(Box<Reply>),
    Error(HttpError),
    Computed(Arc<dyn Fn(&ModelRequest) -> Turn + Send + Sync>),
}

/// The response that replaces a reply for this many requests.
#[derive(Debug, Clone)]
pub(crate) struct Override {
    times: usize,
    turn: Turn,
}

impl std::fmt::Debug for Turn {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            TurnKind::Reply(reply) => reply.fmt(formatter),
            TurnKind::Error(error) => error.fmt(formatter),
            TurnKind::Computed(_) => formatter.write_str("Computed(..)"),
        }
    }
}

impl From<Reply> for Turn {
    fn from(reply: Reply) -> Self {
        Self(TurnKind::Reply(Box::new(reply)))
    }
}

impl From<HttpError> for Turn {
    fn from(error: HttpError) -> Self {
        Self(TurnKind::Error(error))
    }
}

/// Methods that define the content of a reply. Blocks have the order of the calls.
impl Reply {
    /// Creates an empty reply.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a reply that depends on the request. A closure that can return either a reply or an
    /// error returns a [`Turn`].
    ///
    /// ```
    /// use teamster_testkit::provider::{Reply, Scenario};
    ///
    /// let scenario = Scenario::new().reply(Reply::from_fn(|request| {
    ///     Reply::new().text(format!("I see {} messages.", request.messages.len()))
    /// }));
    /// ```
    pub fn from_fn<F, T>(compute: F) -> Turn
    where
        F: Fn(&ModelRequest) -> T + Send + Sync + 'static,
        T: Into<Turn>,
    {
        Turn(TurnKind::Computed(Arc::new(move |request| compute(request).into())))
    }

    /// Adds a text block, streamed in deltas of seven characters.
    #[must_use]
    pub fn text(self, text: impl AsRef<str>) -> Self {
        self.text_by(TEXT_DELTA_CHARS, text)
    }

    /// Adds a text block, streamed in deltas of this many characters.
    #[must_use]
    pub fn text_by(self, chars: usize, text: impl AsRef<str>) -> Self {
        self.text_deltas(in_pieces(text.as_ref(), chars))
    }

    /// Adds a text block, streamed in exactly these deltas.
    #[must_use]
    pub fn text_deltas<I>(self, deltas: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.block(Block::Text { deltas: deltas.into_iter().map(Into::into).collect() })
    }

    /// Adds a visible thinking block with a signature. The text may be empty.
    #[must_use]
    pub fn thinking(self, text: impl AsRef<str>) -> Self {
        self.thinking_signed(text, SIGNATURE)
    }

    /// Adds a thinking block with this signature.
    #[must_use]
    pub fn thinking_signed(self, text: impl AsRef<str>, signature: impl Into<String>) -> Self {
        let text = text.as_ref();
        let deltas = if text.is_empty() { Vec::new() } else { in_pieces(text, TEXT_DELTA_CHARS) };
        self.block(Block::Thinking { deltas, signature: signature.into() })
    }

    /// Adds a thinking block whose text is hidden. Each delta reports an estimate of its tokens so
    /// far.
    #[must_use]
    pub fn thinking_tokens(self, estimates: impl IntoIterator<Item = u64>) -> Self {
        self.block(Block::HiddenThinking {
            estimated_tokens: estimates.into_iter().collect(),
            signature: SIGNATURE.to_owned(),
        })
    }

    /// Adds a thinking block that only the vendor can read.
    #[must_use]
    pub fn thinking_redacted(self, data: impl Into<String>) -> Self {
        self.block(Block::RedactedThinking { data: data.into() })
    }

    /// Adds a call of one of the agent's tools.
    #[must_use]
    pub fn tool(self, name: impl Into<String>, input: impl Into<Value>) -> Self {
        let json = input.into().to_string();
        self.tool_raw(name, in_pieces(&json, TOOL_DELTA_CHARS))
    }

    /// Adds a tool call whose input is streamed in exactly these pieces, which need not be valid
    /// JSON.
    #[must_use]
    pub fn tool_raw<I>(self, name: impl Into<String>, input_deltas: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.block(Block::Tool {
            name: name.into(),
            input_deltas: input_deltas.into_iter().map(Into::into).collect(),
            runs_at: RunsAt::Agent,
        })
    }

    /// Adds a call of a tool that runs at the provider, such as a web search.
    #[must_use]
    pub fn server_tool(self, name: impl Into<String>, input: impl Into<Value>) -> Self {
        let json = input.into().to_string();
        self.block(Block::Tool {
            name: name.into(),
            input_deltas: in_pieces(&json, TOOL_DELTA_CHARS),
            runs_at: RunsAt::Provider,
        })
    }

    fn block(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }

    /// Sets the reason why the model stopped.
    #[must_use]
    pub fn stop(mut self, stop: Stop) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Sets the reported usage.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Adds a header to the response.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn stop_or_default(&self) -> Stop {
        self.stop.clone().unwrap_or_else(|| {
            let waits = self.blocks.iter().any(|block| matches!(block, Block::Tool { runs_at: RunsAt::Agent, .. }));
            if waits { Stop::ToolUse } else { Stop::EndTurn }
        })
    }
}

/// Splits a text into pieces of this many characters. An empty text becomes one empty piece.
fn in_pieces(text: &str, chars: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut room = chars.max(1);
    for character in text.chars() {
        if room == 0 {
            pieces.push(String::new());
            room = chars.max(1);
        }
        if let Some(piece) = pieces.last_mut() {
            piece.push(character);
        }
        room -= 1;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::in_pieces;

    #[test]
    fn a_text_is_split_between_characters_and_never_within_one() {
        assert_eq!(in_pieces("漢字かな", 3), ["漢字か", "な"]);
        assert_eq!(in_pieces("", 3), [""]);
        assert_eq!(in_pieces("ab", 0), ["a", "b"]);
    }
}
