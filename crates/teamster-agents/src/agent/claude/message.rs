//! One message of the model while it streams: what has been told of it already.
//!
//! With partial messages everything comes twice: as deltas, and as an `assistant` line per content block, which stands
//! just before that block's stop. The line confirms its block; only what the deltas lacked is told from it.

use serde_json::Value;

use crate::bounded::{EmittedText, MAX_BYTES};
use teamster_types::event::MessageId;
use teamster_types::json::RawJson;

/// How many blocks of a message are known.
const MAX_BLOCKS: usize = 1000;

/// What a block is, with what was streamed of it.
#[derive(Debug)]
enum Body {
    Text(EmittedText),
    Thinking(EmittedText),
    /// `is_cut` if its arguments are too long to be put together: the `assistant` line has them.
    Tool {
        id: String,
        name: String,
        json: String,
        is_cut: bool,
    },
    Other,
}

#[derive(Debug)]
struct StreamedBlock {
    index: u32,
    body: Body,
    confirmed: bool,
}

/// The kind of a block whose text is streamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voice {
    Text,
    Thinking,
}

/// A message that streams, or has been streamed.
#[derive(Debug)]
pub(super) struct Streamed {
    pub(super) id: MessageId,
    blocks: Vec<StreamedBlock>,
    /// The bytes of calls of tools in `blocks`.
    bytes: usize,
    told: bool,
    complete: bool,
}

/// A tool call as its deltas gave it.
#[derive(Debug, PartialEq)]
pub(super) struct AssembledTool {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: RawJson,
}

impl Body {
    /// About how many bytes it has on the heap.
    fn bytes(&self) -> usize {
        match self {
            Self::Tool { id, name, json, .. } => id.len() + name.len() + json.len(),
            Self::Text(_) | Self::Thinking(_) | Self::Other => 0,
        }
    }
}

impl Streamed {
    pub(super) fn new(id: MessageId) -> Self {
        Self { id, blocks: Vec::new(), bytes: 0, told: false, complete: false }
    }

    pub(super) fn start_voice(&mut self, index: u32, voice: Voice) {
        self.start(
            index,
            match voice {
                Voice::Text => Body::Text(EmittedText::default()),
                Voice::Thinking => Body::Thinking(EmittedText::default()),
            },
        );
    }

    pub(super) fn start_tool(&mut self, index: u32, id: &str, name: &str) {
        self.start(index, Body::Tool { id: id.to_owned(), name: name.to_owned(), json: String::new(), is_cut: false });
    }

    pub(super) fn start_other(&mut self, index: u32) {
        self.start(index, Body::Other);
    }

    fn start(&mut self, index: u32, body: Body) {
        self.bytes += body.bytes();
        self.blocks.push(StreamedBlock { index, body, confirmed: false });
        while self.blocks.len() > MAX_BLOCKS || (self.bytes > MAX_BYTES && self.blocks.len() > 1) {
            self.bytes -= self.blocks.remove(0).body.bytes();
        }
    }

    /// Notes a delta of text. A delta without its block's start begins one.
    pub(super) fn say(&mut self, index: u32, voice: Voice, text: &str) {
        self.told |= !text.is_empty();
        if !self.blocks.iter().any(|block| block.index == index) {
            self.start_voice(index, voice);
        }
        if let Some(Body::Text(said) | Body::Thinking(said)) = self.body(index) {
            said.push(text);
        }
    }

    pub(super) fn add_json(&mut self, index: u32, json: &str) {
        let bytes = self.bytes;
        let Some(Body::Tool { json: all, is_cut, .. }) = self.body(index) else { return };
        if *is_cut || bytes + json.len() > MAX_BYTES {
            let cut = std::mem::take(all).len();
            *is_cut = true;
            self.bytes -= cut;
        } else {
            all.push_str(json);
            self.bytes += json.len();
        }
    }

    /// The tool call of a block that is complete, unless the block is another kind.
    pub(super) fn finish_tool(&mut self, index: u32) -> Option<AssembledTool> {
        let Some(Body::Tool { id, name, json, is_cut: false }) = self.body(index) else { return None };
        let input = if json.is_empty() {
            Value::Object(serde_json::Map::new()).into()
        } else {
            serde_json::from_str(json).unwrap_or_else(|_| Value::String(json.clone()).into())
        };
        let tool = AssembledTool { id: id.clone(), name: name.clone(), input };
        // Its arguments are told, and needed no more.
        let told = std::mem::take(json).len();
        self.bytes -= told;
        Some(tool)
    }

    /// What a whole block of an `assistant` line adds to what was streamed of it: all of it where nothing was.
    pub(super) fn confirm<'a>(&mut self, voice: Voice, whole: &'a str) -> &'a str {
        let block = self.blocks.iter_mut().find(|block| {
            !block.confirmed
                && matches!((&block.body, voice), (Body::Text(_), Voice::Text) | (Body::Thinking(_), Voice::Thinking))
        });
        self.told |= !whole.is_empty();
        let Some(StreamedBlock { body: Body::Text(said) | Body::Thinking(said), confirmed, .. }) = block else {
            return whole;
        };
        *confirmed = true;
        said.rest(whole)
    }

    pub(super) fn confirm_tool(&mut self, tool: &str) {
        let block = self.blocks.iter_mut().find(|block| matches!(&block.body, Body::Tool { id, .. } if id == tool));
        if let Some(block) = block {
            block.confirmed = true;
        }
    }

    pub(super) fn complete(&mut self) {
        self.complete = true;
    }

    /// Whether another message in its place means that this one is void: the stream broke before any of its blocks was
    /// whole, and the CLI silently asks again (traps 6 of the facts). A whole block stays.
    pub(super) fn is_void(&self) -> bool {
        self.told && !self.complete && !self.blocks.iter().any(|block| block.confirmed)
    }

    fn body(&mut self, index: u32) -> Option<&mut Body> {
        self.blocks.iter_mut().rfind(|block| block.index == index).map(|block| &mut block.body)
    }
}
