//! What is refused before anything is started, and where the values of a request can end up.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use teamster_agents::agent::{Agent, claude::Claude};
use teamster_agents::launch::{Arg, Launch, Stdin};
use teamster_agents::protocol::{Action, Input, ProcessAction};
use teamster_types::request::{
    AgentInterface, Attachment, Conversation, Inherit, McpServer, OutputMode, PermissionMode, ProjectTrust, PromptMode,
    RetryPolicy, RunRequest,
};

fn request(change: impl FnOnce(&mut RunRequest)) -> RunRequest {
    let mut request = RunRequest::new("x");
    change(&mut request);
    request
}

#[test]
fn a_bad_request_is_refused_with_words_that_say_what_to_change() {
    let env = |name: &str, value: &str| request(|r| r.env = [(name.to_owned(), value.to_owned())].into());
    let table = vec![
        RunRequest::new(""),
        RunRequest::new(" \n\t"),
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
    ];
    let texts: Vec<_> = table.iter().map(|request| request.validate().unwrap_err().to_string()).collect();
    let texts = texts.join("\n");
    insta::assert_snapshot!(texts, @r#"
    the prompt is empty: describe what the agent should do
    the prompt is empty: describe what the agent should do
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
    retries and batch output cannot be combined: it does not tell whether a tool has run; ask for retries even after tools
    "#);
}

#[test]
fn what_the_agent_cannot_do_is_refused_when_the_run_is_planned() {
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
    cannot attach a.png: it has not been read: whoever starts the run must read it first
    cannot attach a.bin: it is no text, PNG, JPEG, GIF, WebP or PDF
    claude does not support a literal prompt in batch or exec mode: plain text is always interpreted; use streaming output in mode auto
    claude does not support a schema of this length in batch or exec mode: it goes by argv there; use streaming output in mode auto
    claude does not support attachments in batch or exec mode: the prompt is plain text there; use streaming output in mode auto
    "#);
}

#[test]
fn a_field_that_does_not_exist_is_refused() {
    let error = serde_json::from_value::<RunRequest>(json!({"prompt": "x", "permisions": {}})).unwrap_err();
    assert!(error.to_string().starts_with("unknown field `permisions`"), "{error}");
}

#[test]
fn retries_are_read_with_their_units_and_what_is_left_out_is_the_default() {
    let read =
        |retries: Value| serde_json::from_value::<RunRequest>(json!({"prompt": "x", "retries": retries})).unwrap();
    let all = read(json!({"max": 3, "baseMs": 1500, "policy": "mayRepeatTools"})).retries;
    assert_eq!((all.max, all.base, all.policy), (3, Duration::from_millis(1500), RetryPolicy::MayRepeatTools));
    let one = read(json!({"max": 2})).retries;
    assert_eq!((one.max, one.base, one.policy), (2, Duration::from_secs(5), RetryPolicy::Safe));
    assert_eq!(RunRequest::new("x").retries.max, 0);
}

/// Words that are dangerous somewhere: as flags, in shells, in agents' prompts, in files, in lines.
const HOSTILE: &[&str] = &[
    "",
    " ",
    "-",
    "--",
    "-c x=y",
    "--help",
    "--dangerously-skip-permissions",
    "--mcp-config={}",
    "--model=x",
    "x --help",
    "x\n--help",
    "x\0--help",
    "@/etc/passwd",
    "/clear",
    "!ls",
    "# note",
    "code",
    "$(ls)",
    "`ls`",
    "${HOME}",
    "'; ls #",
    "\"",
    "\\",
    "a=b",
    "a,b",
    "../../x",
    "C:\\x",
    "x\r\n{\"type\":\"user\"}",
    "\u{2028}",
    "\u{feff}x",
    "\u{202e}x",
    "👩\u{200d}💻",
    "*",
    "Bash(rm:*)",
];

fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![4 => select(HOSTILE).prop_map(str::to_owned), 1 => ".{0,20}", 2 => Just("plain".to_owned())]
}

fn maybe() -> impl Strategy<Value = Option<String>> {
    prop_oneof![3 => Just(None), 1 => hostile().prop_map(Some)]
}

fn words() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(hostile(), 0..2)
}

/// What no other user of the machine may read.
pub(crate) const SECRET: &str = "SECRET-8f2c";

fn server() -> impl Strategy<Value = McpServer> {
    prop_oneof![
        (hostile(), words(), hostile(), words()).prop_map(|(command, args, value, tools)| {
            McpServer::stdio(command)
                .args(args)
                .env("TOKEN", format!("{SECRET}{value}"))
                .cwd(value)
                .disable_tools(tools)
        }),
        (hostile(), hostile()).prop_map(|(value, name)| {
            McpServer::http(format!("http://x/{value}")).header(name, format!("{SECRET}{value}")).required()
        }),
        hostile().prop_map(|value| McpServer::sse("http://x/sse").bearer_token(format!("{SECRET}{value}"))),
    ]
}

