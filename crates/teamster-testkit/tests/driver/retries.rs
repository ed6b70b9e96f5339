//! A run with a temporary failure is retried within the same stream.

use std::collections::HashSet;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use teamster::RunRequest;
use teamster::event::{ErrorCode, Event, MessageId, WarningCode};
use teamster::request::{AgentInterface, Conversation, OrphanPolicy, RetryPolicy};
use teamster_testkit::fake::{Child, Script};

use crate::test_env::{
    CheckedStream, LONG, TestEnv, agent, is_alive, is_tool_use, read_until, rest_after, rest_of, success_end,
};

/// A turn that ends because the vendor is overloaded.
pub(crate) fn overloaded(env: &TestEnv) -> Script {
    agent(env).then(overload())
}

pub(crate) fn overload() -> Script {
    Script::new().claude_api_error(529, "Overloaded.").read_to_end().exit(1)
}

pub(crate) fn good(env: &TestEnv, text: &str) -> Script {
    agent(env).then(success_end(text))
}

/// A request for a run whose attempts play these scripts, with up to `max` retries without delay.
pub(crate) fn request<const ATTEMPTS: usize>(env: &TestEnv, max: u32, attempts: [Script; ATTEMPTS]) -> RunRequest {
    let mut request = env.request(&Script::new().play_next(&env.path("attempts"), attempts));
    request.retries.max = max;
    request.retries.base = Duration::ZERO;
    request.limits.startup = LONG;
    request
}

/// Returns how often the CLI was started.
pub(crate) fn starts(env: &TestEnv) -> u64 {
    std::fs::metadata(env.path("attempts")).map_or(0, |file| file.len())
}

fn data(stream: &CheckedStream, code: &WarningCode) -> Vec<Value> {
    stream.warnings(code).iter().map(|warning| json!(warning.data)).collect()
}

pub(crate) fn why_not(stream: &CheckedStream) -> Vec<Value> {
    data(stream, &WarningCode::NotRetried).into_iter().map(|data| data["reason"].clone()).collect()
}

pub(crate) fn is_retrying(event: &Event) -> bool {
    matches!(event, Event::Warning(warning) if warning.code == WarningCode::Retrying)
}

#[tokio::test]
async fn a_run_with_temporary_failures_is_retried_until_it_succeeds() {
    let env = TestEnv::new();
    let attempts = [overloaded(&env), overloaded(&env), good(&env, "Hello")];
    let stream = env.finish(request(&env, 3, attempts)).await;
    stream.assert_success("Hello");
    assert_eq!(stream.result().exit_code, Some(0));
    let warnings = data(&stream, &WarningCode::Retrying);
    assert_eq!(warnings.iter().map(|data| data["attempt"].clone()).collect::<Vec<_>>(), [json!(1), json!(2)]);
    for data in warnings {
        assert_eq!((&data["max"], &data["delayMs"], &data["errorCode"]), (&json!(3), &json!(0), &json!("OVERLOADED")));
        assert_eq!(data["errorMessage"], "API Error: 529 Overloaded.");
    }
    assert!(!stream.events.iter().any(|event| matches!(event, Event::Error(_))));
    assert_eq!(starts(&env), 3);
    env.assert_all_dead();
}

#[tokio::test]
async fn a_process_that_a_retried_attempt_left_running_is_named_in_the_result() {
    let env = TestEnv::new();
    let daemon = |name| {
        let script = Script::new().write_pid(&env.pid_file(), name).ready().hang();
        Child::new(script).session().without_stdout()
    };
    let failed = agent(&env).spawn(daemon("first")).then(overload());
    let well = agent(&env).spawn(daemon("second")).then(success_end("Hello"));
    let mut request = request(&env, 1, [failed, well]);
    request.orphans = OrphanPolicy::Keep;
    let stream = env.finish(request).await;
    stream.assert_success("Hello");
    let daemons = [env.pid("first").await, env.pid("second").await];
    let left: Vec<_> = stream.result().left_processes.iter().map(|left| left.pid).collect();
    let alive = daemons.map(is_alive);
    for pid in daemons {
        assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
    }
    assert_eq!((left.as_slice(), alive), (&daemons[..], [true; 2]));
}

