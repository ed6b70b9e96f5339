//! Errors of requests: invalid values, and options that Claude Code does not support.

use std::time::Duration;

use serde_json::{Value, json};
use teamster_agents::agent::{Agent, claude::Claude};
use teamster_types::request::{
    AgentInterface, Attachment, Conversation, Inherit, OutputMode, PromptMode, RetryPolicy, RunRequest,
};

use crate::any_request::request;

/// Returns one request for each rule of [`RunRequest::validate`].
fn invalid_requests() -> Vec<RunRequest> {
    let env = |name: &str, value: &str| request(|r| r.env = [(name.to_owned(), value.to_owned())].into());
    vec![
        RunRequest::new(""),
        RunRequest::new(" \n\t"),
        RunRequest::new("a\0b"),
        request(|r| r.model = Some(String::new())),
        request(|r| r.model = Some("-c x=y".into())),
        request(|r| r.model = Some("a\0b".into())),
        request(|r| r.conversation = Conversation::Resume("--help".into())),
        request(|r| r.conversation = Conversation::Fork(" ".into())),
        request(|r| r.system_prompt = Some(String::new())),
        request(|r| r.append_system_prompt = Some("a\0".into())),
        request(|r| r.permissions.allow = vec!["Read".into(), String::new()]),
        request(|r| r.permissions.deny = vec!["--mcp-config".into()]),
        request(|r| r.cli_args = vec!["--x\0".into()]),
        request(|r| r.add_dirs = vec!["".into()]),
        request(|r| r.cwd = Some("a\0".into())),
        request(|r| r.cli_path = Some("".into())),
        env("", "x"),
        env("A=B", "x"),
        env("A", "x\0"),
        request(|r| r.inherit = Inherit::Only(vec!["A=B".into()])),
        request(|r| r.inherit = Inherit::Only(vec!["A".into(), "*_A_*".into()])),
        request(|r| r.inherit = Inherit::WithholdKeys { keep: vec![String::new()] }),
        request(|r| r.inherit = Inherit::WithholdKeys { keep: vec!["A\0".into()] }),
        request(|r| r.schema = Some(json!("object"))),
        request(|r| r.max_budget_usd = Some(0.0)),
        request(|r| r.max_budget_usd = Some(f64::NAN)),
        request(|r| r.limits.max_line_bytes = 0),
        request(|r| {
            r.output = OutputMode::Batch;
            r.attachments = vec![Attachment::Path("a.png".into())];
        }),
        request(|r| r.retries.max = 101),
        request(|r| r.retries.base = Duration::from_millis(60_001)),
        request(|r| (r.output, r.retries.max, r.retries.policy) = (OutputMode::Batch, 1, RetryPolicy::MayRepeatPrompt)),
    ]
}

#[test]
fn an_invalid_request_is_rejected_and_the_error_names_the_change() {
    let texts: Vec<_> = invalid_requests().iter().map(|request| request.validate().unwrap_err().to_string()).collect();
    let texts = texts.join("\n");
    insta::assert_snapshot!(texts, @r#"
    the prompt is empty: describe what the agent should do
    the prompt is empty: describe what the agent should do
    the prompt contains a NUL byte
    model is empty: omit it instead
    model must not start with '-': "-c x=y"
    model contains a NUL byte
    session id must not start with '-': "--help"
    session id is empty: omit it instead
    system_prompt is empty: omit it instead
    append_system_prompt contains a NUL byte
    allowed tools is empty: omit it instead
    denied tools must not start with '-': "--mcp-config"
    cli_args contains a NUL byte
    add_dirs is empty: omit it instead
    cwd contains a NUL byte
    cli_path is empty: omit it instead
    "" is not a valid name of an environment variable: it must not be empty or contain '=' or NUL
    "A=B" is not a valid name of an environment variable: it must not be empty or contain '=' or NUL
    a value in env contains a NUL byte
    "A=B" is not a valid name or pattern of variables: use a name, or a pattern with one '*' such as AWS_*
    "*_A_*" is not a valid name or pattern of variables: use a name, or a pattern with one '*' such as AWS_*
    "" is not a valid name or pattern of variables: use a name, or a pattern with one '*' such as AWS_*
    "A\0" is not a valid name or pattern of variables: use a name, or a pattern with one '*' such as AWS_*
    the schema must be a JSON object
    max_budget_usd must be a positive amount
    max_budget_usd must be a positive amount
    max_line_bytes must not be zero: every line would be too long
    batch output and attachments cannot be combined: they go to the agent as a stream
    retries.max must be at most 100
    retries.base must be at most 60000 ms
    retries and batch output cannot be combined: batch output does not show whether a tool has run; permit retries after tool calls
    "#);
}

#[test]
fn an_option_that_the_agent_does_not_support_is_rejected_when_the_run_is_planned() {
    let table = [
        request(|r| r.attachments = vec![Attachment::Path("a.png".into())]),
        request(|r| r.attachments = vec![Attachment::Data { name: "a.bin".into(), data: vec![0, 1] }]),
        request(|r| (r.output, r.prompt_mode) = (OutputMode::Batch, PromptMode::Literal)),
        request(|r| {
            r.output = OutputMode::Batch;
            r.schema = Some(json!({"description": "x".repeat(200_000)}));
        }),
        request(|r| {
            r.interface = AgentInterface::Exec;
            r.attachments = vec![Attachment::Data { name: "a.txt".into(), data: b"a".to_vec() }];
        }),
    ];
    let texts = table.map(|request| Claude.plan(&request).unwrap_err().to_string()).join("\n");
    insta::assert_snapshot!(texts, @r#"
    cannot attach a.png: the file was not read before the start
    cannot attach a.bin: it is not a text, PNG, JPEG, GIF, WebP or PDF
    claude does not support a literal prompt in batch or exec mode: plain text is always interpreted; use streaming output in mode auto
    claude does not support a schema of this length in batch or exec mode: it is an argument there; use streaming output in mode auto
    claude does not support attachments in batch or exec mode: the prompt is plain text there; use streaming output in mode auto
    "#);
}

#[test]
fn an_unknown_field_is_rejected() {
    let error = serde_json::from_value::<RunRequest>(json!({"prompt": "x", "permisions": {}})).unwrap_err();
    assert!(error.to_string().starts_with("unknown field `permisions`"), "{error}");
}

#[test]
fn retries_are_read_with_their_units_and_missing_fields_have_defaults() {
    let read =
        |retries: Value| serde_json::from_value::<RunRequest>(json!({"prompt": "x", "retries": retries})).unwrap();
    let all = read(json!({"max": 3, "baseMs": 1500, "policy": "mayRepeatTools"})).retries;
    assert_eq!((all.max, all.base, all.policy), (3, Duration::from_millis(1500), RetryPolicy::MayRepeatTools));
    let one = read(json!({"max": 2})).retries;
    assert_eq!((one.max, one.base, one.policy), (2, Duration::from_secs(5), RetryPolicy::Safe));
    assert_eq!(RunRequest::new("x").retries.max, 0);
}
