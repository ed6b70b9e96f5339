//! What reaches the agent's CLI.

use std::process::Stdio;

use crate::command::{ANSWER, Running, ended, teamster};

#[test]
fn a_prompt_from_stdin_reaches_the_agent() {
    let directory = tempfile::tempdir().unwrap();
    let received = directory.path().join("received");
    let script =
        "read -r opening; read -r prompt; printf '%s' \"$prompt\" > \"$RECEIVED\"; cat \"$CAPTURE\"; cat >/dev/null";
    for args in [&[][..], &["-"]] {
        let mut command = teamster(script, args);
        command.env("RECEIVED", &received).stdin(Stdio::piped());
        let mut running = Running::start(&mut command);
        running.type_in("Grüße, /fix it\n".as_bytes());
        assert_eq!(running.end().code, Some(0));
        let message: serde_json::Value = serde_json::from_slice(&std::fs::read(&received).unwrap()).unwrap();
        assert_eq!(message["message"]["content"], "Grüße, /fix it", "{args:?}");
    }
}

#[test]
fn options_and_variables_reach_the_cli() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = directory.path().join("arguments");
    let script = format!("printf '%s\\n' \"$@\" \"$EXTRA\" \"$PWD\" > \"$ARGUMENTS\"; {ANSWER}");
    let folder = directory.path().to_str().unwrap();
    let mut command = teamster(&script, &["-C", folder, "--cli-arg", "--strange", "--env", "EXTRA=an extra", "hi"]);
    command.env("ARGUMENTS", &arguments).env("BACKEND_MODEL", "a-model").env("BACKEND_MAX_TURNS", "7");
    command.env("ALLOWED_TOOLS", "Read,Bash(echo a,b)").env("AGENT_BACKEND", "");
    assert_eq!(ended(command).code, Some(0));
    let given = std::fs::read_to_string(&arguments).unwrap();
    let given: Vec<&str> = given.lines().collect();
    for expected in
        ["--model=a-model", "--max-turns=7", "--allowedTools=Bash(echo a,b)", "--strange", "an extra", folder]
    {
        assert!(given.contains(&expected), "{expected} is not in {given:?}");
    }
}
