//! Answers to permission requests and questions.

use serde::{Deserialize, Serialize};
use teamster_store::{Answer, AnswerOutcome, Decision, Effects, Permission, PermissionId, StoreError};

use super::gateway::Gateway;
use super::running::TurnCommand;
use crate::error::GatewayError;
use crate::event::GatewayEvent;
use crate::failpoints::failpoint;

/// Who answers a permission request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The id: `CHANNEL:AUTHOR`, or `token:ID`.
    pub id: String,
    /// Whether it may answer all requests, as the operator.
    pub answers_all: bool,
}

/// The outcome of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerResult {
    /// It was accepted.
    Applied(Permission),
    /// The request was answered or closed before.
    Closed(Permission),
    /// The time limit has passed, or the agent no longer runs.
    Expired(Permission),
}

/// The fields of a stored permission request that answers need.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Approvers {
    pub(super) approvers: Vec<String>,
}

impl Gateway {
    /// Answers a permission request or a question once. `message` is the reason for the agent, or the answer to a question.
    ///
    /// # Errors
    /// The caller may not answer this request. The request stays open.
    pub async fn answer_permission(
        &self,
        id: PermissionId,
        decision: Decision,
        message: Option<String>,
        caller: &Caller,
    ) -> Result<AnswerResult, GatewayError> {
        let shared = &self.shared;
        let found = shared.store.permission(id).await?;
        let found = found.ok_or_else(|| permission_not_found(id))?;
        let allowed: Approvers = found.body.to()?;
        if !caller.answers_all && !allowed.approvers.iter().any(|id| *id == caller.id || id == "*") {
            let reason = "you are not an approver of this request: the operator's rules list the approvers".to_owned();
            return Err(GatewayError::Forbidden { reason });
        }
        let event = GatewayEvent::PermissionAnswered {
            request_id: id.to_string(),
            decision: decision_name(decision).to_owned(),
            by: Some(caller.id.clone()),
            message: message.clone(),
        };
        let event = shared.event(&event, Some(found.turn))?;
        let deliveries = self.closed_prompt(&found, decision.outcome(), Some(&caller.id)).await?;
        let effects = Effects { events: vec![event], deliveries };
        let answer = Answer { id, decision, by: caller.id.clone(), message, effects };
        let outcome = shared.store.answer_permission(answer, shared.clock.now()).await?;
        failpoint!("permission.answered");
        Ok(match outcome {
            AnswerOutcome::Applied(permission) => {
                shared.running.send(permission.turn, TurnCommand::Answered(id));
                self.announce_growth(permission.conversation);
                AnswerResult::Applied(permission)
            }
            AnswerOutcome::Closed(permission) => AnswerResult::Closed(permission),
            AnswerOutcome::Expired(permission) => AnswerResult::Expired(permission),
        })
    }
}

fn decision_name(decision: Decision) -> &'static str {
    match decision {
        Decision::Allow => "allow",
        Decision::AllowAlways => "allow_always",
        Decision::Deny => "deny",
    }
}

fn permission_not_found(id: PermissionId) -> GatewayError {
    StoreError::NotFound { entity: teamster_store::Entity::Permission, id: id.to_string() }.into()
}
