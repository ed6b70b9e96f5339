//! Permission requests and questions of agents.

use std::collections::BTreeMap;

use axum::extract::State as Extract;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use teamster_store::{ConversationId, Decision, Permission, PermissionFilter, PermissionId, PermissionOutcome, TurnId};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::audit::audit_from;
use super::extract::{Authenticated, Body, Id, Params, complete};
use super::problem::{Problem, ProblemCode, Result};
use super::settings::CHANNEL;
use super::state::State;
use super::wire::{List, Time, check_length, document, page, read};
use crate::access::Scope;
use crate::engine::{AnswerResult, Caller, Gateway};

/// The largest number of characters of a message.
const MESSAGE_LENGTH: usize = 20_000;

/// Which permission requests are listed.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(super) struct PermissionQuery {
    /// `open` lists only requests that wait for an answer.
    #[param(inline)]
    state: Option<StateFilter>,
    /// Only requests of this conversation.
    conversation_id: Option<Uuid>,
    /// Only requests of this turn.
    turn_id: Option<Uuid>,
    /// The number of items.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u32>,
    /// The position of the page: `nextCursor` of the page before.
    #[param(pattern = "^[0-9]{1,18}$")]
    cursor: Option<String>,
}

/// A filter by state.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum StateFilter {
    /// Requests that wait for an answer.
    Open,
    /// All requests.
    All,
}

/// The state of a permission request.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = PermissionState)]
pub(super) enum StateName {
    /// It waits for an answer.
    Open,
    /// A person allowed it once.
    Allowed,
    /// A person allowed it and later requests of this kind.
    AllowedAlways,
    /// A person denied it.
    Denied,
    /// Its time limit passed.
    TimedOut,
    /// The worker of its turn died.
    WorkerLost,
    /// Its turn ended.
    TurnEnded,
}

/// A permission request or a question of an agent.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PermissionRequest)]
pub(super) struct PermissionView {
    /// Its id.
    id: Uuid,
    /// The conversation.
    conversation_id: Uuid,
    /// The turn that waits for the answer.
    turn_id: Uuid,
    /// Its state.
    state: StateName,
    /// The request of the agent: the event `permission_request` or `question`, with `approvers`, who may answer.
    #[schema(value_type = Object)]
    request: Box<RawValue>,
    /// When it was made.
    requested_at: Time,
    /// An answer at this time or later has no effect.
    deadline: Time,
    /// Who answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    answered_by: Option<String>,
    /// The message for the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// When it was closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    closed_at: Option<Time>,
}

/// An answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AnswerRequest {
    /// The decision.
    decision: DecisionName,
    /// A message for the agent: the reason, or one answer to all questions.
    #[schema(max_length = 20_000, pattern = r"^[^\x00]*$")]
    message: Option<String>,
    /// The answers to questions, by the id of the question: labels of options, or own texts.
    answers: Option<BTreeMap<String, Vec<String>>>,
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Decision)]
pub(super) enum DecisionName {
    /// Allow it once, or answer the questions.
    Allow,
    /// Allow it and later requests of this kind until the session ends.
    AllowAlways,
    /// Deny it, or decline to answer.
    Deny,
}

/// Lists permission requests, the oldest first.
#[utoipa::path(get, path = "/v1/permission-requests", tag = "permissions", operation_id = "listPermissionRequests",
    params(PermissionQuery), responses((status = 200, body = List<PermissionView>)))]
pub(super) async fn list(
    Extract(api): State,
    caller: Authenticated,
    Params(query): Params<PermissionQuery>,
) -> Result<axum::Json<List<PermissionView>>> {
    caller.require(Scope::Read)?;
    let filter = PermissionFilter {
        open: matches!(query.state, Some(StateFilter::Open)),
        conversation: query.conversation_id.map(ConversationId::new),
        turn: query.turn_id.map(TurnId::new),
    };
    let found = api.gateway.store().permissions(filter, page(query.limit, query.cursor)?).await?;
    super::wire::list(found, view).map(axum::Json)
}

/// Returns a permission request.
#[utoipa::path(get, path = "/v1/permission-requests/{id}", tag = "permissions", operation_id = "getPermissionRequest",
    params(("id" = Uuid, Path, description = "The request.")), responses((status = 200, body = PermissionView)))]
pub(super) async fn get(
    Extract(api): State,
    caller: Authenticated,
    Id(id): Id<PermissionId>,
) -> Result<axum::Json<PermissionView>> {
    caller.require(Scope::Read)?;
    view(find(&api.gateway, id).await?).map(axum::Json)
}

/// Answers a permission request or a question once.
#[utoipa::path(post, path = "/v1/permission-requests/{id}/answer", tag = "permissions",
    operation_id = "answerPermissionRequest", params(("id" = Uuid, Path, description = "The request.")),
    request_body = AnswerRequest, responses((status = 200, body = PermissionView)))]
