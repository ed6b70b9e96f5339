//! What the agent asks leave for, and the answers.
//!
//! Invariant: a request is answered once, and by an option that allows no more than the answer does; where there is no such
//! option, nothing is allowed.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::wire::PermissionChoice;
use teamster_types::event::{PermissionDecision, PermissionOption, PermissionOptionKind, RequestId};
use teamster_types::request::{Answer, PermissionMode};

/// Requests that wait, by our ids.
#[derive(Debug, Default)]
pub(super) struct Dialog {
    open: BTreeMap<RequestId, Asked>,
    asked: u64,
}

/// A request that waits.
#[derive(Debug)]
pub(super) struct Asked {
    /// The agent's id of it.
    pub(super) id: Value,
    /// The call that waits for leave.
    pub(super) call: String,
    options: Vec<PermissionChoice>,
}

/// An answer, as it goes to the agent.
#[derive(Debug, PartialEq)]
pub(super) struct Reply {
    pub(super) result: Value,
    /// The option that it chooses.
    pub(super) option: Option<PermissionOption>,
    /// Whether the call may be made.
    pub(super) allows: bool,
}

impl Asked {
    pub(super) fn new(id: Value, call: String, options: Vec<PermissionChoice>) -> Self {
        Self { id, call, options }
    }

    /// The options as callers see them.
    pub(super) fn options(&self) -> Vec<PermissionOption> {
        self.options.iter().map(option).collect()
    }

    /// What is answered. An agent takes no other arguments and no choices: neither is leave. Of options that do the same the
    /// one of the lowest rank is taken.
    pub(super) fn reply(&self, answer: &Answer, rank: impl Fn(&str) -> u8) -> Reply {
        if let Answer::Option { option_id } = answer {
            let listed = self.options.iter().find(|option| option.option_id == *option_id);
            return listed.map_or_else(cancelled, chosen);
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
            Some(option) => chosen(option),
            // Where leave was given and there is no option for it, it is refused.
            None if matches!(answer, Answer::Allow { input: None } | Answer::AllowAlways) => {
                self.reply(&Answer::Deny { message: None }, rank)
            }
            None => cancelled(),
        }
    }
}

impl Reply {
    /// What it says. An agent that is answered that the request is cancelled does not make the call.
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
    PermissionOption {
        option_id: choice.option_id.clone().into(),
        name: choice.name.clone().into(),
        kind: PermissionOptionKind::from(choice.kind.as_str()),
    }
}

/// Chooses an option. One of a kind that we do not know may allow the call: that it was denied must not be said.
fn chosen(choice: &PermissionChoice) -> Reply {
    Reply {
        result: json!({"outcome": {"outcome": "selected", "optionId": choice.option_id}}),
        option: Some(option(choice)),
        allows: !choice.kind.starts_with("reject_"),
    }
}

/// The answer to a request of a turn that is being cancelled.
pub(super) fn cancelled() -> Reply {
    Reply { result: json!({"outcome": {"outcome": "cancelled"}}), option: None, allows: false }
}

/// What the permission mode itself answers.
pub(super) fn by_mode(mode: PermissionMode, kind: &str) -> Option<Answer> {
    let reads = matches!(kind, "read" | "search" | "fetch" | "think");
    match mode {
        PermissionMode::Full => Some(Answer::Allow { input: None }),
        PermissionMode::Edit if kind == "edit" => Some(Answer::Allow { input: None }),
        PermissionMode::ReadOnly if !reads => Some(Answer::Deny { message: Some("The mode is read-only.".to_owned()) }),
        PermissionMode::Edit | PermissionMode::Ask | PermissionMode::ReadOnly => None,
    }
}

impl Dialog {
    /// An id for a request.
    pub(super) fn next_id(&mut self) -> RequestId {
        self.asked += 1;
        RequestId::from(format!("permission-{}", self.asked))
    }

    /// Notes a request that waits from now on.
    pub(super) fn wait(&mut self, id: RequestId, asked: Asked) {
        self.open.insert(id, asked);
    }

    /// Takes a request that is answered.
    pub(super) fn take(&mut self, id: &RequestId) -> Option<Asked> {
        self.open.remove(id)
    }

    /// Takes the request of which the agent says that it waits no longer.
    pub(super) fn take_theirs(&mut self, theirs: &Value) -> Option<(RequestId, Asked)> {
        let id = self.open.iter().find(|(_, asked)| asked.id == *theirs).map(|(id, _)| id.clone())?;
        self.open.remove_entry(&id)
    }

    /// Takes all.
    pub(super) fn take_all(&mut self) -> BTreeMap<RequestId, Asked> {
        std::mem::take(&mut self.open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(kinds: &[&str]) -> Asked {
        let option = |kind: &&str| PermissionChoice {
            option_id: format!("id-{kind}"),
            name: (*kind).to_owned(),
            kind: (*kind).to_owned(),
        };
        Asked::new(json!(0), "call".to_owned(), kinds.iter().map(option).collect())
    }

    #[test]
    fn an_answer_never_allows_more_than_it_says() {
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
            let reply = asked(kinds).reply(answer, |_| 0);
            let expected = match option {
                Some(kind) => json!({"outcome": {"outcome": "selected", "optionId": format!("id-{kind}")}}),
                None => json!({"outcome": {"outcome": "cancelled"}}),
            };
            assert_eq!(reply.result, expected, "{kinds:?} {answer:?}");
            assert_eq!(reply.allows, option.is_some_and(|kind| kind.starts_with("allow")), "{kinds:?} {answer:?}");
        }
    }
}