prop_compose! {
    /// A request with something hostile in any of its fields. `cli_args` are left out: they are the caller's own flags.
    pub(crate) fn any_request()(
        (prompt, model, session) in (hostile(), maybe(), maybe()),
        (kind, output) in (0_u8..4, select(vec![OutputMode::Stream, OutputMode::Messages, OutputMode::Batch])),
        (system_prompt, append_system_prompt) in (maybe(), maybe()),
        (allow, deny, dirs) in (words(), words(), words()),
        mode in select(vec![
            PermissionMode::ReadOnly, PermissionMode::Ask, PermissionMode::Edit, PermissionMode::Full,
        ]),
        servers in proptest::collection::btree_map(hostile(), server(), 0..2),
        (effort, trust, prompt_mode) in (
            maybe(),
            select(vec![ProjectTrust::Trusted, ProjectTrust::Untrusted]),
            select(vec![PromptMode::Agent, PromptMode::Literal]),
        ),
        (schema, env, attachment) in (maybe(), proptest::collection::btree_map(hostile(), hostile(), 0..2), maybe()),
    ) -> RunRequest {
        request(|r| {
            r.prompt = prompt;
            r.model = model;
            r.conversation = match (session, kind) {
                (Some(id), 0) => Conversation::Fork(id.as_str().into()),
                (Some(id), _) => Conversation::Resume(id.as_str().into()),
                (None, 1) => Conversation::Continue,
                (None, _) => Conversation::New,
            };
            r.output = output;
            r.effort = effort;
            r.project_trust = trust;
            // Batch mode has no literal prompts: that is refused, and tested above.
            r.prompt_mode = if output == OutputMode::Batch { PromptMode::Agent } else { prompt_mode };
            r.system_prompt = system_prompt;
            r.append_system_prompt = append_system_prompt;
            r.permissions.mode = mode;
            r.permissions.allow = allow;
            r.permissions.deny = deny;
            r.add_dirs = dirs.into_iter().map(Into::into).collect();
            r.mcp_servers = servers;
            r.schema = schema.map(|text| json!({ "description": text }));
            r.env = env.into_iter().map(|(name, value)| (name, format!("{SECRET}{value}"))).collect();
            r.attachments = attachment.map(|name| Attachment::Data { name, data: b"text".to_vec() }).into_iter().collect();
        })
    }
}

/// The text of a user message, whether it is a string or cut into blocks.
fn said(content: &Value) -> String {
    match content {
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        content => content.as_str().unwrap().to_owned(),
    }
}

/// Flags that stand alone; each of our own making.
const ALONE: &[&str] = &[
    "-p",
    "--verbose",
    "--include-partial-messages",
    "--fork-session",
    "--continue",
    "--dangerously-skip-permissions",
    "--strict-mcp-config",
];

/// Flags whose value stands behind `=`.
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

/// Every argument is a flag of ours, a value inside `--flag=`, or a file's path. The prompt is none: it goes by stdin.
fn only_our_flags(launch: &Launch) -> Result<(), String> {
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
            Arg::Text(text) if ALONE.contains(&text.as_str()) => {}
            Arg::Text(text) => {
                let flag = text.split_once('=').map_or("", |(flag, _)| flag);
                if !WITH_VALUE.contains(&flag) {
                    return Err(format!("{text:?} is no flag of ours"));
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

/// A request that is valid, with its launch and what is written at the start.
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
            prop_assert_eq!(only_our_flags(&launch), Ok(()));
            let has_nul = launch.args.iter().any(|arg| matches!(arg, Arg::Text(text) if text.contains('\0')));
            prop_assert!(!has_nul);
        }
    }

    #[test]
    fn no_secret_stands_in_an_argument(request in any_request()) {
        if let Some((launch, _)) = planned(&request) {
            for arg in &launch.args {
                prop_assert!(!matches!(arg, Arg::Text(text) if text.contains(SECRET)), "{:?}", arg);
            }
        }
    }

    #[test]
    fn what_is_written_to_the_agent_is_two_lines_of_json(request in any_request()) {
        if let Some((_, written)) = planned(&request) {
            let lines: Vec<_> = written.split_inclusive(|byte| *byte == b'\n').collect();
            let expected = if request.output == OutputMode::Batch { 0 } else { 2 };
            prop_assert_eq!(lines.len(), expected);
            for line in lines {
                let document: Value = serde_json::from_slice(line).unwrap();
                let kind = document["type"].as_str().unwrap();
                prop_assert!(kind == "control_request" || kind == "user", "{}", kind);
                if kind == "user" && request.attachments.is_empty() {
                    prop_assert_eq!(said(&document["message"]["content"]), request.prompt.as_str());
                }
            }
        }
    }

    #[test]
    fn debug_output_shows_no_words_and_no_secrets(request in any_request(), words in "[a-z]{12}") {
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
fn the_prompt_stands_in_no_argument_in_any_mode() {
    for output in [OutputMode::Stream, OutputMode::Messages, OutputMode::Batch] {
        let request = request(|r| {
            r.prompt = "--help\0 PROMPT".into();
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
fn arguments_of_the_callers_own_are_passed_as_they_are() {
    let own = ["--effort", "low", "-x", "--add-dir=a b"];
    let request = request(|r| r.cli_args = own.map(Into::into).to_vec());
    let (launch, _) = planned(&request).unwrap();
    let expected: Vec<_> = own.iter().map(|&text| Arg::Text(text.to_owned())).collect();
    assert!(launch.args.ends_with(&expected), "{:?}", launch.args);
}