pub(super) async fn answer(
    Extract(api): State,
    caller: Authenticated,
    Id(id): Id<PermissionId>,
    Body(request): Body<AnswerRequest>,
) -> Result<axum::Json<PermissionView>> {
    caller.require(Scope::Approve)?;
    let found = find(&api.gateway, id).await?;
    let message = message_for_agent(&request, &found)?;
    let gateway = api.gateway.clone();
    let answered = complete(async move {
        let who = answering(&caller, &found)?;
        let permission = match gateway.answer_permission(id, request.decision.into(), message, &who).await? {
            AnswerResult::Applied(permission) => permission,
            AnswerResult::Closed(permission) => return Err(closed(permission)),
            AnswerResult::Expired(_) => {
                let detail = "the time limit of the request has passed, or its agent no longer runs";
                return Err(Problem::new(ProblemCode::Expired, detail));
            }
        };
        let action = format!("permission.{}", request.decision.name());
        audit_from(&gateway, &caller, &action, &id.to_string()).await;
        Ok(permission)
    });
    view(answered.await?).map(axum::Json)
}

/// Returns who answers: the token, if the request names it, else the owner of the token.
fn answering(caller: &Authenticated, permission: &Permission) -> Result<Caller> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Approvers {
        approvers: Vec<String>,
    }
    let Approvers { approvers } = read(&permission.body)?;
    let token = caller.identity.token.map(|token| format!("token:{token}"));
    let token = token.filter(|token| approvers.contains(token));
    let id = token.unwrap_or_else(|| format!("{CHANNEL}:{}", caller.identity.owner));
    Ok(Caller { id, answers_all: caller.is_admin() })
}

/// Returns the message as the agent's turn reads it: answers to questions are one JSON object.
fn message_for_agent(request: &AnswerRequest, permission: &Permission) -> Result<Option<String>> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Asked {
        r#type: String,
    }
    let asked: Asked = read(&permission.body)?;
    let is_question = asked.r#type == "question";
    let has_message = request.message.as_ref().is_some_and(|message| !message.trim().is_empty());
    check_length("message", request.message.as_deref().unwrap_or_default(), MESSAGE_LENGTH)?;
    let Some(answers) = &request.answers else {
        if is_question && request.decision != DecisionName::Deny && !has_message {
            return Err(Problem::invalid("answers", "must be set: the agent asks questions"));
        }
        return Ok(request.message.clone());
    };
    if !is_question {
        return Err(Problem::invalid("answers", "must be absent: the request has no questions"));
    }
    if request.decision == DecisionName::Deny || request.message.is_some() {
        return Err(Problem::invalid("answers", "requires the decision allow, and no message"));
    }
    let text = serde_json::to_string(answers).map_err(|error| Problem::internal(&error))?;
    check_length("answers", &text, MESSAGE_LENGTH)?;
    Ok(Some(text))
}

fn closed(permission: Permission) -> Problem {
    let state = StateName::of(&permission);
    let state = serde_json::to_value(state).ok().and_then(|name| name.as_str().map(str::to_owned));
    let by = permission.closing.and_then(|closing| closing.by);
    let who = by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let detail = format!("the request is {}{who}", state.unwrap_or_default().replace('_', " "));
    Problem::new(ProblemCode::AlreadyAnswered, detail).answered_by(by)
}

async fn find(gateway: &Gateway, id: PermissionId) -> Result<Permission> {
    gateway.store().permission(id).await?.ok_or_else(|| Problem::not_found("permission request", id))
}

fn view(permission: Permission) -> Result<PermissionView> {
    let state = StateName::of(&permission);
    let (answered_by, message, closed_at) = match permission.closing {
        Some(closing) => (closing.by, closing.message, Some(Time(closing.at))),
        None => (None, None, None),
    };
    Ok(PermissionView {
        id: permission.id.uuid(),
        conversation_id: permission.conversation.uuid(),
        turn_id: permission.turn.uuid(),
        state,
        request: document(&permission.body)?,
        requested_at: Time(permission.requested_at),
        deadline: Time(permission.deadline),
        answered_by,
        message,
        closed_at,
    })
}

impl StateName {
    fn of(permission: &Permission) -> Self {
        match permission.closing.as_ref().map(|closing| closing.outcome) {
            None => Self::Open,
            Some(PermissionOutcome::Allowed) => Self::Allowed,
            Some(PermissionOutcome::AllowedAlways) => Self::AllowedAlways,
            Some(PermissionOutcome::Denied) => Self::Denied,
            Some(PermissionOutcome::TimedOut) => Self::TimedOut,
            Some(PermissionOutcome::WorkerLost) => Self::WorkerLost,
            Some(PermissionOutcome::TurnEnded) => Self::TurnEnded,
        }
    }
}

impl DecisionName {
    const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::AllowAlways => "allow_always",
            Self::Deny => "deny",
        }
    }
}

impl From<DecisionName> for Decision {
    fn from(decision: DecisionName) -> Self {
        match decision {
            DecisionName::Allow => Self::Allow,
            DecisionName::AllowAlways => Self::AllowAlways,
            DecisionName::Deny => Self::Deny,
        }
    }
}
