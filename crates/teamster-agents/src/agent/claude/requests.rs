//! The permission requests and questions of the CLI in a session, and the answers (`can_use_tool` of 2.1.197's control protocol).
//!
//! Invariant: each request is answered once, and an answer allows only what was requested.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::control::{self, PermissionResponse};
use super::tools;
use super::wire::ControlRequest;
use crate::agent::mcp::Names;
use crate::agent::permission::{self, options, without_option};
use crate::protocol::{Action, ProcessAction, SessionAction};
use teamster_types::event::{
    AnsweredBy, Event, PermissionDecision, PermissionRequest, Question, QuestionItem, QuestionOption, RequestId,
    ToolKind,
};
use teamster_types::json::RawJson;
use teamster_types::request::Answer;

/// The tool with which the model asks the user to choose.
const ASK: &str = "AskUserQuestion";

/// The requests that wait for an answer, by their ids.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    pending: BTreeMap<String, PendingRequest>,
}

#[derive(Debug)]
struct PendingRequest {
    input: RawJson,
    /// Rules for this session that would make the CLI allow the call without a request.
    rules: Vec<Value>,
    is_question: bool,
}

impl PendingRequests {
    /// Adds a request of the CLI. Returns its event.
    pub(super) fn add(&mut self, id: String, request: ControlRequest, names: &Names) -> Action {
        let event = event(&id, &request, names);
        let rules = narrow_rules(request.tool_name.as_deref().unwrap_or_default(), &request.permission_suggestions);
        let is_question = matches!(event, Event::Question(_));
        self.pending.insert(id, PendingRequest { input: request.input, rules, is_question });
        Action::Emit(event)
    }

    /// Removes a request that the CLI has withdrawn.
    pub(super) fn withdraw(&mut self, id: &str) -> Option<Action> {
        self.pending.remove(id).map(|_| Action::Session(SessionAction::Withdraw(RequestId::from(id))))
    }

    /// Answers a pending request.
    pub(super) fn answer(&mut self, id: &RequestId, answer: &Answer) -> Option<Action> {
        let request = self.pending.remove(id.as_str())?;
        Some(Action::Process(ProcessAction::Write(control::respond(id.as_str(), &response(request, answer)))))
    }

    /// Withdraws all requests at the end of a turn.
    pub(super) fn clear(&mut self, actions: &mut Vec<Action>) {
        actions.extend(
            std::mem::take(&mut self.pending)
                .into_keys()
                .map(|id| Action::Session(SessionAction::Withdraw(RequestId::from(id.as_str())))),
        );
    }
}

/// Converts a request of the CLI to an event.
fn event(id: &str, request: &ControlRequest, names: &Names) -> Event {
    let tool_name = request.tool_name.as_deref().unwrap_or_default();
    let questions =
        if tool_name == ASK { questions(&request.input.to_value().unwrap_or_default()) } else { Vec::new() };
    let request_id = RequestId::from(id);
    if !questions.is_empty() {
        return Event::Question(Box::new(Question::new(request_id, questions)));
    }
    let (server, kind) = match names.guess(tool_name) {
        Some((server, _)) => (Some(server.into()), ToolKind::Mcp),
        None => (None, tools::kind(tool_name)),
    };
    let always = !narrow_rules(tool_name, &request.permission_suggestions).is_empty();
    let mut event = PermissionRequest::new(request_id, names.rule(tool_name), request.input.clone());
    event.tool_id = request.tool_use_id.as_deref().map(Into::into);
    event.kind = Some(kind);
    event.server = server;
    event.targets = request.blocked_path.iter().map(|path| path.as_str().into()).collect();
    event.options = options(always);
    Event::PermissionRequest(Box::new(event))
}

/// Returns the event of a permission request that was answered without the caller; `None` for other requests.
pub(super) fn automatic_answer(
    id: &str,
    request: &ControlRequest,
    names: &Names,
    decision: PermissionDecision,
    by: AnsweredBy,
    why: &str,
) -> Option<Action> {
    if request.subtype != "can_use_tool" {
        return None;
    }
    permission::automatic_answer(event(id, request, names), decision, by, why)
}

