//! One answer of the model: its blocks, how they are delivered, and what it says it cost.
//!
//! A reply knows no wire protocol; it counts in deltas, the smallest pieces in which every vendor streams.

use std::ops::{Add, AddAssign};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::failure::HttpError;
use super::record::ModelRequest;

/// Characters of a delta where the test does not say otherwise: short, so that words are torn apart as real models do.
const TEXT_DELTA_CHARS: usize = 7;
const TOOL_DELTA_CHARS: usize = 24;
const SIGNATURE: &str = "c2lnbmF0dXJlLW9mLXRoZS10ZXN0a2l0";

/// An answer of the model.
///
/// It ends with [`Stop::ToolUse`] when it calls a tool and with [`Stop::EndTurn`] when it does not, unless [`stop`](Self::stop)
/// says otherwise.
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
    first: Vec<(usize, Turn)>,
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
    /// Thinking whose text the model hides: only its size is told.
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

/// Who runs a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunsAt {
    Agent,
    Provider,
}

/// How an answer reaches the client.
#[derive(Debug, Clone, Default)]
pub(crate) struct Delivery {
    pub(crate) gate_before: Option<String>,
    pub(crate) delay_before: Option<Duration>,
    pub(crate) delay_between: Option<Duration>,
    pub(crate) cues: Vec<Cue>,
    pub(crate) drop_unstreamed: bool,
}

/// Something that happens once so many deltas are out.
#[derive(Debug, Clone)]
pub(crate) struct Cue {
    pub(crate) after: usize,
    pub(crate) what: CueKind,
}

#[derive(Debug, Clone)]
pub(crate) enum CueKind {
    Gate(String),
    Cut,
    Error(HttpError),
    Stall { ping_every: Option<Duration> },
}

/// Why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// It has said what it wanted to say.
    EndTurn,
    /// It waits for the results of its tool calls.
    ToolUse,
    /// It ran into the limit of output tokens.
    MaxTokens,
    /// It declined to answer.
    Refusal,
    /// It came upon one of the request's stop sequences.
    StopSequence,
    /// It paused a long turn of tools that run at the provider.
    PauseTurn,
    /// The vendor's own word for something else.
    Other(String),
}

/// Tokens of an answer. The four numbers do not overlap.
///
/// The defaults are such that no two sums of them are equal: a number that ends up in the wrong place is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Prompt tokens that came neither from a cache nor went into one.
    pub input: u64,
    /// Prompt tokens that were read from the cache.
    pub cache_read: u64,
    /// Prompt tokens that were written to the cache.
    pub cache_write: u64,
    /// Generated tokens, reasoning included.
    pub output: u64,
}

impl Usage {
    /// Nothing used.
    pub const ZERO: Self = Self {
        input: 0,
        cache_read: 0,
        cache_write: 0,
        output: 0,
    };
}