#[tokio::test]
async fn without_the_option_nothing_is_retried() {
    let env = TestEnv::new();
    let stream = env.finish(request(&env, 0, [overloaded(&env), good(&env, "Hello")])).await;
    stream.assert_failed(&ErrorCode::Overloaded);
    assert!(stream.warnings(&WarningCode::Retrying).is_empty() && why_not(&stream).is_empty());
    assert_eq!(starts(&env), 1);
}

#[tokio::test]
async fn a_permanent_failure_is_not_retried() {
    let env = TestEnv::new();
    let refused = || agent(&env).claude_api_error(401, "Invalid API key").read_to_end().exit(1);
    for attempts in [[refused(), good(&env, "Hello")], [agent(&env).exit(3), good(&env, "Hello")]] {
        std::fs::remove_file(env.path("attempts")).ok();
        let stream = env.finish(request(&env, 3, attempts)).await;
        assert!(stream.result().is_error);
        assert!(stream.warnings(&WarningCode::Retrying).is_empty() && why_not(&stream).is_empty());
        assert_eq!(starts(&env), 1);
    }
}

#[tokio::test]
async fn after_the_last_retry_the_last_failure_is_the_result() {
    let env = TestEnv::new();
    let last = agent(&env).claude_text("Hel").claude_api_error(500, "Internal").read_to_end().exit(1);
    let stream = env.finish(request(&env, 2, [overloaded(&env), overloaded(&env), last])).await;
    assert_eq!(stream.assert_failed(&ErrorCode::Provider), "API Error: 500 Internal");
    assert_eq!(stream.result().text, "Hel");
    assert_eq!(stream.result().exit_code, Some(1));
    assert_eq!(stream.warnings(&WarningCode::Retrying).len(), 2);
    assert_eq!(starts(&env), 3);
}

#[tokio::test]
async fn output_of_a_failed_attempt_is_retracted_and_its_ids_are_not_reused() {
    let env = TestEnv::new();
    let half = || agent(&env).claude_text("Half ").claude_partial_text("an answ").then(overload());
    let whole = agent(&env).claude_text("A whole ").then(success_end("answer."));
    let stream = env.finish(request(&env, 3, [half(), half(), whole])).await;
    stream.assert_success("A whole \n\nanswer.");
    assert_eq!(stream.result().final_text, "answer.");
    // The fake agent starts its message ids again in each attempt.
    let mut attempts: Vec<HashSet<MessageId>> = vec![HashSet::new()];
    let mut retracted = HashSet::new();
    for event in &stream.events {
        match event {
            Event::Text(delta) => _ = attempts.last_mut().unwrap().insert(delta.message_id.clone()),
            Event::Retract(retract) => _ = retracted.insert(retract.message_id.clone()),
            event if is_retrying(event) => attempts.push(HashSet::new()),
            _ => {}
        }
    }
    assert_eq!(attempts.iter().map(HashSet::len).collect::<Vec<_>>(), [2, 2, 2]);
    assert!(attempts[0].is_disjoint(&attempts[1]) && attempts[1].is_disjoint(&attempts[2]));
    assert_eq!(retracted, &attempts[0] | &attempts[1]);
}

#[tokio::test]
async fn the_costs_of_all_attempts_are_summed() {
    let env = TestEnv::new();
    let alone = env.play(&good(&env, "Hello")).await;
    let stream = env.finish(request(&env, 3, [overloaded(&env), overloaded(&env), good(&env, "Hello")])).await;
    let (alone, stream) = (alone.result(), stream.result());
    let (one, three) = (alone.usage.clone().unwrap(), stream.usage.clone().unwrap());
    assert_eq!(three.output_tokens, 3 * one.output_tokens);
    assert_eq!(three.cache_read_tokens, one.cache_read_tokens.map(|tokens| 3 * tokens));
    assert!((stream.total_cost_usd.unwrap() - 3.0 * alone.total_cost_usd.unwrap()).abs() < 1e-9);
    assert_eq!(stream.api_duration_ms, alone.api_duration_ms.map(|time| 3 * time));
    assert_eq!(stream.num_turns, alone.num_turns);
}

