//! Permission requests of the agent, and the responses.
//!
//! Invariant: a request gets one response, which selects an option that permits no more than the answer does. If there is no such
//! option, nothing is permitted.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::questions::Question;
use super::wire::PermissionChoice;
use teamster_types::event::{PermissionDecision, PermissionOption, PermissionOptionKind, RequestId};
use teamster_types::request::{Answer, PermissionMode};

/// Pending requests, by our ids.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    open: BTreeMap<RequestId, Pending>,
    questions: BTreeMap<RequestId, Question>,
    /// The number of requests so far.
    count: u64,
}

/// A permission request of the agent.
#[derive(Debug)]
pub(super) struct Pending {
    /// The agent's id of the request.
    pub(super) id: Value,
    /// The id of the tool call.
    pub(super) call: String,
    options: Vec<PermissionChoice>,
}

/// The response to a request.
#[derive(Debug, PartialEq)]
pub(super) struct Reply {
    pub(super) result: Value,
    /// The selected option.
    pub(super) option: Option<PermissionOption>,
    /// Whether the call is permitted.
    pub(super) allows: bool,
}

impl Pending {
    pub(super) fn new(id: Value, call: String, options: Vec<PermissionChoice>) -> Self {
        Self { id, call, options }
    }

    /// Returns the options as the caller sees them.
    pub(super) fn options(&self) -> Vec<PermissionOption> {
        self.options.iter().map(option).collect()
    }

    /// Returns the response for an answer. Changed arguments and choices cannot be sent, so they are denials. Of several options of
    /// one kind, the one with the lowest rank is selected.
    pub(super) fn reply(&self, answer: &Answer, rank: impl Fn(&str) -> u8) -> Reply {
        if let Answer::Option { option_id } = answer {
            let listed = self.options.iter().find(|option| option.option_id == *option_id);
            return listed.map_or_else(cancelled, selected);
        }
        let kinds: &[&str] = match answer {
            Answer::Allow { input: None } => &["allow_once"],
            Answer::AllowAlways => &["allow_always", "allow_once"],
            _ => &["reject_once", "reject_always"],
        };
        let least = |kind: &&str| {
            let options = self.options.iter().filter(|option| option.kind == **kind);
            options.min_by_key(|option| rank(&option.option_id))
        };
        let found = kinds.iter().find_map(least);
        match found {
            Some(option) => selected(option),
            // There is no option that permits the call, so it is denied.
            None if matches!(answer, Answer::Allow { input: None } | Answer::AllowAlways) => {
                self.reply(&Answer::Deny { message: None }, rank)
            }
            None => cancelled(),
        }
    }
}

impl Reply {
    /// Returns the decision. An agent does not make the call of a cancelled request.
    pub(super) fn decision(&self) -> PermissionDecision {
        match self.option.as_ref().map(|option| &option.kind) {
            Some(PermissionOptionKind::AllowOnce) => PermissionDecision::Allow,
            Some(PermissionOptionKind::AllowAlways) => PermissionDecision::AllowAlways,
            Some(PermissionOptionKind::RejectOnce) | None => PermissionDecision::Deny,
            Some(PermissionOptionKind::RejectAlways) => PermissionDecision::DenyAlways,
            Some(other) => PermissionDecision::from(other.as_str()),
        }
    }
}

fn option(choice: &PermissionChoice) -> PermissionOption {
    PermissionOption::new(
        choice.option_id.clone(),
        choice.name.clone(),
        PermissionOptionKind::from(choice.kind.as_str()),
    )
}

/// Returns the response that selects an option. An option of an unknown kind may permit the call, so it is not reported as a denial.
fn selected(choice: &PermissionChoice) -> Reply {
    Reply {
        result: json!({"outcome": {"outcome": "selected", "optionId": choice.option_id}}),
        option: Some(option(choice)),
        allows: !choice.kind.starts_with("reject_"),
    }
}

/// Returns the response to a request of a cancelled turn.
pub(super) fn cancelled() -> Reply {
    Reply { result: json!({"outcome": {"outcome": "cancelled"}}), option: None, allows: false }
}