impl Default for Usage {
    fn default() -> Self {
        Self {
            input: 25,
            cache_read: 50,
            cache_write: 100,
            output: 40,
        }
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input: self.input + other.input,
            cache_read: self.cache_read + other.cache_read,
            cache_write: self.cache_write + other.cache_write,
            output: self.output + other.output,
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// What is said in one turn: a [`Reply`], an [`HttpError`], or what [`Reply::from_fn`] works out.
#[derive(Clone)]
pub struct Turn(pub(crate) TurnKind);

#[derive(Clone)]
pub(crate) enum TurnKind {
    Reply(Box<Reply>),
    Error(HttpError),
    Computed(Arc<dyn Fn(&ModelRequest) -> Turn + Send + Sync>),
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

/// The blocks of an answer, in the order of the calls.
impl Reply {
    /// An empty answer.
    pub fn new() -> Self {
        Self::default()
    }

    /// An answer that depends on the request.
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
        Turn(TurnKind::Computed(Arc::new(move |request| {
            compute(request).into()
        })))
    }

    /// Adds a block of text, streamed in deltas of seven characters.
    #[must_use]
    pub fn text(self, text: impl AsRef<str>) -> Self {
        self.text_by(TEXT_DELTA_CHARS, text)
    }

    /// Adds a block of text, streamed in deltas of so many characters.
    #[must_use]
    pub fn text_by(self, chars: usize, text: impl AsRef<str>) -> Self {
        self.text_deltas(in_pieces(text.as_ref(), chars))
    }

    /// Adds a block of text, streamed in exactly these deltas.
    #[must_use]
    pub fn text_deltas<I>(self, deltas: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.block(Block::Text {
            deltas: deltas.into_iter().map(Into::into).collect(),
        })
    }

    /// Adds a block of reasoning that the client may read, with a signature. The text may be empty.
    #[must_use]
    pub fn thinking(self, text: impl AsRef<str>) -> Self {
        self.thinking_signed(text, SIGNATURE)
    }

    /// Adds a block of reasoning with this signature.
    #[must_use]
    pub fn thinking_signed(self, text: impl AsRef<str>, signature: impl Into<String>) -> Self {
        let text = text.as_ref();
        let deltas = if text.is_empty() {
            Vec::new()
        } else {
            in_pieces(text, TEXT_DELTA_CHARS)
        };
        self.block(Block::Thinking {
            deltas,
            signature: signature.into(),
        })
    }

    /// Adds a block of reasoning whose text is hidden: each delta tells how many tokens it has come to.
    #[must_use]
    pub fn thinking_tokens(self, estimates: impl IntoIterator<Item = u64>) -> Self {
        self.block(Block::HiddenThinking {
            estimated_tokens: estimates.into_iter().collect(),
            signature: SIGNATURE.to_owned(),
        })
    }

    /// Adds a block of reasoning that only the vendor can read.
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

    /// Adds a call whose input is streamed in exactly these pieces, which need not be JSON.
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

    /// Adds a call of a tool that runs at the provider, such as its web search.
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

    /// Says why the model stopped.
    #[must_use]
    pub fn stop(mut self, stop: Stop) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Says how many tokens the answer cost.
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
}

/// How the answer is delivered. What happens after `n` deltas happens before the delta `n + 1`, and at the latest before the
/// end of the message is told.
impl Reply {
    /// Sends nothing, not even the headers, until the gate is open.
    #[must_use]
    pub fn gate_before(mut self, gate: impl Into<String>) -> Self {
        self.delivery.gate_before = Some(gate.into());
        self
    }

    /// Stops after so many deltas until the gate is open. An answer that is not streamed waits as a whole.
    #[must_use]
    pub fn gate_after(self, deltas: usize, gate: impl Into<String>) -> Self {
        self.cue(deltas, CueKind::Gate(gate.into()))
    }

    /// Waits so long before anything is sent.
    #[must_use]
    pub fn delay_before(mut self, delay: Duration) -> Self {
        self.delivery.delay_before = Some(delay);
        self
    }

    /// Waits so long between two deltas.
    #[must_use]
    pub fn delay_between(mut self, delay: Duration) -> Self {
        self.delivery.delay_between = Some(delay);
        self
    }

    /// Breaks the connection after so many deltas. Requests that ask for no stream are answered in full.
    #[must_use]
    pub fn cut_after(self, deltas: usize) -> Self {
        self.cue(deltas, CueKind::Cut)
    }

    /// Breaks the connection after so many deltas the first time; later requests are answered in full.
    #[must_use]
    pub fn cut_once_after(self, deltas: usize) -> Self {
        let mut cut = self.clone().cut_after(deltas);
        cut.first.clear();
        self.at_first(1, cut)
    }

    /// Breaks the connection of a request that asks for no stream before it has its whole answer.
    #[must_use]
    pub fn drop_unstreamed(mut self) -> Self {
        self.delivery.drop_unstreamed = true;
        self
    }

    /// Puts an error event into the stream after so many deltas and ends it there.
    #[must_use]
    pub fn error_after(self, deltas: usize, error: HttpError) -> Self {
        self.cue(deltas, CueKind::Error(error))
    }

    /// Goes silent after so many deltas, and stays so.
    #[must_use]
    pub fn stall_after(self, deltas: usize) -> Self {
        self.cue(deltas, CueKind::Stall { ping_every: None })
    }

    /// Sends only pings after so many deltas.
    #[must_use]
    pub fn ping_forever_after(self, deltas: usize, every: Duration) -> Self {
        self.cue(
            deltas,
            CueKind::Stall {
                ping_every: Some(every),
            },
        )
    }

    fn cue(mut self, after: usize, what: CueKind) -> Self {
        self.delivery.cues.push(Cue { after, what });
        self
    }

    /// Answers the first requests for this reply with something else. Calls add up: what is said first comes first.
    ///
    /// Requests are counted over all conversations of the provider.
    #[must_use]
    pub fn at_first(mut self, times: usize, turn: impl Into<Turn>) -> Self {
        self.first.push((times, turn.into()));
        self
    }

    /// Fails the first requests for this reply.
    #[must_use]
    pub fn fail_times(self, times: usize, error: HttpError) -> Self {
        self.at_first(times, error)
    }

    /// What stands in for this reply at the given attempt, which counts from one.
    pub(crate) fn stand_in(&self, attempt: usize) -> Option<&Turn> {
        let mut until = 0;
        self.first.iter().find_map(|(times, turn)| {
            until += times;
            (attempt <= until).then_some(turn)
        })
    }

    pub(crate) fn stop_or_default(&self) -> Stop {
        self.stop.clone().unwrap_or_else(|| {
            let waits = self.blocks.iter().any(|block| {
                matches!(
                    block,
                    Block::Tool {
                        runs_at: RunsAt::Agent,
                        ..
                    }
                )
            });
            if waits { Stop::ToolUse } else { Stop::EndTurn }
        })
    }
}

/// Splits a text into pieces of so many characters; an empty text is one empty piece.
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
    use super::{HttpError, Reply, in_pieces};

    #[test]
    fn a_text_is_split_between_characters_never_within_one() {
        assert_eq!(in_pieces("漢字かな", 3), ["漢字か", "な"]);
        assert_eq!(in_pieces("", 3), [""]);
        assert_eq!(in_pieces("ab", 0), ["a", "b"]);
    }

    #[test]
    fn stand_ins_are_used_up_in_the_order_they_were_said() {
        let reply = Reply::new()
            .text("whole")
            .fail_times(2, HttpError::rate_limited())
            .at_first(1, Reply::new().text("second"));
        let kinds: Vec<_> = (1..=4)
            .map(|attempt| {
                reply
                    .stand_in(attempt)
                    .map(|turn| format!("{turn:?}").contains("RateLimited"))
            })
            .collect();
        assert_eq!(kinds, [Some(true), Some(true), Some(false), None]);
    }
}
