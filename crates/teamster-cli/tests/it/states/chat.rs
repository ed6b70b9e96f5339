//! The states of `teamster chat`.

use super::{End, State, check};
use crate::workspace::Workspace;

const PROMPT: (&str, &str) = ("Ctrl-D quits", "Go\r");

const CHAT: State = State {
    name: "",
    agent: "claude",
    scenario: "",
    args: &["chat"],
    keys: &[PROMPT],
    shown: &["allow? "],
    end: End::Killed,
};

/// The states in which no agent has a login.
const WITHOUT_LOGIN: [&str; 1] = ["chat_no_login"];

fn prepare(workspace: &Workspace, state: &State) -> std::process::Command {
    let scenario = state.scenario.replace("PROJECT", workspace.project().to_str().unwrap());
    workspace.install(state.agent, &format!("[[turns]]\nsteps = [\n{scenario}\n]\n"));
    let mut command = workspace.teamster(state.args);
    command.env("AGENT_BACKEND", state.agent);
    if !WITHOUT_LOGIN.contains(&state.name) {
        command.envs(
            ["ANTHROPIC_API_KEY", "CODEX_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY"].map(|key| (key, "made-up")),
        );
    }
    command
}

#[test]
fn the_kinds_of_permission_prompts() {
    check(
        &[
            State {
                name: "prompt_command",
                scenario: "{ run = { command = \"npm install left-pad\", ask = true } }",
                ..CHAT
            },
            State {
                name: "prompt_command_of_several_lines",
                scenario: "{ run = { command = \"for file in src/*.js; do\\n\\tnode --check $file\\ndone\", ask = true } }",
                ..CHAT
            },
            State {
                name: "prompt_edit",
                scenario: "{ tool = { name = \"Edit\", input = { file_path = \"PROJECT/src/add.js\", \
                    old_string = \"export function add(a, b) {\\n  return a - b;\\n}\\n\", \
                    new_string = \"export function add(a, b) {\\n  return a + b;\\n}\\n\" }, ask = true } }",
                ..CHAT
            },
            State {
                name: "prompt_write",
                scenario: "{ tool = { name = \"Write\", input = { file_path = \"PROJECT/notes.md\", content = \"# Notes\\n\\nNone.\\n\" }, ask = true } }",
                ..CHAT
            },
            State {
                name: "prompt_fetch",
                scenario: "{ tool = { name = \"WebFetch\", input = { url = \"https://docs.rs/serde\", prompt = \"What is new?\" }, ask = true } }",
                ..CHAT
            },
            State {
                name: "prompt_mcp_tool",
                scenario: "{ tool = { name = \"mcp__issues__create\", input = { title = \"The parser fails\", labels = [\"bug\"] }, ask = true } }",
                ..CHAT
            },
        ],
        prepare,
    );
}

#[test]
fn the_permission_prompts_of_the_other_agents() {
    let scenario = "{ run = { command = \"npm install left-pad\", ask = true } }";
    check(
        &[
            State { name: "prompt_codex", agent: "codex", scenario, ..CHAT },
            State { name: "prompt_gemini", agent: "gemini", scenario, ..CHAT },
            State { name: "prompt_opencode", agent: "opencode", scenario, ..CHAT },
        ],
        prepare,
    );
}

const INSTALL: &str = "{ run = { command = \"npm install left-pad\", output = \"added 1 package\\n\", ask = true } }, { say = \"Installed.\" }";

#[test]
fn the_answers_to_a_permission_prompt() {
    check(
        &[
            State {
                name: "prompt_long",
                scenario: "{ run = { command = \"cat <<END\\n1\\n2\\n3\\n4\\n5\\n6\\n7\\n8\\n9\\n10\\n11\\n12\\n13\\n14\\n15\\n16\\n17\\n18\\n19\\n20\\n21\\n22\\n23\\n24\\n25\\n26\\n27\\nEND\", ask = true } }",
                ..CHAT
            },
            State {
                name: "prompt_wrong_answer",
                scenario: INSTALL,
                keys: &[PROMPT, ("allow? ", "sure\r")],
                shown: &["is no answer", "allow? \n"],
                ..CHAT
            },
            State {
                name: "prompt_always",
                scenario: INSTALL,
                keys: &[PROMPT, ("allow? ", "a\r")],
                shown: &["Installed.", "350 in, 80 out"],
                ..CHAT
            },
            State {
                name: "prompt_denied",
                scenario: INSTALL,
                keys: &[PROMPT, ("allow? ", "n use another package\r")],
                shown: &["Installed.", "350 in, 80 out"],
                ..CHAT
            },
        ],
        prepare,
    );
}

#[test]
fn questions_and_plans() {
    check(
        &[
            State {
                name: "question",
                scenario: "{ tool = { name = \"AskUserQuestion\", input = { questions = [{ question = \"Which test runner?\", \
                    header = \"Runner\", multiSelect = false, options = [{ label = \"node:test\", description = \"Built in\" }, \
                    { label = \"vitest\", description = \"Fast, with watch mode, and used by most projects that build with Vite\" }] }] }, ask = true } }",
                shown: &["(empty = decline): "],
                ..CHAT
            },
            State {
                name: "chat_plan",
                agent: "opencode",
                scenario: "{ tool = { name = \"todowrite\", input = { todos = [ \
                    { content = \"Find the failing test\", status = \"completed\", priority = \"high\", id = \"1\" }, \
                    { content = \"Correct the parser\", status = \"in_progress\", priority = \"high\", id = \"2\" }, \
                    { content = \"Run all tests\", status = \"pending\", priority = \"high\", id = \"3\" }] } } }, { say = \"Next.\" }",
                shown: &["Next.", "150 in, 80 out"],
                ..CHAT
            },
        ],
        prepare,
    );
}

#[test]
fn the_lines_around_a_conversation() {
    check(
        &[
            State {
                name: "chat_open",
                scenario: "{ say = \"Hi.\" }",
                keys: &[],
                shown: &["Ctrl-D quits", "· ask ·"],
                ..CHAT
            },
            State {
                name: "chat_help",
                scenario: "{ say = \"Hi.\" }",
                keys: &[("Ctrl-D quits", "/help\r")],
                shown: &["Esc, Ctrl-C stop the agent; Ctrl-C again: kill it\n\n> "],
                ..CHAT
            },
            State {
                name: "chat_failed",
                scenario: "{ fail = { status = 401, message = \"Invalid API key\" } }",
                shown: &["log in\n\n> "],
                ..CHAT
            },
            State { name: "chat_no_login", keys: &[], shown: &["or set ANTHROPIC_API_KEY", "ask · ~/app"], ..CHAT },
            State {
                name: "chat_end",
                scenario: "{ say = \"Hi.\" }",
                keys: &[PROMPT, ("1 turn ", "\u{4}")],
                shown: &["to resume"],
                end: End::Exit(0),
                ..CHAT
            },
            State {
                name: "chat_not_installed",
                args: &["chat", "--agent", "gemini"],
                keys: &[],
                shown: &[],
                end: End::Exit(127),
                ..CHAT
            },
        ],
        prepare,
    );
}