/// Returns the answer of the permission mode, if the mode decides the request.
pub(super) fn by_mode(mode: PermissionMode, kind: &str) -> Option<Answer> {
    let is_read_only = matches!(kind, "read" | "search" | "fetch" | "think");
    match mode {
        PermissionMode::Full => Some(Answer::Allow { input: None }),
        PermissionMode::Edit if kind == "edit" => Some(Answer::Allow { input: None }),
        PermissionMode::ReadOnly if !is_read_only => {
            Some(Answer::Deny { message: Some("The mode is read-only.".to_owned()) })
        }
        PermissionMode::Edit | PermissionMode::Ask | PermissionMode::ReadOnly => None,
    }
}

impl PendingRequests {
    /// Adds a question that waits for an answer.
    pub(super) fn insert_question(&mut self, id: RequestId, question: Question) {
        self.questions.insert(id, question);
    }

    /// Removes a question that is answered.
    pub(super) fn take_question(&mut self, id: &RequestId) -> Option<Question> {
        self.questions.remove(id)
    }

    /// Removes the question with the agent's id, which the agent has cancelled.
    pub(super) fn take_cancelled_question(&mut self, agents_id: &Value) -> Option<(RequestId, Question)> {
        let id = self.questions.iter().find(|(_, question)| question.id == *agents_id).map(|(id, _)| id.clone())?;
        self.questions.remove_entry(&id)
    }

    /// Removes all questions.
    pub(super) fn take_questions(&mut self) -> BTreeMap<RequestId, Question> {
        std::mem::take(&mut self.questions)
    }

    /// Returns a new id for a request.
    pub(super) fn next_id(&mut self) -> RequestId {
        self.count += 1;
        RequestId::from(format!("permission-{}", self.count))
    }

    /// Adds a request that waits for an answer.
    pub(super) fn insert(&mut self, id: RequestId, pending: Pending) {
        self.open.insert(id, pending);
    }

    /// Removes a request that is answered.
    pub(super) fn take(&mut self, id: &RequestId) -> Option<Pending> {
        self.open.remove(id)
    }

    /// Removes the request with the agent's id, which the agent has cancelled.
    pub(super) fn take_cancelled(&mut self, agents_id: &Value) -> Option<(RequestId, Pending)> {
        let id = self.open.iter().find(|(_, pending)| pending.id == *agents_id).map(|(id, _)| id.clone())?;
        self.open.remove_entry(&id)
    }

    /// Removes all requests.
    pub(super) fn take_all(&mut self) -> BTreeMap<RequestId, Pending> {
        std::mem::take(&mut self.open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(kinds: &[&str]) -> Pending {
        let option = |kind: &&str| PermissionChoice {
            option_id: format!("id-{kind}"),
            name: (*kind).to_owned(),
            kind: (*kind).to_owned(),
        };
        Pending::new(json!(0), "call".to_owned(), kinds.iter().map(option).collect())
    }

    #[test]
    fn a_response_never_permits_more_than_the_answer() {
        let allow = Answer::Allow { input: None };
        let other = Answer::Allow { input: Some(json!({})) };
        let deny = Answer::Deny { message: None };
        let never = Answer::Option { option_id: "id-reject_always".to_owned() };
        for (kinds, answer, option) in [
            (&["allow_always", "allow_once", "reject_once"][..], &allow, Some("allow_once")),
            (&["allow_always", "reject_once"], &allow, Some("reject_once")),
            (&["allow_always"], &allow, None),
            (&["allow_once", "allow_always"], &Answer::AllowAlways, Some("allow_always")),
            (&["allow_once"], &Answer::AllowAlways, Some("allow_once")),
            (&["allow_once", "reject_once"], &other, Some("reject_once")),
            (&["allow_once", "reject_always"], &deny, Some("reject_always")),
            (&["allow_once", "made_up"], &deny, None),
            (&[], &Answer::AllowAlways, None),
            (&["allow_once", "reject_once"], &Answer::Choose(BTreeMap::new()), Some("reject_once")),
            (&["allow_once", "reject_once", "reject_always"], &never, Some("reject_always")),
            (&["allow_once", "reject_once"], &never, None),
        ] {
            let reply = pending(kinds).reply(answer, |_| 0);
            let expected = match option {
                Some(kind) => json!({"outcome": {"outcome": "selected", "optionId": format!("id-{kind}")}}),
                None => json!({"outcome": {"outcome": "cancelled"}}),
            };
            assert_eq!(reply.result, expected, "{kinds:?} {answer:?}");
            assert_eq!(reply.allows, option.is_some_and(|kind| kind.starts_with("allow")), "{kinds:?} {answer:?}");
        }
    }
}
