//! Gemini CLI's runs: behavior that no recorded run shows, and properties of the launch of any request.

use proptest::prelude::*;
use serde_json::Value;
use teamster_agents::agent::{Agent, gemini::Gemini};
use teamster_agents::launch::{Arg, Launch, ShadowEntry, Stdin};
use teamster_agents::protocol::{ExitReport, Input};
use teamster_agents::transcript::End;
use teamster_types::event::{Event, RunResult};
use teamster_types::request::{Conversation, OutputMode, ProjectTrust, PromptMode, RunRequest};

use crate::any_request::{SECRET, any_request};
use crate::drive::{Driver, Step, events};
use crate::subject::{SUBJECTS, Subject};

fn subject() -> &'static Subject {
    SUBJECTS.iter().find(|subject| subject.agent.name() == "gemini").unwrap()
}

fn steps(request: &RunRequest, lines: &[&str], exit: ExitReport<'_>) -> Vec<Step> {
    let mut driver = Driver::start_of(subject(), request);
    for line in lines {
        driver.handle(Input::Line(line.as_bytes()));
    }
    driver.end(&End { exit: Some(exit), ..End::default() })
}

fn run_as(request: &RunRequest, lines: &[&str]) -> Vec<Event> {
    events(&steps(request, lines, ExitReport { code: Some(0), ..ExitReport::default() }))
}

fn run(lines: &[&str]) -> Vec<Event> {
    run_as(&RunRequest::new("x"), lines)
}

fn result(events: &[Event]) -> &RunResult {
    match events.last() {
        Some(Event::Done(done)) => &done.result,
        other => panic!("{other:?} is not `done`"),
    }
}

fn failure(events: &[Event]) -> String {
    let failure = events.iter().find_map(|event| match event {
        Event::Error(failure) => Some(format!("{}: {}", failure.code, failure.message.as_str())),
        _ => None,
    });
    failure.unwrap_or_default()
}

fn chunk(text: &str) -> String {
    format!(r#"{{"type":"message","role":"assistant","content":"{text}","delta":true}}"#)
}

const INIT: &str = r#"{"type":"init","session_id":"s","model":"m"}"#;
const SUCCESS: &str = r#"{"type":"result","status":"success","stats":{"total_tokens":3,"input_tokens":1}}"#;

#[test]
fn a_run_of_a_wrong_session_is_stopped_and_its_output_is_not_emitted() {
    let mut request = RunRequest::new("x");
    request.conversation = Conversation::Resume("other".into());
    let steps = steps(&request, &[INIT, &chunk("who are you?"), SUCCESS], ExitReport::default());
    assert!(steps.iter().any(|step| matches!(step, Step::Stop)));
    let events = events(&steps);
    assert!(failure(&events).starts_with("PROTOCOL: requested to resume session other, but s answers"), "{events:?}");
    assert_eq!(result(&events).text, "");
}

#[test]
fn a_line_of_an_unknown_type_is_ignored_and_a_line_that_is_not_json_is_a_warning() {
    let events = run(&[INIT, r#"{"type":"citation","text":7}"#, "Memory is empty.", &chunk("fine"), SUCCESS]);
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Warning(_))).count(), 1);
    assert!(!result(&events).is_error);
}

#[test]
fn a_success_without_an_answer_is_an_error() {
    assert!(failure(&run(&[INIT, SUCCESS])).starts_with("PROVIDER"));
    let uncalled = r#"{"type":"result","status":"success","stats":{"total_tokens":0,"models":{}}}"#;
    assert!(failure(&run(&[INIT, uncalled])).starts_with("CONTEXT_WINDOW"));
}

#[test]
fn an_exit_without_a_result_is_an_error_whatever_the_exit_code() {
    assert!(failure(&run(&[INIT, &chunk("half of")])).starts_with("PROTOCOL"));
    assert_eq!(result(&run(&[INIT, &chunk("half of")])).text, "half of");
}

#[test]
fn an_error_event_turns_a_success_into_an_error_and_retracts_only_the_last_message() {
    let events = run(&[
        INIT,
        &chunk("First."),
        r#"{"type":"tool_use","tool_name":"glob","tool_id":"glob__1","parameters":{}}"#,
        r#"{"type":"tool_result","tool_id":"glob__1","status":"success"}"#,
        &chunk("again"),
        &chunk("again"),
        r#"{"type":"error","severity":"error","message":"The model returned an empty response"}"#,
        SUCCESS,
    ]);
    assert_eq!(failure(&events), "PROVIDER: The model returned an empty response");
    assert_eq!(result(&events).text, "First.");
}

#[test]
fn whole_messages_are_emitted_at_their_end_or_at_the_end_of_the_run() {
    let mut request = RunRequest::new("x");
    request.output = OutputMode::Messages;
    let events = run_as(&request, &[INIT, &chunk("one "), &chunk("two")]);
    let texts: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            Event::Text(delta) => Some(&*delta.text),
            _ => None,
        })
        .collect();
    assert_eq!(texts, ["one two"]);
}

#[test]
fn a_status_that_only_the_exit_code_contains_is_used() {
    let line = r#"{"type":"result","status":"error","error":{"type":"unknown","message":"[API Error: no]"}}"#;
    let table = [(145, "AUTH: no"), (173, "RATE_LIMIT: no"), (17, "OVERLOADED: no"), (1, "PROVIDER: no")];
    for (code, expected) in table {
        let exit = ExitReport { code: Some(code), ..ExitReport::default() };
        assert_eq!(failure(&events(&steps(&RunRequest::new("x"), &[INIT, line], exit))), expected);
    }
}

