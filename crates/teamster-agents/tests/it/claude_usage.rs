//! What each turn of Claude Code has used, on versions that count from the start of the process or of the stored session.

use serde_json::{Value, json};
use teamster_agents::agent::{Agent as _, claude::Claude};
use teamster_agents::protocol::{Action, Command, Input, Outcome};
use teamster_types::event::{SteerId, UsageScope};
use teamster_types::request::{Conversation, Prompt, RunRequest};

const SESSION: &str = "00000000-0000-4000-8000-000000000001";

/// Returns the line that starts a turn of this version.
fn init(version: &str) -> Value {
    json!({"type": "system", "subtype": "init", "session_id": SESSION, "claude_code_version": version})
}

fn models(calls: u32) -> Value {
    json!({"m": {"inputTokens": 10 * calls, "outputTokens": calls, "costUSD": 0.001 * f64::from(calls)}})
}

/// Returns the result of a turn with `turn` calls of the main loop, whose counters cover `counted` calls.
fn result(turn: u32, counted: u32) -> Value {
    json!({"type": "result", "subtype": "success", "is_error": false, "result": "ok", "session_id": SESSION, "num_turns": 1,
        "total_cost_usd": 0.001 * f64::from(counted), "duration_api_ms": 100 * counted, "modelUsage": models(counted),
        "usage": {"input_tokens": 10 * turn, "output_tokens": turn}})
}

/// Adds what 2.1.318 and newer report.
fn since(mut result: Value, calls: u32) -> Value {
    result["model_usage_since_last_result"] = models(calls);
    result["result_index"] = 0.into();
    result
}

fn request(conversation: Conversation) -> RunRequest {
    let mut request = RunRequest::default();
    request.conversation = conversation;
    request
}

fn resumed() -> RunRequest {
    request(Conversation::Resume(SESSION.into()))
}

/// Returns the outcome of each turn of a session.
fn turns(request: &RunRequest, lines: &[&[Value]]) -> Vec<Outcome> {
    let mut protocol = Claude.plan_session(request).unwrap().unwrap().protocol;
    let mut outcomes = Vec::new();
    for (number, lines) in lines.iter().enumerate() {
        let mut actions = Vec::new();
        let (id, prompt) = (SteerId::from(number.to_string()), Prompt::from("x"));
        protocol.handle(Input::Command(Command::Send { id: &id, prompt: &prompt }), &mut actions);
        for line in *lines {
            protocol.handle(Input::Line(line.to_string().as_bytes()), &mut actions);
        }
        let last = actions.into_iter().rev().find_map(|action| match action {
            Action::Outcome(outcome) => Some(*outcome),
            _ => None,
        });
        outcomes.extend(last);
    }
    outcomes
}

/// Returns the input tokens, the cost in thousandths of a dollar, and the milliseconds of the API.
#[expect(clippy::cast_possible_truncation, reason = "the costs of these tests are small")]
fn spent(outcome: &Outcome) -> (Option<u64>, Option<i64>, Option<u64>) {
    let input = outcome.usage.as_ref().map(|(usage, scope)| {
        assert_eq!(*scope, UsageScope::Run);
        usage.input_tokens
    });
    (input, outcome.total_cost_usd.map(|cost| (cost * 1e3).round() as i64), outcome.api_duration_ms)
}

fn spent_of(request: &RunRequest, lines: &[&[Value]]) -> Vec<(Option<u64>, Option<i64>, Option<u64>)> {
    turns(request, lines).iter().map(spent).collect()
}

#[test]
fn a_version_that_counts_a_process_counts_a_resumed_session_from_zero() {
    for request in [RunRequest::default(), resumed(), request(Conversation::Continue)] {
        let lines: [&[Value]; 2] = [&[init("2.1.197"), result(1, 2)], &[init("2.1.197"), result(1, 3)]];
        let expected = [(Some(20), Some(2), Some(200)), (Some(10), Some(1), Some(100))];
        assert_eq!(spent_of(&request, &lines), expected);
    }
}

