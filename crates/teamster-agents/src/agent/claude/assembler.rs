//! Assembles one streamed message of the model, and knows what was already emitted of it.
//!
//! With partial messages, Claude Code 2.1.197 prints everything twice: as deltas, and as one `assistant` line for each content
//! block, just before that block's `content_block_stop`. The line confirms its block. Only the part that the deltas lacked is
//! emitted from it.

use serde_json::Value;

use crate::agent::content::ContentKind;
use crate::agent::json_string::JsonString;
use crate::bounded::{EmittedText, MAX_BYTES};
use teamster_types::event::MessageId;
use teamster_types::json::RawJson;

/// The maximum number of blocks that are kept of a message.
const MAX_BLOCKS: usize = 1000;

/// The type of a block, with the content that was streamed.
#[derive(Debug)]
enum Body {
    Content(ContentKind, EmittedText),
    /// `is_cut` if the arguments are too long to assemble. The `assistant` line contains them.
    Tool {
        id: String,
        name: String,
        json: String,
        is_cut: bool,
    },
    Other,
}

impl Body {
    /// Returns its approximate size on the heap, in bytes.
    fn bytes(&self) -> usize {
        match self {
            Self::Tool { id, name, json, .. } => id.len() + name.len() + json.len(),
            Self::Content(..) | Self::Other => 0,
        }
    }
}

#[derive(Debug)]
struct Block {
    index: u32,
    body: Body,
    is_confirmed: bool,
}

/// A message that is being streamed, or was streamed.
#[derive(Debug)]
pub(super) struct MessageAssembler {
    pub(super) id: MessageId,
    blocks: Vec<Block>,
    /// The size of the tool calls in `blocks`.
    bytes: usize,
    has_emitted: bool,
    is_complete: bool,
}

/// A tool call, assembled from its deltas.
#[derive(Debug, PartialEq)]
pub(super) struct AssembledTool {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: RawJson,
}

impl MessageAssembler {
    pub(super) fn new(id: MessageId) -> Self {
        Self { id, blocks: Vec::new(), bytes: 0, has_emitted: false, is_complete: false }
    }

    pub(super) fn start_content(&mut self, index: u32, kind: ContentKind) {
        self.start(index, Body::Content(kind, EmittedText::default()));
    }

    pub(super) fn start_tool(&mut self, index: u32, id: &str, name: &str) {
        self.start(index, Body::Tool { id: id.to_owned(), name: name.to_owned(), json: String::new(), is_cut: false });
    }

    pub(super) fn start_other(&mut self, index: u32) {
        self.start(index, Body::Other);
    }

    fn start(&mut self, index: u32, body: Body) {
        self.bytes += body.bytes();
        self.blocks.push(Block { index, body, is_confirmed: false });
        while self.blocks.len() > MAX_BLOCKS || (self.bytes > MAX_BYTES && self.blocks.len() > 1) {
            self.bytes -= self.blocks.remove(0).body.bytes();
        }
    }

    /// Records an emitted delta. A delta of an unknown block starts the block.
    pub(super) fn push_text(&mut self, index: u32, kind: ContentKind, text: &str) {
        self.has_emitted |= !text.is_empty();
        if !self.blocks.iter().any(|block| block.index == index) {
            self.start_content(index, kind);
        }
        if let Some(Body::Content(_, emitted)) = self.body(index) {
            emitted.push(text);
        }
    }

    /// Appends a part of a tool call's arguments.
    pub(super) fn push_json(&mut self, index: u32, json: &str) {
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

    /// Returns the tool call of a block that is complete; `None` if the block is of another type.
    pub(super) fn finish_tool(&mut self, index: u32) -> Option<AssembledTool> {
        let Some(Body::Tool { id, name, json, is_cut: false }) = self.body(index) else { return None };
        let input = if json.is_empty() {
            Value::Object(serde_json::Map::new()).into()
        } else {
            serde_json::from_str(json).unwrap_or_else(|_| Value::String(json.clone()).into())
        };
        let tool = AssembledTool { id: id.clone(), name: name.clone(), input };
        // The arguments are emitted now, and not needed any more.
        let emitted = std::mem::take(json).len();
        self.bytes -= emitted;
        Some(tool)
    }

    /// Confirms a block by its `assistant` line. Returns the part of the whole text that was not emitted before.
    pub(super) fn confirm(&mut self, kind: ContentKind, whole: JsonString<'_>) -> String {
        let block = self
            .blocks
            .iter_mut()
            .find(|block| matches!(block.body, Body::Content(of_block, _) if of_block == kind) && !block.is_confirmed);
        self.has_emitted |= !whole.is_empty();
        let Some(Block { body: Body::Content(_, emitted), is_confirmed, .. }) = block else { return whole.to_text() };
        *is_confirmed = true;
        emitted.rest_of(whole.pieces())
    }

    /// Confirms the block of a tool call.
    pub(super) fn confirm_tool(&mut self, tool: &str) {
        let block = self.blocks.iter_mut().find(|block| matches!(&block.body, Body::Tool { id, .. } if id == tool));
        if let Some(block) = block {
            block.is_confirmed = true;
        }
    }

    /// Records the end of the message.
    pub(super) fn complete(&mut self) {
        self.is_complete = true;
    }

    /// Whether the message is void when another one starts.
    ///
    /// If the stream breaks before a block is complete, the CLI requests the message again without a notice. The recording
    /// `err_cut_once` shows it. A complete block stays.
    pub(super) fn is_void(&self) -> bool {
        self.has_emitted && !self.is_complete && !self.blocks.iter().any(|block| block.is_confirmed)
    }

    fn body(&mut self, index: u32) -> Option<&mut Body> {
        self.blocks.iter_mut().rfind(|block| block.index == index).map(|block| &mut block.body)
    }
}
