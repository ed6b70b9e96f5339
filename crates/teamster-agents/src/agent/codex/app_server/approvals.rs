//! The app-server's requests to its client, and the responses.
//!
//! Invariants: a pending request gets one response. A request that is not supported gets an error. A request that cannot be read or
//! shown to the caller is never allowed.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::agent::form::Form;
use crate::agent::line::if_readable;
use crate::agent::mcp::Names;
use crate::agent::permission::{options, without_option};
use teamster_types::event::{
    Event, PermissionRequest, Question, QuestionItem, QuestionOption, RequestId, ToolId, ToolKind,
};
use teamster_types::request::Answer;

/// A request of the app-server.
#[derive(Debug)]
pub(super) struct ServerRequest {
    kind: Kind,
    /// The request as the caller sees it.
    pub(super) content: RequestContent,
}

/// The kind of response that a request needs.
#[derive(Debug)]
enum Kind {
    /// A decision about a command or a patch.
    Decision,
    /// More permissions: the response contains those that are granted.
    Permissions(Value),
    /// A decision about a call of an MCP tool. `for_session` means that it can be allowed for the session.
    McpTool { for_session: bool },
    /// The answers to a form of an MCP server.
    Form(Form),
    /// The answers to questions of the agent.
    Input,
}

/// The content of the event for a request.
#[derive(Debug)]
pub(super) enum RequestContent {
    Permission { tool: Tool, tool_id: Option<String>, input: Value },
    Question(Vec<QuestionItem>),
}

