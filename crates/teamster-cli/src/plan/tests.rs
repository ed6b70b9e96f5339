mod inputs;
mod pairs;

use std::ffi::OsString;

use insta::assert_snapshot;
use serde_json::{Map, Value, json};

pub(crate) use self::inputs::TestInputs;
use super::*;
use crate::args::{self, Command};

fn plan(
    argv: &[&str],
    variables: &[(&'static str, &'static str)],
    mut inputs: TestInputs,
) -> Result<RunPlan, UsageError> {
    let argv: Vec<OsString> = ["teamster", "run"].iter().chain(argv).map(OsString::from).collect();
    inputs.variables = variables.to_vec();
    let parsed = args::parse(&argv, &mut inputs, || "claude").unwrap();
    let Command::Run(typed) = parsed.cli.command else { panic!("no run") };
    plan_run(*typed, &mut inputs)
}

/// Returns the fields of the plan's request that differ from the defaults.
pub(super) fn changed_fields(agent: &str, request: &RunRequest) -> Value {
    let object = |request: &RunRequest| match serde_json::to_value(request).unwrap() {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let defaults = object(&RunRequest::default());
    let mut fields = object(request);
    fields.retain(|name, value| defaults.get(name) != Some(value));
    for group in ["limits", "retries"] {
        if let (Some(Value::Object(set)), Some(Value::Object(default))) = (fields.get_mut(group), defaults.get(group)) {
            set.retain(|name, value| default.get(name) != Some(value));
        }
    }
    if agent != "claude" {
        fields.insert("agent".to_owned(), json!(agent));
    }
    Value::Object(fields)
}

/// Checks the fields of the request that each command line sets, also if each file starts with a byte order mark.
fn check_fields(rows: &[(&[&str], Value)]) {
    let marks: [&[u8]; 2] = [b"", b"\xef\xbb\xbf"];
    for ((argv, expected), mark) in rows.iter().flat_map(|row| marks.map(|mark| (row, mark))) {
        let files: Vec<(&str, &[u8])> = vec![
            ("brief", b"Be brief\n"),
            ("schema.json", b"{\"type\": \"array\"}"),
            ("servers.json", b"{\"mcpServers\": {\"b\": {\"type\": \"http\", \"url\": \"http://b\"}}}"),
            (
                "codex.toml",
                b"model = 'x'\n[mcp_servers.c]\ncommand = 'x'\nstartup_timeout_sec = 2.5\nenv = {A = '${KEY}', B = '${MORE}'}\n",
            ),
        ];
        let files = files.into_iter().map(|(name, content)| (name, &*[mark, content].concat().leak())).collect();
        let plan = plan(argv, &[], TestInputs { files, ..TestInputs::default() }).unwrap();
        assert_eq!(changed_fields(&plan.agent, &plan.request), *expected, "{argv:?}");
    }
}

#[test]
fn each_option_on_the_prompt_and_the_agent_sets_its_field() {
    check_fields(&[
        (&["hi"], json!({"prompt": "hi"})),
        (&["--", "--help", "me"], json!({"prompt": "--help me"})),
        (&["--", "-"], json!({"prompt": "-"})),
        (&["-a", "Claude", "hi"], json!({"prompt": "hi", "agent": "Claude"})),
        (&["-m", "opus", "hi"], json!({"prompt": "hi", "model": "opus"})),
        (&["--effort", "high", "hi"], json!({"prompt": "hi", "effort": "high"})),
        (&["--project-trust", "untrusted", "hi"], json!({"prompt": "hi", "projectTrust": "untrusted"})),
        (&["--prompt-mode=literal", "/hi"], json!({"prompt": "/hi", "promptMode": "literal"})),
        (
            &["--env-only", "A,B_*", "--env-only=C", "hi"],
            json!({"prompt": "hi", "inherit": {"only": ["A", "B_*", "C"]}}),
        ),
        (&["--withhold-keys", "hi"], json!({"prompt": "hi", "inherit": {"withholdKeys": {}}})),
        (
            &["--withhold-keys", "--keep-key", "A,B", "--keep-key", "C", "hi"],
            json!({"prompt": "hi", "inherit": {"withholdKeys": {"keep": ["A", "B", "C"]}}}),
        ),
        (&["-C", "sub", "hi"], json!({"prompt": "hi", "cwd": "/here/sub"})),
        (&["-C", "/else", "hi"], json!({"prompt": "hi", "cwd": "/else"})),
        (&["-r", "id", "hi"], json!({"prompt": "hi", "conversation": {"resume": "id"}})),
        (&["-r", "id", "--fork", "hi"], json!({"prompt": "hi", "conversation": {"fork": "id"}})),
        (&["--continue", "hi"], json!({"prompt": "hi", "conversation": "continue"})),
        (&["--continue", "--fork", "hi"], json!({"prompt": "hi", "conversation": "forkNewest"})),
        (&["--system-prompt", "Be brief", "hi"], json!({"prompt": "hi", "systemPrompt": "Be brief"})),
        (&["--system-prompt-file", "brief", "hi"], json!({"prompt": "hi", "systemPrompt": "Be brief\n"})),
        (&["--append-system-prompt", "Be", "hi"], json!({"prompt": "hi", "appendSystemPrompt": "Be"})),
        (&["--append-system-prompt-file", "brief", "hi"], json!({"prompt": "hi", "appendSystemPrompt": "Be brief\n"})),
        (
            &["--permission", "read-only", "--allow-tool", "A(b,c)", "--allow-tool", "B", "--deny-tool", "C", "hi"],
            json!({"prompt": "hi", "permissions": {"mode": "read-only", "allow": ["A(b,c)", "B"], "deny": ["C"]}}),
        ),
        (&["--permission", "full", "hi"], json!({"prompt": "hi", "permissions": {"mode": "full"}})),
    ]);
}

#[test]
fn each_option_on_limits_files_and_servers_sets_its_field() {
    check_fields(&[
        (
            &["--max-turns", "3", "--max-budget", "0.5", "hi"],
            json!({"prompt": "hi", "maxTurns": 3, "maxBudgetUsd": 0.5}),
        ),
        (
            &["--add-dir", "a", "--add-dir", "./b", "--attach", "c.png", "hi"],
            json!({"prompt": "hi", "addDirs": ["/here/a", "/here/b"], "attachments": [{"path": "/here/c.png"}]}),
        ),
        (&["--schema", "{\"type\":\"object\"}", "hi"], json!({"prompt": "hi", "schema": {"type": "object"}})),
        (&["--schema", "schema.json", "hi"], json!({"prompt": "hi", "schema": {"type": "array"}})),
        (&["--env", "A=1", "--env", "B=c=d", "hi"], json!({"prompt": "hi", "env": {"A": "1", "B": "c=d"}})),
        (&["--cli-path", "claude-dev", "hi"], json!({"prompt": "hi", "cliPath": "claude-dev"})),
        (&["--cli-path", "./claude", "hi"], json!({"prompt": "hi", "cliPath": "/here/claude"})),
        (&["--cli-arg", "--effort", "--cli-arg=low", "hi"], json!({"prompt": "hi", "cliArgs": ["--effort", "low"]})),
        (
            &["--timeout", "90s", "--startup-timeout", "500ms", "--tool-timeout", "0", "hi"],
            json!({"prompt": "hi", "limits": {"silenceMs": 90_000, "startupMs": 500, "toolMs": 0}}),
        ),
        (
            &["--deadline", "1h30m", "--grace", "0s", "hi"],
            json!({"prompt": "hi", "limits": {"deadlineMs": 5_400_000, "graceMs": 0}}),
        ),
        (&["--retries", "3", "hi"], json!({"prompt": "hi", "retries": {"max": 3}})),
        (
            &["--retries=0", "--retry-even-after", "prompt", "hi"],
            json!({"prompt": "hi", "retries": {"policy": "mayRepeatPrompt"}}),
        ),
        (
            &["--retries", "100", "--retry-even-after", "tools", "hi"],
            json!({"prompt": "hi", "retries": {"max": 100, "policy": "mayRepeatTools"}}),
        ),
        (&["--batch", "hi"], json!({"prompt": "hi", "output": "batch"})),
        (&["--mode", "exec", "hi"], json!({"prompt": "hi", "mode": "exec"})),
        (&["--mode", "spawn", "hi"], json!({"prompt": "hi", "mode": "spawn"})),
        (&["--whole-messages", "hi"], json!({"prompt": "hi", "output": "messages"})),
        (
            &["--mcp-config", "{\"a\":{\"command\":\"x\"}}", "--mcp-config", "servers.json", "hi"],
            json!({"prompt": "hi", "mcpServers": {
                "a": {"type": "stdio", "command": "x"}, "b": {"type": "http", "url": "http://b"},
            }}),
        ),
        (
            &["--mcp-config", "codex.toml", "--env", "MORE=m", "--mcp-strict", "hi"],
            json!({"prompt": "hi", "env": {"MORE": "m"}, "userMcpServers": "leftOut", "mcpServers": {
                "c": {"type": "stdio", "command": "x", "env": {"A": "k3y", "B": "m"}, "startupTimeoutMs": 2500},
            }}),
        ),
    ]);
}

#[test]
fn the_output_format_is_selected_by_name_and_defaults_to_pretty() {
    let format = |argv: &[&str]| plan(argv, &[], TestInputs::default()).unwrap().format;
    assert_eq!(format(&["hi"]), Format::Pretty);
    let named = ["pretty", "text", "ndjson", "json"].map(|name| format(&["--output", name, "hi"]));
    assert_eq!(named, [Format::Pretty, Format::Text, Format::Ndjson, Format::Json]);
}

#[test]
fn options_override_variables_and_empty_variables_count_as_unset() {
    type Row = (&'static [&'static str], &'static [(&'static str, &'static str)], Value);
    let rows: &[Row] = &[
        (&["hi"], &[("BACKEND_MODEL", "opus")], json!({"prompt": "hi", "model": "opus"})),
        (&["-m", "sonnet", "hi"], &[("BACKEND_MODEL", "opus")], json!({"prompt": "hi", "model": "sonnet"})),
        (&["hi"], &[("BACKEND_CLI_PATH", "bin/claude")], json!({"prompt": "hi", "cliPath": "/here/bin/claude"})),
        (&["hi"], &[("BACKEND_MAX_TURNS", "7")], json!({"prompt": "hi", "maxTurns": 7})),
        (&["hi"], &[("QUERY_TIMEOUT_MS", "1500")], json!({"prompt": "hi", "limits": {"deadlineMs": 1500}})),
        (
            &["--deadline", "2s", "hi"],
            &[("QUERY_TIMEOUT_MS", "1500")],
            json!({"prompt": "hi", "limits": {"deadlineMs": 2000}}),
        ),
        (
            &["hi"],
            &[("BACKEND_MCP_DELIVERY", "merge-restore")],
            json!({"prompt": "hi", "mcpDelivery": "merge-restore"}),
        ),
        (
            &["hi"],
            &[("ALLOWED_TOOLS", "Read, Bash(echo a,b),")],
            json!({"prompt": "hi", "permissions": {"mode": "ask", "allow": ["Read", "Bash(echo a,b)"]}}),
        ),
        (
            &["--allow-tool", "Edit", "hi"],
            &[("ALLOWED_TOOLS", "Read")],
            json!({"prompt": "hi", "permissions": {"mode": "ask", "allow": ["Edit"]}}),
        ),
        (&["hi"], &[("AGENT_BACKEND", "CLAUDE")], json!({"prompt": "hi", "agent": "CLAUDE"})),
        (
            &["hi"],
            &[
                ("AGENT_BACKEND", ""),
                ("BACKEND_MODEL", ""),
                ("BACKEND_CLI_PATH", ""),
                ("BACKEND_MAX_TURNS", ""),
                ("ALLOWED_TOOLS", ""),
            ],
            json!({"prompt": "hi"}),
        ),
    ];
    for (argv, variables, expected) in rows {
        let plan = plan(argv, variables, TestInputs::default()).unwrap();
        assert_eq!(changed_fields(&plan.agent, &plan.request), *expected, "{argv:?} {variables:?}");
    }
}

#[test]
fn the_prompt_is_read_from_stdin_if_it_is_absent_or_a_dash() {
    let prompt =
        |argv: &[&str], stdin| plan(argv, &[], TestInputs { stdin, ..TestInputs::default() }).unwrap().request.prompt;
    assert_eq!(prompt(&[], Some(b"Fix it\n")), "Fix it");
    assert_eq!(prompt(&["-"], Some(b"Fix it\n\n")), "Fix it\n");
    assert_eq!(prompt(&[], Some(b"\xef\xbb\xbfFix it\n")), "Fix it", "without the byte order mark");
    assert_eq!(prompt(&["-"], None), "typed", "with a dash, stdin may be a terminal");
}

#[test]
fn piped_input_is_appended_to_a_typed_prompt_unless_it_is_ignored() {
    let prompt =
        |argv: &[&str], stdin| plan(argv, &[], TestInputs { stdin, ..TestInputs::default() }).unwrap().request.prompt;
    let piped = prompt(&["Review"], Some(b"a diff"));
    let (typed, rest) = piped.split_once("\n\n<stdin-").unwrap();
    assert_eq!((typed, rest.contains(">\na diff\n</stdin-")), ("Review", true), "{piped}");
    assert_eq!(prompt(&["--stdin", "read", "Review"], Some(b"a diff")), piped);
    assert_eq!(prompt(&["--", "Review"], Some(b"a diff")), piped);
    assert_eq!(prompt(&["--stdin", "ignore", "Review"], Some(b"a diff")), "Review");
    assert_eq!(prompt(&["Review"], Some(b"")), "Review");
    assert_eq!(prompt(&["Review"], None), "Review", "a terminal is not read");
}

/// A command line, and the content of standard input.
type InvalidRow = (&'static [&'static str], Option<&'static [u8]>);

const INVALID: &[InvalidRow] = &[
    (&[], None),
    (&[], Some(b"")),
    (&[], Some(b" \n")),
    (&[], Some(b"caf\xe9")),
    (&["--system-prompt-file", "missing", "hi"], None),
    (&["--system-prompt-file", "latin1", "hi"], None),
    (&["--schema", "missing.json", "hi"], None),
    (&["--schema", "{\"type\":", "hi"], None),
    (&["--schema", "list.json", "hi"], None),
    (&["--mcp-config", "broken.json", "hi"], None),
    (&["--mcp-config", "list.json", "hi"], None),
    (&["--mcp-config", "typo.json", "hi"], None),
    (&["--mcp-config", "{\"calc\":{\"url\":\"${NONE}\"}}", "hi"], None),
    (&["--mcp-config", "one.json", "--mcp-config", "{\"calc\":{\"command\":\"y\"}}", "hi"], None),
    (&["--model", "", "hi"], None),
    (&["--resume=--help", "hi"], None),
    (&["--batch", "--retries", "1", "hi"], None),
];

/// Returns the errors of these command lines.
fn errors_of(rows: &[InvalidRow]) -> String {
    let lines: Vec<String> = rows
        .iter()
        .map(|(argv, stdin)| {
            let files: Vec<(&str, &[u8])> = vec![
                ("latin1", b"caf\xe9"),
                ("broken.json", b"{"),
                ("list.json", b"[]"),
                ("one.json", b"{\"mcpServers\":{\"calc\":{\"command\":\"x\"}}}"),
                ("typo.json", b"{\"mcpServers\":{\"calc\":{\"comand\":\"x\",\"type\":\"stdio\"}}}"),
            ];
            let error =
                plan(argv, &[], TestInputs { files, stdin: *stdin, ..TestInputs::default() }).expect_err("invalid");
            let hint = error.hint().map(|hint| format!("\n  hint: {hint}")).unwrap_or_default();
            format!("{}\n  {error}{hint}", argv.join(" "))
        })
        .collect();
    lines.join("\n")
}

#[test]
fn invalid_input_is_rejected_with_its_source() {
    assert_snapshot!(errors_of(INVALID), @r#"
      there is no prompt
      hint: teamster run 'What does this project do?', or pipe a prompt into it

      the prompt is empty: describe what the agent should do

      the prompt is empty: describe what the agent should do

      the prompt on standard input is not UTF-8 text: byte 3 is wrong
    --system-prompt-file missing hi
      cannot read the file of --system-prompt-file, missing: entity not found
    --system-prompt-file latin1 hi
      latin1 is not UTF-8 text: byte 3 is wrong
    --schema missing.json hi
      cannot read the file of --schema, missing.json: entity not found
    --schema {"type": hi
      the JSON of --schema is not JSON: EOF while parsing a value at line 1 column 8
    --schema list.json hi
      the schema must be a JSON object
    --mcp-config broken.json hi
      broken.json: is not JSON: EOF while parsing an object at line 1 column 1
      hint: the format is {"mcpServers": {"name": {"command": "..."}}}
    --mcp-config list.json hi
      list.json: must be an object with "mcpServers"
      hint: the format is {"mcpServers": {"name": {"command": "..."}}}
    --mcp-config typo.json hi
      typo.json: server "calc": unknown field `comand`, expected one of `type`, `command`, `args`, `env`, `cwd`, `url`, `headers`, `bearerToken`, `required`, `startupTimeoutMs`, `toolTimeoutMs`, `enabledTools`, `disabledTools`
      hint: the format is {"mcpServers": {"name": {"command": "..."}}}
    --mcp-config {"calc":{"url":"${NONE}"}} hi
      the JSON of --mcp-config: server "calc": "url" needs the variable NONE, which is not set: set it, or write ${NONE:-a default}
      hint: the format is {"mcpServers": {"name": {"command": "..."}}}
    --mcp-config one.json --mcp-config {"calc":{"command":"y"}} hi
      the JSON of --mcp-config: server "calc" is already defined in one.json
      hint: rename or remove one of them
    --model  hi
      model is empty: omit it instead
    --resume=--help hi
      session id must not start with '-': "--help"
    --batch --retries 1 hi
      retries and batch output cannot be combined: batch output does not show whether a tool has run; permit retries after tool calls
    "#);
}

#[test]
fn schemas_and_uses_of_standard_input_are_checked_before_the_start() {
    let rows: &[InvalidRow] = &[
        (&["--stdin", "ignore"], Some(b"a prompt")),
        (&["--stdin", "ignore", "-"], Some(b"a prompt")),
        (&["Review"], Some(b"caf\xe9")),
        (&["--schema", "{\"type\":\"strin\"}", "hi"], None),
        (&["--schema", "{\"name\":\"string\"}", "hi"], None),
    ];
    assert_snapshot!(errors_of(rows), @r#"
    --stdin ignore
      there is no prompt
      hint: teamster run 'What does this project do?', or pipe a prompt into it
    --stdin ignore -
      the prompt - is standard input, which --stdin ignore excludes
    Review
      standard input is not UTF-8 text: byte 3 is wrong
    --schema {"type":"strin"} hi
      the schema is not a JSON Schema: at #/type: "strin" is not a type; the types are string, number, integer, boolean, object, array, null
    --schema {"name":"string"} hi
      the schema is not a JSON Schema: at #: none of its keys is a keyword of JSON Schema; an object with one text is {"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}
    "#);
}
