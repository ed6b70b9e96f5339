//! The steps of the tour: what is typed, and what the scripted agents do.

use serde_json::json;

use super::page::{Page, toml};
use super::recorder::{Recorder, SIZE};
use super::svg;
use crate::workspace::Workspace;

/// The file with the mistake, and its correction.
const WRONG: &str = "export function add(a, b) {\n  return a - b;\n}\n";
const RIGHT: &str = "export function add(a, b) {\n  return a + b;\n}\n";

pub(super) fn first_screens(workspace: &Workspace, page: &mut Page<'_>) {
    page.section("What is here");
    workspace.install_script("npm", "exit 1");
    page.prose("Without arguments, the command shows which agents are installed, and what to type next:");
    page.run("teamster");
    page.prose("After `npm install -g @anthropic-ai/claude-code`:");
    workspace.install("claude", "[[turns]]\nsteps = []\n");
    page.run("teamster");
    page.prose("An agent with a login is ready. Here it is a key in `ANTHROPIC_API_KEY`:");
    page.set("ANTHROPIC_API_KEY", "made-up");
    page.run("teamster");
    page.prose("`teamster doctor` starts each program and reports its version and its login:");
    page.run("teamster doctor");
}

const FIX: &str = r#"
[[turns]]
steps = [
  { waitForFile = "../go1" },
  { say = "I run the tests first." },
  { run = { command = "npm test", output = "✖ adds two numbers\n  -1 !== 3\nℹ pass 2\nℹ fail 1\n", exit = 1, waitForFile = "../go2" } },
  { tool = { name = "Edit", input = EDIT, output = "The file was updated." } },
  { run = { command = "npm test", output = "ℹ pass 3\nℹ fail 0\n", waitForFile = "../go3" } },
  { say = """
**Fixed.** `add` subtracted its second argument.

- `src/add.js`: `a - b` is now `a + b`
- All 3 tests pass.
""" },
]
"#;

/// Returns the picture of a run.
pub(super) fn first_run(workspace: &Workspace, page: &mut Page<'_>) -> String {
    workspace.write("src/add.js", WRONG);
    page.quietly("git init -q && git add . && git -c user.name=dev -c user.email=dev@localhost commit -qm 'Add add'");
    let edit = json!({"file_path": workspace.project().join("src/add.js"), "old_string": WRONG, "new_string": RIGHT});
    workspace.install("claude", &FIX.replace("EDIT", &toml(&edit)));
    page.section("The first run");
    page.prose(
        "A run is one prompt. `--permission edit` allows changes of files, and `--allow-tool` allows a command. \
         Each call is shown with its result, and an edit with its diff:",
    );
    let line = "teamster run --permission edit --allow-tool 'Bash(npm test)' \\\n    'Fix the failing test'";
    let mut recorder = Recorder::start(workspace, &page.line(line));
    recorder.frame(&["thinking · N s"], 1, 15);
    recorder.go("go1");
    recorder.frame(&["I run the tests first.", "running npm test", "430 tokens"], 4, 20);
    recorder.go("go2");
    recorder.frame(&["return a + b;", "running npm test", "860 tokens"], 7, 25);
    recorder.go("go3");
    let (text, frames) = recorder.finish(8, 60);
    page.show(&text);
    workspace.write("src/add.js", RIGHT);
    svg::draw("teamster run: an agent fixes a failing test", SIZE.0, &frames)
}

pub(super) fn piped(workspace: &Workspace, page: &mut Page<'_>) {
    workspace.install(
        "claude",
        "[[turns]]\nsteps = [{ say = \"The change is correct: `add` returned the difference, and the tests expect the sum.\" }]\n",
    );
    page.section("A pipe");
    page.prose("`teamster run` appends standard input to the prompt:");
    page.run("git diff | teamster run 'Review this change in one sentence'");
    page.prose("With `--output text`, a pipe gets only the answer. `--output ndjson` prints the events:");
    page.run("git diff | teamster run --output text 'Review this change' | tr a-z A-Z");
}

pub(super) fn denied(workspace: &Workspace, page: &mut Page<'_>) {
    workspace.install(
        "claude",
        "[[turns]]\nsteps = [{ run = { command = \"npm publish\", ask = true } }, \
         { say = \"I may not run `npm publish` here, so nothing is published.\" }]\n",
    );
    page.section("A denied permission");
    page.prose(
        "A run cannot ask. What its permissions do not allow is denied, and the last lines name the options that allow it:",
    );
    page.run("teamster run 'Publish the package'");
}

const PUBLISH: &str = r#"
[[turns]]
steps = [
  { waitForFile = "../go4" },
  { say = "I raise the version, and then publish." },
  { run = { command = "npm version patch", output = "v1.0.1\n", ask = true } },
  { run = { command = "npm publish --dry-run", output = "+ app@1.0.1\n", ask = true } },
  { say = "Version **1.0.1** is ready: `npm publish` would upload 3 files." },
]
"#;

/// Returns the picture of a chat.
pub(super) fn conversation(workspace: &Workspace, page: &mut Page<'_>) -> String {
    workspace.install("claude", PUBLISH);
    page.section("A conversation");
    page.prose("A chat asks for permission. The prompt shows the whole call, and what each key allows:");
    let mut recorder = Recorder::start(workspace, &page.line("teamster chat"));
    recorder.frame(&["Ctrl-D quits", "claude · ask · ~/app"], 0, 10);
    recorder.terminal.press("Prepare a patch release");
    recorder.frame(&["> Prepare a patch release"], 0, 10);
    recorder.terminal.press("\r");
    recorder.frame(&["thinking · N s", "claude · claude-opus-4-8 · ask"], 1, 10);
    recorder.go("go4");
    recorder.frame(&["npm version patch", "allow? ", "430 tokens"], 3, 25);
    page.show(&recorder.terminal.text());
    page.prose("`a` allows calls like this one until the session ends, and `y` allows one call:");
    recorder.terminal.press("a\r");
    // The line of the first answer does not end after the question.
    recorder.frame(&["npm publish --dry-run", "allow? \n", "645 tokens"], 6, 25);
    recorder.terminal.press("y\r");
    recorder.frame(&["would upload 3 files", "claude-opus-4-8 · 4 turns", "context 0%"], 8, 40);
    recorder.terminal.press("\u{4}");
    let (text, frames) = recorder.finish(8, 30);
    page.show(&text);
    svg::draw("teamster chat: an agent asks for permission", SIZE.0, &frames)
}

pub(super) fn resumed(workspace: &Workspace, page: &mut Page<'_>) {
    workspace.install(
        "claude",
        "[[turns]]\nsteps = [{ say = \"You asked for a patch release. The version is 1.0.1, and nothing is published yet.\" }]\n",
    );
    page.section("Later");
    page.prose("`--continue` resumes the newest conversation of the directory. `--resume ID` resumes any other:");
    page.run("teamster run --continue 'Where were we?'");
}

pub(super) fn profile(workspace: &Workspace, page: &mut Page<'_>) {
    workspace.install(
        "claude",
        "[[turns]]\nsteps = [{ say = \"The commit adds `add`, but no test of negative numbers.\" }]\n",
    );
    page.section("A profile");
    page.prose("`teamster config init` writes a file with every setting as a comment. Add a profile to the file:");
    page.run_exact("teamster config init");
    page.run(
        "cat >> ~/.config/teamster/config.toml <<END\n[profiles.review]\npermission = \"read-only\"\n\
         append_system_prompt = \"Review the change. Do not edit files.\"\nmax_turns = 20\nEND",
    );
    page.run_exact("teamster config show --profile review");
    page.run("teamster run --profile review 'Review the last commit'");
}