/// A tool that needs permission.
#[derive(Debug)]
pub(super) enum Tool {
    Own(&'static str),
    /// A tool of an MCP server, with the server's wire name.
    Mcp {
        server: String,
        tool: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    item_id: Option<String>,
    reason: Option<String>,
    command: Option<String>,
    cwd: Option<String>,
    #[serde(default, deserialize_with = "if_readable")]
    network_approval_context: Option<Value>,
    #[serde(default, deserialize_with = "if_readable")]
    additional_permissions: Option<Value>,
    grant_root: Option<String>,
    #[serde(default, deserialize_with = "if_readable")]
    permissions: Option<Value>,
    #[serde(default, deserialize_with = "if_readable")]
    questions: Vec<Value>,
    server_name: Option<String>,
    mode: Option<String>,
    message: Option<String>,
    #[serde(default, deserialize_with = "if_readable")]
    requested_schema: Option<Value>,
    #[serde(default, rename = "_meta", deserialize_with = "if_readable")]
    meta: Option<Value>,
}

impl ServerRequest {
    /// Reads a request; `None` if it is not supported.
    pub(super) fn read(method: &str, params: &str) -> Option<Self> {
        let is_ours = matches!(
            method,
            "item/commandExecution/requestApproval"
                | "item/fileChange/requestApproval"
                | "item/permissions/requestApproval"
                | "item/tool/requestUserInput"
                | "mcpServer/elicitation/request"
        );
        let params: Params = serde_json::from_str(params).ok().filter(|_| is_ours)?;
        let own = |tool, tool_id, input| RequestContent::Permission {
            tool: Tool::Own(tool),
            tool_id,
            input: Value::Object(input),
        };
        let mut input = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value.filter(|value| !value.is_null()) {
                input.insert(name.to_owned(), value);
            }
        };
        Some(match method {
            "item/commandExecution/requestApproval" => {
                put("command", params.command.map(Value::from));
                put("cwd", params.cwd.map(Value::from));
                put("reason", params.reason.map(Value::from));
                put("network", params.network_approval_context);
                put("additionalPermissions", params.additional_permissions);
                Self { kind: Kind::Decision, content: own("command_execution", params.item_id, input) }
            }
            "item/fileChange/requestApproval" => {
                put("reason", params.reason.map(Value::from));
                put("grantRoot", params.grant_root.map(Value::from));
                Self { kind: Kind::Decision, content: own("file_change", params.item_id, input) }
            }
            "item/permissions/requestApproval" => {
                let permissions = params.permissions.unwrap_or_default();
                put("permissions", Some(permissions.clone()));
                put("reason", params.reason.map(Value::from));
                let content = own("request_permissions", params.item_id, input);
                Self { kind: Kind::Permissions(without_nulls(permissions)), content }
            }
            "item/tool/requestUserInput" => {
                let questions = params.questions.iter().filter_map(question).collect();
                Self { kind: Kind::Input, content: RequestContent::Question(questions) }
            }
            _ => Self::elicitation(params)?,
        })
    }

    /// Reads a form of an MCP server. The agent uses the same method to request permission for an MCP tool.
    fn elicitation(params: Params) -> Option<Self> {
        if params.mode.as_deref() != Some("form") {
            return None;
        }
        let meta = params.meta.unwrap_or_default();
        let text = |name: &str| meta.get(name).and_then(Value::as_str).map(str::to_owned);
        match meta.get("codex_approval_kind") {
            Some(kind) if kind == "mcp_tool_call" => {
                let persist = meta.get("persist").and_then(Value::as_array).into_iter().flatten();
                let kind = Kind::McpTool { for_session: persist.into_iter().any(|scope| scope == "session") };
                let tool = Tool::Mcp { server: params.server_name?, tool: text("tool_name")? };
                let input = meta.get("tool_params").cloned().unwrap_or_else(|| json!({}));
                Some(Self { kind, content: RequestContent::Permission { tool, tool_id: None, input } })
            }
            Some(_) => None,
            None => {
                let form = Form::read(&params.message.unwrap_or_default(), &params.requested_schema?)?;
                let content = RequestContent::Question(form.questions());
                Some(Self { kind: Kind::Form(form), content })
            }
        }
    }

    /// Returns whether an answer changes the call. The app-server does not support that, so the call is denied.
    pub(super) fn is_changed_by(&self, answer: &Answer) -> bool {
        match (&self.content, answer) {
            (RequestContent::Permission { input, .. }, Answer::Allow { input: Some(other) }) => input != other,
            _ => false,
        }
    }

    /// Adds a detail of the call that the request does not contain.
    pub(super) fn add(&mut self, name: &str, value: Value) {
        if let RequestContent::Permission { input: Value::Object(fields), .. } = &mut self.content {
            fields.entry(name).or_insert(value);
        }
    }

    fn can_last(&self) -> bool {
        match &self.kind {
            Kind::Decision | Kind::Permissions(_) => true,
            Kind::McpTool { for_session } => *for_session,
            Kind::Form(_) | Kind::Input => false,
        }
    }

    /// Returns the result of the response.
    pub(super) fn response(&self, answer: &Answer) -> Value {
        let answer = &*without_option(answer);
        let allowed = matches!(answer, Answer::Allow { .. } | Answer::AllowAlways);
        let for_session = *answer == Answer::AllowAlways && self.can_last();
        match &self.kind {
            _ if self.is_changed_by(answer) => self.refusal(),
            Kind::Decision if for_session => json!({ "decision": "acceptForSession" }),
            Kind::Decision if allowed => json!({ "decision": "accept" }),
            Kind::Permissions(wanted) if allowed => {
                json!({ "permissions": wanted, "scope": if for_session { "session" } else { "turn" } })
            }
            Kind::McpTool { .. } if allowed => {
                let meta = if for_session { json!({ "persist": "session" }) } else { Value::Null };
                json!({ "action": "accept", "content": {}, "_meta": meta })
            }
            Kind::Form(form) => match answer {
                Answer::Choose(chosen) => form.filled(chosen).map_or_else(
                    || self.refusal(),
                    |content| json!({ "action": "accept", "content": content, "_meta": null }),
                ),
                _ => self.refusal(),
            },
            Kind::Input => match answer {
                Answer::Choose(chosen) => {
                    let answers: Map<_, _> =
                        chosen.iter().map(|(id, labels)| (id.clone(), json!({ "answers": labels }))).collect();
                    json!({ "answers": answers })
                }
                _ => self.refusal(),
            },
            _ => self.refusal(),
        }
    }

    fn refusal(&self) -> Value {
        match &self.kind {
            Kind::Decision => json!({ "decision": "decline" }),
            Kind::Permissions(_) => json!({ "permissions": {}, "scope": "turn" }),
            Kind::McpTool { .. } | Kind::Form(_) => json!({ "action": "decline", "content": null, "_meta": null }),
            Kind::Input => json!({ "answers": {} }),
        }
    }

    /// Returns the event of the request. MCP servers have the names that the caller gave.
    pub(super) fn event(&self, request_id: RequestId, names: &Names) -> Event {
        match &self.content {
            RequestContent::Permission { tool, tool_id, input } => {
                let (name, server, kind) = match tool {
                    Tool::Own(name) => ((*name).to_owned(), None, own_kind(name)),
                    // The name of the rule that would allow the call.
                    Tool::Mcp { server, tool } => {
                        let server = names.given(server);
                        (format!("mcp__{server}__{tool}"), Some(server.into()), ToolKind::Mcp)
                    }
                };
                let mut request = PermissionRequest::new(request_id, name, input.clone().into());
                request.tool_id = tool_id.as_deref().map(ToolId::from);
                request.kind = Some(kind);
                request.server = server;
                request.options = options(self.can_last());
                Event::PermissionRequest(Box::new(request))
            }
            RequestContent::Question(questions) => {
                Event::Question(Box::new(Question::new(request_id, questions.clone())))
            }
        }
    }
}

fn own_kind(tool: &str) -> ToolKind {
    match tool {
        "command_execution" => ToolKind::Execute,
        "file_change" => ToolKind::Edit,
        _ => ToolKind::Unclassified,
    }
}

fn question(question: &Value) -> Option<QuestionItem> {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let option = |option: &Value| {
        Some(QuestionOption::new(text(option, "label")?).with_description(text(option, "description").map(Into::into)))
    };
    let options = question.get("options").and_then(Value::as_array).into_iter().flatten();
    let item =
        QuestionItem::new(text(question, "id")?, text(question, "question")?, options.filter_map(option).collect());
    Some(item.with_header(text(question, "header").map(Into::into)))
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        other => other,
    }
}

/// Requests that wait for the caller's answer.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    /// With the app-server's ids.
    open: BTreeMap<RequestId, (Value, ServerRequest)>,
}

impl PendingRequests {
    /// Whether no request waits.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn insert(&mut self, request: RequestId, id: Value, pending: ServerRequest) {
        self.open.insert(request, (id, pending));
    }

    /// Removes a pending request, and returns it with the app-server's id.
    pub(super) fn take(&mut self, request: &RequestId) -> Option<(Value, ServerRequest)> {
        self.open.remove(request)
    }

    /// Removes a request for which the app-server no longer waits.
    pub(super) fn resolved(&mut self, id: &Value) -> Option<RequestId> {
        let request = self.open.iter().find(|(_, (known, _))| known == id).map(|(request, _)| request.clone())?;
        self.open.remove(&request);
        Some(request)
    }

    /// Removes all requests, because the turn has ended.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = RequestId> {
        std::mem::take(&mut self.open).into_keys()
    }
}