#[tokio::test]
async fn a_run_with_tool_calls_is_retried_only_with_the_option() {
    let env = TestEnv::new();
    let worked = || agent(&env).claude_tool("toolu_1", "Bash", &json!({"command": "make"})).then(overload());
    let stream = env.finish(request(&env, 3, [worked(), good(&env, "Hello")])).await;
    stream.assert_failed(&ErrorCode::Overloaded);
    assert_eq!(why_not(&stream), ["tools"]);
    assert_eq!(starts(&env), 1);

    let env = TestEnv::new();
    let again = agent(&env)
        .claude_tool("toolu_1", "Bash", &json!({"command": "make"}))
        .claude_tool_result("toolu_1", "made")
        .then(success_end("Made."));
    let mut request = request(&env, 3, [worked(), again]);
    request.retries.policy = RetryPolicy::MayRepeatTools;
    let stream = env.finish(request).await;
    stream.assert_success("Made.");
    let results: Vec<_> = stream.tool_results().iter().map(|result| result.output.clone()).collect();
    assert_eq!(results, ["interrupted", "made"]);
    assert_eq!(stream.events.iter().filter(|event| is_tool_use(event)).count(), 2);
}

#[tokio::test]
async fn a_tool_call_of_any_attempt_prevents_a_retry() {
    let env = TestEnv::new();
    let worked = agent(&env)
        .claude_tool("toolu_1", "Bash", &json!({"command": "make"}))
        .claude_tool_result("toolu_1", "made")
        .then(overload());
    let stream = env.finish(request(&env, 3, [overloaded(&env), worked, good(&env, "Hello")])).await;
    stream.assert_failed(&ErrorCode::Overloaded);
    assert_eq!(why_not(&stream), ["tools"]);
    assert_eq!(starts(&env), 2);
}

#[tokio::test]
async fn a_session_that_may_contain_the_prompt_is_retried_only_with_the_option() {
    for conversation in [Conversation::Resume("078672f8-b675-400d-816b-6dfdee66f8d8".into()), Conversation::Continue] {
        let env = TestEnv::new();
        let mut strict = request(&env, 3, [overloaded(&env), good(&env, "Hello")]);
        strict.conversation = conversation.clone();
        // No stored session.
        let home = env.path("home").to_str().unwrap().to_owned();
        strict.env.extend([("HOME".to_owned(), home.clone()), ("CLAUDE_CONFIG_DIR".to_owned(), String::new())]);
        let stream = env.finish(strict).await;
        stream.assert_failed(&ErrorCode::Overloaded);
        assert_eq!(why_not(&stream), ["prompt"]);
        assert_eq!(starts(&env), 1);

        let env = TestEnv::new();
        let mut lenient = request(&env, 3, [overloaded(&env), good(&env, "Hello")]);
        lenient.conversation = conversation;
        lenient.env.extend([("HOME".to_owned(), home), ("CLAUDE_CONFIG_DIR".to_owned(), String::new())]);
        lenient.retries.policy = RetryPolicy::MayRepeatPrompt;
        env.finish(lenient).await.assert_success("Hello");
    }
}

#[tokio::test]
async fn a_fork_is_retried_because_its_origin_is_unchanged() {
    let env = TestEnv::new();
    let mut request = request(&env, 3, [overloaded(&env), good(&env, "Hello")]);
    request.conversation = Conversation::Fork("078672f8-b675-400d-816b-6dfdee66f8d8".into());
    env.finish(request).await.assert_success("Hello");
}

