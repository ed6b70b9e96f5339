//! The options of permission requests, for agents that list none themselves.

use std::borrow::Cow;

use crate::protocol::Action;
use teamster_types::event::{
    AnsweredBy, Event, PermissionAnswered, PermissionDecision, PermissionOption, PermissionOptionKind,
};
use teamster_types::request::Answer;

const ALLOW: &str = "allow";
const ALLOW_ALWAYS: &str = "allow_always";
const DENY: &str = "deny";

/// Returns the options of a permission request. `always` adds the option for the rest of the session.
pub(super) fn options(always: bool) -> Vec<PermissionOption> {
    let option = |id: &str, name: &str, kind| PermissionOption::new(id, name, kind);
    let mut options = vec![option(ALLOW, "Allow", PermissionOptionKind::AllowOnce)];
    if always {
        options.push(option(ALLOW_ALWAYS, "Allow for this session", PermissionOptionKind::AllowAlways));
    }
    options.push(option(DENY, "Deny", PermissionOptionKind::RejectOnce));
    options
}

/// Replaces the choice of an option by its meaning. An unknown option is a denial.
pub(super) fn without_option(answer: &Answer) -> Cow<'_, Answer> {
    let Answer::Option { option_id } = answer else { return Cow::Borrowed(answer) };
    Cow::Owned(match option_id.as_str() {
        ALLOW => Answer::Allow { input: None },
        ALLOW_ALWAYS => Answer::AllowAlways,
        _ => Answer::Deny { message: None },
    })
}

/// Returns the event of a permission request that was answered without the caller; `None` for a question.
pub(super) fn automatic_answer(
    request: Event,
    decision: PermissionDecision,
    by: AnsweredBy,
    why: &str,
) -> Option<Action> {
    let Event::PermissionRequest(request) = request else { return None };
    let answered = PermissionAnswered::automatic(request, decision, by);
    let answered = if why.is_empty() { answered } else { answered.because(why) };
    Some(Action::Emit(answered.into()))
}
