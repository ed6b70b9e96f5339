//! What a tool knows about a call, and how it reports progress.

use std::sync::Arc;

use rmcp::model::{NumberOrString, ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use serde_json::{Map, Value};
use teamster_types::event::SessionId;
use tokio_util::sync::CancellationToken;

use crate::callers::{Caller, Conversation};

/// The context of a call: its caller, its progress, and whether it is still wanted.
///
/// A canceled call is dropped at once. [`cancelled`](Self::cancelled) is for work that the tool has started elsewhere, in a
/// task or on a thread: give that work a clone of the context.
#[derive(Clone, Debug)]
pub struct CallContext {
    tool: String,
    request_id: NumberOrString,
    caller: Arc<Caller>,
    known: Option<Conversation>,
    meta: Arc<Map<String, Value>>,
    progress: Option<(ProgressToken, Peer<RoleServer>)>,
    stop: CancellationToken,
}

impl CallContext {
    pub(super) fn new(
        tool: &str,
        caller: Arc<Caller>,
        context: &RequestContext<RoleServer>,
        stop: CancellationToken,
    ) -> Self {
        let meta = match serde_json::to_value(&context.meta) {
            Ok(Value::Object(meta)) => meta,
            _ => Map::new(),
        };
        let token = context.meta.get_progress_token();
        Self {
            tool: tool.to_owned(),
            request_id: context.id.clone(),
            known: caller.known(),
            caller,
            meta: Arc::new(meta),
            progress: token.map(|token| (token, context.peer.clone())),
            stop,
        }
    }

    /// Returns the tool's name.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Returns the id of the call. If the agent sends its own (Claude Code), it is the id in the events `tool_use` and
    /// `tool_result`. Otherwise it is the id of the MCP request, which is unique among the running calls of one agent process.
    pub fn call_id(&self) -> String {
        match self.meta.get("claudecode/toolUseId").and_then(Value::as_str) {
            Some(id) => id.to_owned(),
            None => self.request_id.to_string(),
        }
    }

    /// Returns the label with which the tools were offered ([`ServedTools::offer_labeled`](super::ServedTools::offer_labeled)).
    pub fn label(&self) -> Option<&str> {
        self.caller.label.as_deref()
    }

    /// Returns the agent that calls. `None` if that is unknown: the tools were not [offered](super::ServedTools::offer), or
    /// several running conversations use the same offer.
    pub fn agent(&self) -> Option<&str> {
        self.known.as_ref().map(|known| known.agent.as_str())
    }

    /// Returns the id of the run or session that calls: the `runId` of its events. `None` if the [agent](Self::agent) is
    /// unknown.
    pub fn run_id(&self) -> Option<&str> {
        self.known.as_ref().map(|known| &*known.run_id)
    }

    /// Returns the agent's session, if the agent has reported it. `None` also if the [agent](Self::agent) is unknown.
    pub fn session_id(&self) -> Option<&SessionId> {
        self.known.as_ref()?.session.as_ref()
    }

    /// Returns the number of the turn, starting at 1. A run has one turn. `None` if the [agent](Self::agent) is unknown.
    pub fn turn(&self) -> Option<u64> {
        self.known.as_ref().map(|known| known.turn)
    }

    /// Returns the member `_meta` of the MCP request: additional data of the agent.
    pub fn meta(&self) -> &Map<String, Value> {
        &self.meta
    }

    /// Reports progress to the agent: the completed amount, the total if it is known, and a text. The amount should increase
    /// with each report. Does nothing if the agent has not requested progress.
    pub async fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let Some((token, peer)) = &self.progress else { return };
        let mut report = ProgressNotificationParam::new(token.clone(), done);
        report.total = total;
        report.message = message.map(str::to_owned);
        // An agent that is gone cancels the call.
        _ = peer.notify_progress(report).await;
    }

    /// Returns whether the call is canceled: the agent canceled it, its process exited, or the server has ended.
    pub fn is_cancelled(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Waits until the call is canceled. Never returns if the call was answered.
    pub async fn cancelled(&self) {
        self.stop.cancelled().await;
    }
}