#[tokio::test]
async fn a_session_that_is_in_use_is_retried() {
    const THREAD: &str = "01a20194-0769-7e20-b418-f83e73d8a601";
    const FAILED: &str = "thread/resume: thread/resume failed";
    let env = TestEnv::new();
    let busy = Script::new()
        .stderr(format!("Error: {FAILED}: thread {THREAD} already has an active writer (code -32600)\n"))
        .exit(1);
    let answer = json!({"id": "item_0", "type": "agent_message", "text": "Hello"});
    let free = Script::new()
        .line(json!({"type": "thread.started", "thread_id": THREAD}))
        .line(json!({"type": "turn.started"}))
        .line(json!({"type": "item.completed", "item": answer}))
        .line(json!({"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}}));
    let mut request = request(&env, 3, [busy, free]);
    request.conversation = Conversation::Resume(THREAD.into());
    request.interface = AgentInterface::Exec;
    let stream = rest_of(&mut env.runtime.run("codex", request).unwrap()).await;
    stream.assert_success("Hello");
    assert_eq!(stream.warnings(&WarningCode::Retrying).len(), 1);
}

#[tokio::test]
async fn a_retry_with_another_session_id_causes_a_warning() {
    let env = TestEnv::new();
    let session = "00000000-0000-4000-8000-000000000002";
    let init = json!({"type": "system", "subtype": "init", "session_id": session, "model": "claude-opus-4-8"});
    let elsewhere = Script::new().line(init).then(success_end("Hello"));
    let stream = env.finish(request(&env, 3, [overloaded(&env), elsewhere])).await;
    stream.assert_success("Hello");
    assert_eq!(data(&stream, &WarningCode::SessionChanged), [json!({"sessionId": session})]);
}

#[tokio::test]
async fn a_run_that_the_caller_ended_is_not_retried() {
    let env = TestEnv::new();
    let stops = agent(&env).claude_text("Hello").await_line("teamster-interrupt").then(overload());
    let mut request = request(&env, 3, [stops, good(&env, "Hello")]);
    request.limits.grace = LONG;
    let mut run = env.start(request);
    let events = read_until(&mut run, |event| matches!(event, Event::Text(_))).await;
    run.control().interrupt();
    rest_after(events, &mut run).await.assert_aborted();
    assert_eq!(starts(&env), 1);
}

#[tokio::test]
async fn a_failure_reported_before_the_callers_abort_is_the_result_and_is_not_retried() {
    let env = TestEnv::new();
    let failing =
        agent(&env).claude_api_error(529, "Overloaded.").read_to_end().write_pid(&env.pid_file(), "failed").hang();
    let mut request = request(&env, 3, [failing, good(&env, "Hello")]);
    request.limits.after_result = LONG;
    let mut run = env.start(request);
    env.pid("failed").await;
    run.control().abort();
    let stream = rest_of(&mut run).await;
    stream.assert_failed(&ErrorCode::Overloaded);
    assert!(!stream.result().aborted);
    assert_eq!(starts(&env), 1);
}

#[tokio::test]
async fn all_attempts_share_the_budget_of_the_run() {
    let env = TestEnv::new();
    let mut request = request(&env, 3, [overloaded(&env), good(&env, "Hello")]);
    // Less than the first attempt costs.
    request.max_budget_usd = Some(0.001);
    env.finish(request).await.assert_failed(&ErrorCode::Budget);
    assert_eq!(starts(&env), 1);
}

#[tokio::test]
async fn a_retry_gets_the_rest_of_the_budget() {
    let env = TestEnv::new();
    let script = r#"for word; do case $word in --max-budget-usd=*) echo "${word#*=}" >> "$BUDGETS";; esac; done; exec "$CLI" "$@""#;
    let cli = env.path("cli");
    std::fs::write(&cli, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&cli, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut request = request(&env, 3, [overloaded(&env), good(&env, "Hello")]);
    request.max_budget_usd = Some(1.0);
    let program = request.cli_path.replace(cli).unwrap();
    for (name, path) in [("CLI", program), ("BUDGETS", env.path("budgets"))] {
        request.env.insert(name.to_owned(), path.display().to_string());
    }
    env.finish(request).await.assert_success("Hello");
    let budgets = std::fs::read_to_string(env.path("budgets")).unwrap();
    let budgets: Vec<f64> = budgets.lines().map(|budget| budget.parse().unwrap()).collect();
    assert!(budgets.len() == 2 && budgets[0] > 0.999 && budgets[1] < 0.999 && budgets[1] > 0.9, "{budgets:?}");
}