#[test]
fn a_document_is_found_between_other_lines() {
    let mut request = RunRequest::new("x");
    request.output = OutputMode::Batch;
    let lines = ["Noise", "{", r#"  "session_id": "s","#, r#"  "response": "}\n{""#, "}"];
    assert_eq!(result(&run_as(&request, &lines)).text, "}\n{");
    let stderr = "Noise {\n{\n  \"session_id\": \"s\",\n  \"error\": {\n    \"message\": \"no\"\n  }\n}\nmore";
    let exit = ExitReport { code: Some(53), stderr, ..ExitReport::default() };
    assert_eq!(failure(&events(&steps(&request, &[], exit))), "PROVIDER: no");
}

/// The flags, which all have a value after `=`.
const FLAGS: &[&str] =
    &["--output-format", "--resume", "--model", "--approval-mode", "--policy", "--include-directories"];

fn planned(request: &RunRequest) -> Option<Launch> {
    request.validate().ok()?;
    Gemini.plan(request).ok().map(|plan| plan.launch)
}

fn policy(launch: &Launch) -> String {
    let file = launch.files.iter().find(|file| file.name == "policy.toml").unwrap();
    String::from_utf8(file.content.clone()).unwrap()
}

/// Returns whether a line of the policy is a rule's header, or a known key with a value that is valid JSON and TOML.
fn is_rule(line: &str) -> bool {
    let Some((key, value)) = line.split_once(" = ") else { return line == "[[rule]]" };
    ["toolName", "decision", "priority", "commandPrefix", "allowRedirection"].contains(&key)
        && serde_json::from_str::<Value>(value).is_ok()
}

/// Returns all texts in a document that are values.
fn texts(document: &Value) -> Vec<&str> {
    match document {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(fields) => fields.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_value_can_become_a_flag_and_no_flag_contains_a_secret(request in any_request()) {
        if let Some(launch) = planned(&request) {
            for arg in &launch.args {
                let text = match arg {
                    Arg::Text(text) => text,
                    Arg::PathOf { before, .. } => before,
                };
                let flag = text.split_once('=').map_or("", |(flag, _)| flag);
                prop_assert!(FLAGS.contains(&flag), "{}", text);
                prop_assert!(!text.contains(SECRET) && !text.contains('\0'), "{}", text);
            }
        }
    }

    #[test]
    fn a_policy_contains_only_rules_and_denies_the_tools_that_change_the_mode(mut request in any_request(), prefix in ".{1,20}") {
        request.permissions.deny = vec![format!("run_shell_command({prefix})")];
        if let Some(launch) = planned(&request) {
            let text = policy(&launch);
            prop_assert!(text.lines().all(is_rule), "{}", text);
            prop_assert!(text.contains("[\"enter_plan_mode\", \"exit_plan_mode\"]\ndecision = \"deny\"\npriority = 999"));
        }
    }

    #[test]
    fn no_value_of_a_server_can_be_replaced_by_a_variable(request in any_request()) {
        let Some(launch) = planned(&request) else { return Ok(()) };
        for (path, entry) in &launch.shadow_home.unwrap().entries {
            let ShadowEntry::Merge(values) = entry else { continue };
            prop_assert_eq!(*path, "settings.json");
            // The CLI replaces variables in values, and not in names.
            for text in texts(&values.overrides) {
                prop_assert!(!text.replace("${TEAMSTER_DOLLAR}", "").contains('$'), "{}", text);
            }
        }
    }

    #[test]
    fn a_prompt_is_standard_input_or_the_text_of_a_custom_command(request in any_request()) {
        let Some(launch) = planned(&request) else { return Ok(()) };
        let Stdin::Write(bytes) = &launch.stdin else { panic!("{:?}", launch.stdin) };
        let command = launch.shadow_home.iter().flat_map(|home| &home.entries).any(|(path, _)| path.starts_with("commands/"));
        prop_assert_eq!(command, bytes != request.prompt.as_bytes());
        prop_assert!(!command || request.prompt_mode == PromptMode::Literal);
    }

    #[test]
    fn debug_output_shows_no_private_text(request in any_request(), words in "[a-z]{12}") {
        let mut request = request;
        (request.prompt, request.prompt_mode) = (format!("@{words}"), PromptMode::Literal);
        request.append_system_prompt = Some(words.clone());
        request.project_trust = ProjectTrust::Trusted;
        if let Some(launch) = planned(&request) {
            let shown = format!("{launch:?}{:?}{:?}{:?}", launch.shadow_home, launch.files, launch.stdin);
            prop_assert!(!shown.contains(SECRET) && !shown.contains(&words), "{}", shown);
        }
    }
}

#[test]
fn json_that_is_not_a_document_does_not_fail_a_batch() {
    let mut request = RunRequest::new("x");
    request.output = OutputMode::Batch;
    let document = r#"{"session_id":"s","response":"All is well."}"#;
    let events = run_as(&request, &[r#"{"status":429,"message":"Not logged in"}"#, document]);
    assert_eq!((failure(&events).as_str(), result(&events).text.as_str()), ("", "All is well."));
}
