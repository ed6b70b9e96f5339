//! The list of tools, and who calls them.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use teamster::tools::{CallContext, JsonSchema, Reply, Tool, ToolServer, schemars};
use teamster_store::{Seq, StoreError};

use super::call::Call;
use super::plans::{self, DeleteInput, PlanInput};
use super::send::{self, FileInput, MessageInput};
use super::turn::ToolSessions;
use crate::engine::{Span, WeakGateway, history};

/// The name of the MCP server, which is part of the tools' names.
const NAME: &str = "teamster";

const INSTRUCTIONS: &str = "Your final answer is delivered to the chat by itself. Use these tools only for what it cannot do: \
    a message before you have finished, a file, a message at a later time, or the earlier messages of the chat.";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HistoryInput {
    /// The number of messages and answers, from the end. The default is all that are kept, at most 40.
    limit: Option<usize>,
}

/// Returns the server of all tools.
pub(super) fn server(gateway: WeakGateway, sessions: ToolSessions) -> ToolServer {
    let tools = GatewayTools { gateway, sessions };
    ToolServer::new(NAME)
        .instructions(INSTRUCTIONS)
        .with(tools.tool(
            "send_message",
            "Sends a message in Markdown to the chat of this conversation at once, before your answer.",
            |call, input: MessageInput| async move { send::message(&call, input).await },
        ))
        .with(tools.tool(
            "send_file",
            "Sends a file below the working directory to the chat of this conversation.",
            |call, input: FileInput| async move { send::file(&call, input).await },
        ))
        .with(tools.tool(
            "schedule_create",
            "Creates a schedule: its text arrives in this conversation as a note of yours, once (`at`) or repeatedly \
             (`cron`). It is marked as such, and is not a request of a person. Ask for the time zone if it matters and is unknown.",
            |call, input: PlanInput| async move { plans::create(&call, input).await },
        ))
        .with(
            tools.tool("schedule_list", "Lists the schedules of this conversation.", |call, Nothing {}| async move {
                plans::list(&call).await
            })
            .read_only(),
        )
        .with(tools.tool(
            "schedule_delete",
            "Deletes a schedule of this conversation.",
            |call, input: DeleteInput| async move { plans::delete(&call, &input).await },
        ))
        .with(
            tools.tool(
                "read_history",
                "Returns the last messages and answers of this conversation, the oldest first.",
                |call, input: HistoryInput| async move { read_history(&call, &input).await },
            )
            .read_only(),
        )
}

/// Admits calls of running turns.
#[derive(Clone)]
struct GatewayTools {
    gateway: WeakGateway,
    sessions: ToolSessions,
}

impl GatewayTools {
    fn tool<I, F>(&self, name: &str, description: &str, work: impl Fn(Call, I) -> F + Send + Sync + 'static) -> Tool
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        F: Future<Output = Result<Reply, String>> + Send + 'static,
    {
        let tools = self.clone();
        Tool::with_context(name, description, move |input: I, context: CallContext| {
            let work = tools.call(&context).map(|call| {
                let ended = call.current.ended.clone();
                (work(call, input), ended)
            });
            async move {
                let (work, ended) = work?;
                tokio::select! {
                    biased;
                    () = ended.cancelled() => Err(ended_turn()),
                    reply = work => reply,
                }
            }
        })
    }

    fn call(&self, context: &CallContext) -> Result<Call, String> {
        let current = self.sessions.current(context.label()).ok_or_else(ended_turn)?;
        let gateway = self.gateway.upgrade().ok_or_else(ended_turn)?;
        Ok(Call { gateway, current, id: context.call_id() })
    }
}

fn ended_turn() -> String {
    "no turn of this conversation is running, so its tools cannot be used".to_owned()
}

async fn read_history(call: &Call, input: &HistoryInput) -> Result<Reply, String> {
    let gone = "the conversation was deleted";
    let (store, turn) = (call.gateway.store(), &call.current.turn);
    let read = async {
        let conversation = store.conversation(turn.conversation, call.gateway.now()).await?;
        let (Some(conversation), Some(running)) = (conversation, store.turn(turn.turn).await?) else { return Ok(None) };
        let span = Span { after: Seq::START, before: running.queued_seq };
        history(store, &conversation, span).await.map(|history| Some(history.items))
    };
    let read: Result<_, StoreError> = read.await;
    let items = read.map_err(|error| error.to_string())?.ok_or(gone)?;
    let skipped = input.limit.map_or(0, |limit| items.len().saturating_sub(limit));
    let items: Vec<_> = items.into_iter().skip(skipped).collect();
    serde_json::to_value(items).map(Reply::from).map_err(|error| error.to_string())
}
