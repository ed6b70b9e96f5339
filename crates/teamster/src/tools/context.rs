//! What a tool knows of a call, and how it reports progress.

use std::sync::Arc;

use rmcp::model::{NumberOrString, ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use serde_json::{Map, Value};
use teamster_types::event::SessionId;
use tokio_util::sync::CancellationToken;

use crate::callers::{Caller, Conversation};

/// The call that a tool answers: whose it is, how to report progress, and whether it is still wanted.
///
/// A call that is canceled is dropped at once. [`cancelled`](Self::cancelled) is for work that the tool has started
/// elsewhere, in a task or on a thread: give that a clone of the context.
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

    /// The tool's name.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The id of the call: the agent's own, as in the events `tool_use` and `tool_result`, where the agent sends it (Claude
    /// Code), else the id of the MCP request, which is unique among the calls of one agent's process that run.
    pub fn call_id(&self) -> String {
        match self.meta.get("claudecode/toolUseId").and_then(Value::as_str) {
            Some(id) => id.to_owned(),
            None => self.request_id.to_string(),
        }
    }

    /// The label under which the tools were offered ([`ServedTools::offer_labeled`](super::ServedTools::offer_labeled)).
    pub fn label(&self) -> Option<&str> {
        self.caller.label.as_deref()
    }

    /// The agent that calls. `None` where that is not known: the tools were not [offered](super::ServedTools::offer), or
    /// several conversations that run use the same offer.
    pub fn agent(&self) -> Option<&str> {
        self.known.as_ref().map(|known| known.agent.as_str())
    }

    /// The id of the run or session that calls: the `runId` of its events. `None` where the [agent](Self::agent) is not known.
    pub fn run_id(&self) -> Option<&str> {
        self.known.as_ref().map(|known| &*known.run_id)
    }

    /// The agent's session, as far as the agent has reported it. `None` also where the [agent](Self::agent) is not known.
    pub fn session_id(&self) -> Option<&SessionId> {
        self.known.as_ref()?.session.as_ref()
    }

    /// The turn of the session, counted from 1; a run has one turn. `None` where the [agent](Self::agent) is not known.
    pub fn turn(&self) -> Option<u64> {
        self.known.as_ref().map(|known| known.turn)
    }

    /// What else the agent sends with the call: the member `_meta` of the MCP request.
    pub fn meta(&self) -> &Map<String, Value> {
        &self.meta
    }

    /// Reports progress to the agent: how much is done, out of how much if that is known, and what is being done. It should
    /// grow with each report. Does nothing where the agent did not ask for progress.
    pub async fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let Some((token, peer)) = &self.progress else { return };
        let mut report = ProgressNotificationParam::new(token.clone(), done);
        report.total = total;
        report.message = message.map(str::to_owned);
        // An agent that is gone cancels the call.
        _ = peer.notify_progress(report).await;
    }

    /// Whether the call is canceled: the agent gave it up, its process ended, or the tools are not served any more.
    pub fn is_cancelled(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Waits until the call is canceled. It never returns when the call was answered before.
    pub async fn cancelled(&self) {
        self.stop.cancelled().await;
    }
}
