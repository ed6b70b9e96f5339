//! Where the values of a request end up in the launch of Claude Code: which arguments, files and input contain them.

use proptest::prelude::*;
use serde_json::Value;
use teamster_agents::agent::{Agent, claude::Claude};
use teamster_agents::launch::{Arg, Launch, Stdin};
use teamster_agents::protocol::{Action, Input, ProcessAction};
use teamster_types::request::{OutputMode, RunRequest};

use crate::any_request::{SECRET, any_request, request};

/// Returns the text of a user message, which is a string or a list of blocks.
fn text_of(content: &Value) -> String {
    match content {
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        content => content.as_str().unwrap().to_owned(),
    }
}

/// Flags without a value.
const WITHOUT_VALUE: &[&str] = &[
    "-p",
    "--verbose",
    "--include-hook-events",
    "--include-partial-messages",
    "--fork-session",
    "--continue",
    "--dangerously-skip-permissions",
    "--strict-mcp-config",
];

/// Flags with a value after `=`.
const WITH_VALUE: &[&str] = &[
    "--resume",
    "--model",
    "--effort",
    "--setting-sources",
    "--max-turns",
    "--max-budget-usd",
    "--permission-mode",
    "--disallowedTools",
    "--allowedTools",
    "--add-dir",
    "--json-schema",
];

/// Checks that each argument is a known flag, a value inside `--flag=`, or the path of a file. The prompt is not an argument.
fn check_flags(launch: &Launch) -> Result<(), String> {
    let mut args = launch.args.iter();
    while let Some(arg) = args.next() {
        match arg {
            Arg::Text(text) if text == "--input-format" || text == "--output-format" => {
                let value = args.next();
                if !matches!(value, Some(Arg::Text(value)) if value == "stream-json" || value == "json") {
                    return Err(format!("{text} {value:?}"));
                }
            }
            Arg::Text(text) if text == "--permission-prompt-tool" => {
                let value = args.next();
                if !matches!(value, Some(Arg::Text(value)) if value == "stdio") {
                    return Err(format!("{text} {value:?}"));
                }
            }
            Arg::Text(text) if WITHOUT_VALUE.contains(&text.as_str()) => {}
            Arg::Text(text) => {
                let flag = text.split_once('=').map_or("", |(flag, _)| flag);
                if !WITH_VALUE.contains(&flag) {
                    return Err(format!("{text:?} is not a known flag"));
                }
            }
            Arg::PathOf { before, file, .. } => {
                let named = launch.files.iter().any(|private| private.name == *file);
                if !(before.starts_with("--") && before.ends_with('=') && named) {
                    return Err(format!("{before:?} {file:?}"));
                }
            }
        }
    }
    Ok(())
}

/// Returns the launch of a request and the bytes that are written at the start; `None` if the request is invalid.
fn planned(request: &RunRequest) -> Option<(Launch, Vec<u8>)> {
    request.validate().ok()?;
    let mut plan = Claude.plan(request).unwrap();
    let mut actions = Vec::new();
    plan.protocol.handle(Input::Started, &mut actions);
    let written = actions.into_iter().flat_map(|action| match action {
        Action::Process(ProcessAction::Write(bytes)) => bytes,
        other => panic!("{other:?} at the start"),
    });
    Some((plan.launch, written.collect()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_value_can_become_a_flag(request in any_request()) {
        if let Some((launch, _)) = planned(&request) {
            prop_assert_eq!(check_flags(&launch), Ok(()));
            let has_nul = launch.args.iter().any(|arg| matches!(arg, Arg::Text(text) if text.contains('\0')));
            prop_assert!(!has_nul);
        }
    }

    #[test]
    fn no_argument_contains_a_secret(request in any_request()) {
        if let Some((launch, _)) = planned(&request) {
            for arg in &launch.args {
                prop_assert!(!matches!(arg, Arg::Text(text) if text.contains(SECRET)), "{:?}", arg);
            }
        }
    }

    #[test]
    fn two_lines_of_json_are_written_to_the_agent(request in any_request()) {
        if let Some((_, written)) = planned(&request) {
            let lines: Vec<_> = written.split_inclusive(|byte| *byte == b'\n').collect();
            let expected = if request.output == OutputMode::Batch { 0 } else { 2 };
            prop_assert_eq!(lines.len(), expected);
            for line in lines {
                let document: Value = serde_json::from_slice(line).unwrap();
                let kind = document["type"].as_str().unwrap();
                prop_assert!(kind == "control_request" || kind == "user", "{}", kind);
                if kind == "user" && request.attachments.is_empty() {
                    prop_assert_eq!(text_of(&document["message"]["content"]), request.prompt.as_str());
                }
            }
        }
    }

    #[test]
    fn debug_output_shows_no_prompts_and_no_secrets(request in any_request(), words in "[a-z]{12}") {
        let mut request = request;
        request.prompt = format!("prompt-{words}");
        request.system_prompt = Some(format!("system-{words}"));
        request.append_system_prompt = Some(format!("append-{words}"));
        let mut shown = format!("{request:?}{request:#?}{:?}", request.mcp_servers);
        if let Some((launch, _)) = planned(&request) {
            let plan = Claude.plan(&request);
            shown = format!("{shown}{launch:?}{:?}{:?}{plan:?}", launch.stdin, launch.files);
        }
        for hidden in [SECRET, words.as_str()] {
            prop_assert!(!shown.contains(hidden), "{}", shown);
        }
    }

    #[test]
    fn a_request_is_read_back_from_json_as_it_was_written(request in any_request()) {
        let text = serde_json::to_string(&request).unwrap();
        prop_assert_eq!(serde_json::from_str::<RunRequest>(&text).unwrap(), request);
    }
}

#[test]
fn no_argument_contains_the_prompt_in_any_mode() {
    for output in [OutputMode::Stream, OutputMode::Messages, OutputMode::Batch] {
        let request = request(|r| {
            r.prompt = "--help PROMPT".into();
            r.output = output;
        });
        let (launch, written) = planned(&request).unwrap();
        assert!(!launch.args.iter().any(|arg| matches!(arg, Arg::Text(text) if text.contains("PROMPT"))), "{output:?}");
        let batch = Stdin::Write(request.prompt.clone().into_bytes());
        assert_eq!(launch.stdin, if output == OutputMode::Batch { batch } else { Stdin::Open });
        assert_eq!(written.is_empty(), output == OutputMode::Batch);
    }
}

#[test]
fn arguments_of_the_caller_are_passed_unchanged() {
    let own = ["--effort", "low", "-x", "--add-dir=a b"];
    let request = request(|r| r.cli_args = own.map(Into::into).to_vec());
    let (launch, _) = planned(&request).unwrap();
    let expected: Vec<_> = own.iter().map(|&text| Arg::Text(text.to_owned())).collect();
    assert!(launch.args.ends_with(&expected), "{:?}", launch.args);
}