#[test]
fn a_version_that_counts_the_session_reports_each_turn_alone_if_it_can() {
    for conversation in
        [Conversation::Resume(SESSION.into()), Conversation::Fork(SESSION.into()), Conversation::Continue]
    {
        let lines: [&[Value]; 2] =
            [&[init("2.1.332"), since(result(1, 52), 2)], &[init("2.1.332"), since(result(1, 53), 1)]];
        let expected = [(Some(20), Some(2), None), (Some(10), Some(1), Some(100))];
        assert_eq!(spent_of(&request(conversation), &lines), expected);
    }
}

#[test]
fn without_a_baseline_the_cost_is_unknown_and_the_tokens_are_those_of_the_main_loop() {
    let lines: [&[Value]; 2] = [&[init("2.1.277"), result(1, 52)], &[init("2.1.277"), result(1, 54)]];
    let expected = [(Some(10), None, None), (Some(20), Some(2), Some(200))];
    assert_eq!(spent_of(&resumed(), &lines), expected);
    // A new session has nothing before.
    assert_eq!(spent_of(&RunRequest::default(), &lines[..1]), [(Some(520), Some(52), Some(5200))]);
    // The session has no totals, for example because an older version made it.
    let same: [&[Value]; 1] = [&[init("2.1.300"), result(3, 3)]];
    assert_eq!(spent_of(&resumed(), &same), [(Some(30), Some(3), Some(300))]);
}

#[test]
fn without_a_version_the_form_of_the_result_shows_what_is_counted() {
    let mut newer = result(1, 52);
    newer["result_index"] = 0.into();
    assert_eq!(spent_of(&resumed(), &[&[newer]]), [(Some(10), None, None)]);
    assert_eq!(spent_of(&resumed(), &[&[result(1, 2)]]), [(Some(20), Some(2), Some(200))]);
    assert_eq!(spent_of(&resumed(), &[&[since(result(1, 52), 2)]]), [(Some(20), Some(2), None)]);
    // A version of an unknown form is none.
    assert_eq!(spent_of(&resumed(), &[&[init("next"), result(1, 2)]]), [(Some(20), Some(2), Some(200))]);
}

#[test]
fn a_turn_that_the_cli_starts_by_itself_in_a_run_adds_to_it() {
    let both = |first, second| {
        let lines = [init("2.1.332"), first, init("2.1.332"), second];
        spent_of(&resumed(), &[&lines]).remove(0)
    };
    assert_eq!(both(since(result(1, 51), 1), since(result(2, 53), 2)), (Some(30), Some(3), None));
    // The cost of a part is not the cost.
    assert_eq!(both(result(1, 51), result(2, 53)), (Some(30), None, None));
}

#[test]
fn totals_that_were_reset_or_are_not_reported_count_no_turn_twice() {
    let command = json!({"type": "result", "subtype": "success", "is_error": false, "result": "", "num_turns": 0,
        "total_cost_usd": 0.0, "duration_api_ms": 0, "modelUsage": {}, "usage": {"input_tokens": 0, "output_tokens": 0}});
    let lines: [&[Value]; 3] =
        [&[init("2.1.277"), result(2, 2)], &[init("2.1.277"), command], &[init("2.1.277"), result(1, 1)]];
    let expected = [(Some(20), Some(2), Some(200)), (Some(0), Some(0), Some(0)), (Some(10), Some(1), Some(100))];
    assert_eq!(spent_of(&RunRequest::default(), &lines), expected);
}

#[test]
fn a_model_without_a_cost_leaves_the_total() {
    let mut unpriced = since(result(1, 1), 1);
    unpriced["model_usage_since_last_result"]["m"]["costUSD"] = Value::Null;
    assert_eq!(spent_of(&RunRequest::default(), &[&[init("2.1.332"), unpriced]]), [(Some(10), Some(1), Some(100))]);
}

#[test]
fn a_result_that_is_printed_twice_is_counted_once() {
    let mut plain = result(1, 1);
    plain["modelUsage"] = json!({});
    for line in [plain, result(1, 1), since(result(1, 1), 1)] {
        let outcomes = turns(&RunRequest::default(), &[&[init("2.1.332"), line.clone(), line]]);
        assert_eq!(spent(&outcomes[0]), (Some(10), Some(1), Some(100)));
        assert_eq!(outcomes[0].num_turns, Some(1));
    }
}
