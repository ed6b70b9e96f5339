//! The states of `teamster run`.

use super::{End, State, check};
use crate::workspace::Workspace;

/// Waits for a file that never exists.
const HOLD: &str = "{ waitForFile = \"../never\" }";

const RUN: State = State {
    name: "",
    agent: "claude",
    scenario: "",
    args: &["run", "--grace", "100ms", "Fix the test"],
    keys: &[],
    shown: &[],
    end: End::Killed,
};

fn prepare(workspace: &Workspace, state: &State) -> std::process::Command {
    let scenario = state.scenario.replace("HOLD", HOLD).replace("PROJECT", workspace.project().to_str().unwrap());
    workspace.install(state.agent, &format!("[[turns]]\nsteps = [\n{scenario}\n]\n"));
    let mut command = workspace.teamster(state.args);
    command.env("AGENT_BACKEND", state.agent);
    command
}

#[test]
fn the_work_of_an_agent() {
    check(
        &[
            State { name: "run_thinking", scenario: "HOLD", shown: &["thinking · N s"], ..RUN },
            State {
                name: "run_answering",
                scenario: "{ say = \"I read the *parser* first.\\n\\nThen\" }, HOLD",
                shown: &["Then", "answering · N s · 215 tokens"],
                ..RUN
            },
            State {
                name: "run_running_a_command",
                scenario: "{ run = { command = \"npm test -- --watch=false\", waitForFile = \"../never\" } }",
                shown: &["running npm test", "215 tokens"],
                ..RUN
            },
            State {
                name: "run_plan",
                agent: "gemini",
                scenario: "{ tool = { name = \"write_todos\", input = { todos = [ \
                    { description = \"Find the failing test\", status = \"completed\" }, \
                    { description = \"Correct the parser of numbers, which reads a sign as a digit and then fails\", status = \"in_progress\" }, \
                    { description = \"Run all tests\", status = \"pending\" }] } } }, { say = \"Next.\" }",
                shown: &["Next."],
                end: End::Exit(0),
                ..RUN
            },
        ],
        prepare,
    );
}

#[test]
fn the_results_of_calls() {
    check(
        &[
            State {
                name: "run_diff",
                scenario: "{ tool = { name = \"Edit\", input = { file_path = \"PROJECT/src/add.js\", \
                    old_string = \"export function add(a, b) {\\n\\treturn a - b;\\n}\\n\", \
                    new_string = \"export function add(a, b) {\\n\\t// The sum.\\n\\treturn a + b;\\n}\\n\" } } }, { say = \"Done.\" }",
                shown: &["Done."],
                end: End::Exit(0),
                ..RUN
            },
            State {
                name: "run_new_file",
                scenario: "{ tool = { name = \"Write\", input = { file_path = \"PROJECT/notes.md\", \
                    content = \"# Notes\\n\\n1\\n2\\n3\\n4\\n5\\n6\\n7\\n8\\n9\\n10\\n\" } } }, { say = \"Done.\" }",
                shown: &["Done."],
                end: End::Exit(0),
                ..RUN
            },
            State {
                name: "run_folded_output",
                scenario: "{ run = { command = \"cargo test\", output = \"test 1\\ntest 2\\ntest 3\\ntest 4\\ntest 5\\ntest 6\\n\
                    a line that is longer than a small terminal is wide, so that it is cut off at its end, where else\\n\
                    ok\\n\" } }, { say = \"Done.\" }",
                shown: &["Done."],
                end: End::Exit(0),
                ..RUN
            },
            State {
                name: "run_full_output",
                args: &["run", "--tool-output", "full", "Fix the test"],
                scenario: "{ run = { command = \"cargo test\", output = \"test 1\\ntest 2\\ntest 3\\ntest 4\\ntest 5\\ntest 6\\n\" } }, { say = \"Done.\" }",
                shown: &["Done."],
                end: End::Exit(0),
                ..RUN
            },
            State {
                name: "run_failed_command",
                scenario: "{ run = { command = \"npm test\", output = \"2 pass\\n1 fails\\n\", exit = 1 } }, \
                    { run = { command = \"false\", exit = 1 } }, \
                    { tool = { name = \"Read\", input = { file_path = \"PROJECT/none.js\" }, failed = true, \
                    output = \"<tool_use_error>File does not exist.</tool_use_error>\" } }, { say = \"Done.\" }",
                shown: &["Done."],
                end: End::Exit(0),
                ..RUN
            },
            State {
                name: "run_denied",
                scenario: "{ run = { command = \"npm publish\", ask = true } }, { say = \"I may not publish.\" }",
                shown: &["I may not publish."],
                end: End::Exit(0),
                ..RUN
            },
        ],
        prepare,
    );
}

#[test]
fn the_end_of_a_failed_run() {
    check(
        &[
            State {
                name: "run_refused_key",
                scenario: "{ fail = { status = 401, message = \"Invalid API key\" } }",
                end: End::Exit(1),
                ..RUN
            },
            State {
                name: "run_rate_limit",
                scenario: "{ say = \"I look.\" }, { fail = { status = 429, message = \"Too many requests\" } }",
                end: End::Exit(1),
                ..RUN
            },
            State { name: "run_not_installed", args: &["run", "--agent", "codex", "hi"], end: End::Exit(127), ..RUN },
        ],
        prepare,
    );
}

/// Claude Code's announcement that it calls the model again, and the lines before it.
const RETRY: &str = "read -r opening; read -r prompt; head -n 2 CAPTURE; \
    echo '{\"type\":\"system\",\"subtype\":\"api_retry\",\"attempt\":1,\"max_retries\":10,\"retry_delay_ms\":59000,\
    \"error_status\":429,\"error\":\"rate_limit\"}'; cat > /dev/null";

#[test]
fn an_agent_that_has_not_started_or_calls_the_model_again() {
    check(
        &[
            State {
                name: "run_starting",
                scenario: "read -r opening; cat > /dev/null",
                shown: &["starting · N s"],
                ..RUN
            },
            State { name: "run_retrying", scenario: RETRY, shown: &["retrying in "], ..RUN },
        ],
        |workspace, state| {
            let capture = crate::command::capture("err_rate429_once");
            let script = state.scenario.replace("CAPTURE", capture.to_str().unwrap());
            workspace.install_script(state.agent, &format!("PATH=/usr/bin:/bin\n{script}"));
            workspace.teamster(state.args)
        },
    );
}
