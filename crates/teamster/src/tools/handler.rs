//! The MCP service: the list of tools, and their calls.

use std::sync::Arc;

use hyper::http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::calls::Calls;
use super::{CallContext, Tool, ToolServer};
use crate::callers::Caller;

/// Serves one agent.
#[derive(Clone)]
pub(super) struct Handler {
    pub(super) server: Arc<ToolServer>,
    /// Cancelled when the server ends.
    pub(super) stop: CancellationToken,
    /// The running calls.
    pub(super) calls: TaskTracker,
    /// The same calls, so that each can be canceled.
    pub(super) running: Calls,
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let itself = Implementation::new(self.server.name.clone(), env!("CARGO_PKG_VERSION"));
        let info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build()).with_server_info(itself);
        match &self.server.instructions {
            Some(instructions) => info.with_instructions(instructions.clone()),
            None => info,
        }
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.server.tools.iter().map(described).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.server.tools.iter().find(|tool| tool.name == request.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool {:?}", request.name), None));
        };
        let Some(caller) = caller(&context) else {
            return Err(ErrorData::internal_error("the caller is not known", None));
        };
        let entered = self.running.enter(Arc::clone(&caller), context.id.clone());
        let stopped = CancellationToken::new();
        let gone = stopped.clone().drop_guard();
        let known = CallContext::new(&tool.name, caller, &context, stopped);
        let call = self.calls.track_future(tool.call(request.arguments.unwrap_or_default(), known));
        let answer = tokio::select! {
            biased;
            () = self.stop.cancelled() => Err("the run is over".to_owned()),
            () = context.ct.cancelled() => Err("the call was given up".to_owned()),
            () = entered.given_up.cancelled() => Err("the call was given up".to_owned()),
            answer = call => {
                gone.disarm();
                answer
            }
        };
        Ok(match answer {
            Ok(reply) => reply.into_result(),
            Err(text) => CallToolResult::error(vec![ContentBlock::text(text)]),
        }
        .into())
    }
}

/// The caller, as identified by its token.
fn caller(context: &RequestContext<RoleServer>) -> Option<Arc<Caller>> {
    context.extensions.get::<Parts>()?.extensions.get::<Arc<Caller>>().cloned()
}

fn described(tool: &Tool) -> rmcp::model::Tool {
    let input = tool.input.clone().unwrap_or_default();
    let described = rmcp::model::Tool::new(tool.name.clone(), tool.description.clone(), input);
    if tool.is_read_only {
        return described.with_annotations(ToolAnnotations::new().read_only(true));
    }
    described
}