fn response(request: PendingRequest, answer: &Answer) -> PermissionResponse {
    let PendingRequest { input, rules, is_question } = request;
    let (allow, deny) = (PermissionResponse::allow, PermissionResponse::deny);
    match &*without_option(answer) {
        Answer::Choose(chosen) if is_question => {
            allow(with_answers(input.to_value().unwrap_or_default(), chosen).into())
        }
        Answer::Choose(_) => deny("A choice does not answer a permission request."),
        Answer::Allow { .. } | Answer::AllowAlways if is_question => deny("The user did not choose."),
        Answer::Allow { input: other } => allow(other.as_ref().map_or(input, RawJson::from)),
        Answer::AllowAlways => PermissionResponse::Allow { updated_input: input, updated_permissions: Some(rules) },
        Answer::Deny { message } => deny(message.as_deref().unwrap_or("The user denied this.")),
        Answer::Option { .. } => deny("The user denied this."),
    }
}

/// Returns the suggestions that only add allow rules for this tool. They hold for the session.
///
/// Other suggestions would change the mode or add directories, and allow more than was requested. An unchanged suggestion would
/// write its rules to a file of the project.
fn narrow_rules(tool: &str, suggestions: &[Value]) -> Vec<Value> {
    let is = |suggestion: &Value, key: &str, word: &str| suggestion.get(key).is_some_and(|value| value == word);
    let adds = |suggestion: &Value| is(suggestion, "type", "addRules") && is(suggestion, "behavior", "allow");
    let narrow = |suggestion: &Value| {
        let rules = suggestion.get("rules")?.as_array().filter(|_| adds(suggestion))?;
        let is_narrow = !rules.is_empty() && rules.iter().all(|rule| is_narrow(tool, rule));
        is_narrow.then(|| json!({ "type": "addRules", "behavior": "allow", "destination": "session", "rules": rules }))
    };
    suggestions.iter().filter_map(narrow).collect()
}

/// Whether a rule applies to this tool, and not to all commands or files.
fn is_narrow(tool: &str, rule: &Value) -> bool {
    let content = rule.get("ruleContent").and_then(Value::as_str).unwrap_or_default();
    let is_all = content.trim_matches(['*', ':', '/', '.', ' ']).is_empty();
    rule.get("toolName").is_some_and(|name| name == tool) && !(is_all && tools::takes_commands_or_files(tool))
}

fn with_answers(mut input: Value, chosen: &BTreeMap<String, Vec<String>>) -> Value {
    let answers: Map<_, _> = chosen.iter().map(|(id, labels)| (id.clone(), labels.join(", ").into())).collect();
    if let Some(fields) = input.as_object_mut() {
        fields.insert("answers".to_owned(), answers.into());
    }
    input
}

/// Reads `{"questions": [{"question", "header", "options": [{"label", "description"}], "multiSelect"}]}`. The text of a question is its id.
fn questions(input: &Value) -> Vec<QuestionItem> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let option = |option: &Value| {
        Some(QuestionOption::new(text(option, "label")?).with_description(text(option, "description").map(Into::into)))
    };
    let item = |question: &Value| {
        let words = text(question, "question")?;
        let options = question.get("options").and_then(Value::as_array);
        Some(
            QuestionItem::new(words.clone(), words, options.into_iter().flatten().filter_map(option).collect())
                .with_multiple(question.get("multiSelect").and_then(Value::as_bool))
                .with_header(text(question, "header").map(Into::into)),
        )
    };
    let questions = input.get("questions").and_then(Value::as_array);
    questions.into_iter().flatten().filter_map(item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowed_input_is_returned_unchanged_at_any_depth_and_size() {
        let input = format!(r#"{{"id":18446744073709551617,"deep":{}{}}}"#, "[".repeat(1000), "]".repeat(1000));
        let line = format!(r#"{{"subtype":"can_use_tool","tool_name":"mcp__a__b","input":{input}}}"#);
        let names = Names::new(&super::super::mcp::STYLE, &BTreeMap::new()).unwrap();
        let mut requests = PendingRequests::default();
        let event = requests.add("r".to_owned(), serde_json::from_str(&line).unwrap(), &names);
        let Action::Emit(Event::PermissionRequest(request)) = event else { panic!("{event:?}") };
        assert_eq!(request.input.as_str(), input);
        let Some(Action::Process(ProcessAction::Write(bytes))) =
            requests.answer(&"r".into(), &Answer::Allow { input: None })
        else {
            panic!()
        };
        let written = String::from_utf8(bytes).unwrap();
        assert!(written.contains(&format!(r#""updatedInput":{input}"#)), "{written}");
    }
}
