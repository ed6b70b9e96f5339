//! Agents of the user's own, from the configuration file.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::command::{Running, command, ended};

/// Answers one prompt by ACP, with its first argument and a variable of the file.
const SPEAKS: &str = r#"
answer() { read -r line; echo "{\"jsonrpc\":\"2.0\",\"id\":$1,\"result\":$2}"; }
answer 1 '{"protocolVersion":1}'
answer 2 '{"sessionId":"s"}'
read -r prompt
content="{\"type\":\"text\",\"text\":\"$1 $GREETING\"}"
update="{\"sessionUpdate\":\"agent_message_chunk\",\"content\":$content}"
echo "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s\",\"update\":$update}}"
echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
cat >/dev/null
"#;

/// A file that names the agent `mine`.
fn config(folder: &Path) -> String {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fake-cli.sh");
    let text = format!(
        "[agents.mine]\nprotocol = \"acp\"\ncommand = \"{program}\"\nargs = [\"well,\"]\n\n[agents.mine.env]\n\
         GREETING = \"hello\"\nFAKE_CLI = '''{SPEAKS}'''\n"
    );
    std::fs::create_dir_all(folder).unwrap();
    let path = folder.join("config.toml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The command without a program that the environment names.
fn teamster(name: &str, args: &[&str]) -> Command {
    let mut command = command(name, "", args);
    command.env_remove("BACKEND_CLI_PATH");
    command
}

#[test]
fn an_agent_of_the_file_runs_by_its_name_wherever_the_file_is() {
    let home = tempfile::tempdir().unwrap();
    let named = config(&home.path().join("anywhere"));
    config(&home.path().join("xdg/teamster"));
    config(&home.path().join("home/.config/teamster"));
    let run = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = teamster("run", args);
        command.args(["--output", "text", "Hi"]).envs(variables.iter().copied());
        let ended = ended(command);
        assert_eq!((ended.code, ended.out.trim()), (Some(0), "well, hello"), "{args:?} {variables:?}: {}", ended.err);
    };
    let folder = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    run(&["--agent", "mine", "--config", &named], &[]);
    run(&["--agent", "MINE"], &[("XDG_CONFIG_HOME", &folder("xdg"))]);
    run(&[], &[("AGENT_BACKEND", "mine"), ("HOME", &folder("home")), ("XDG_CONFIG_HOME", "relative")]);
}

#[test]
fn an_agent_of_the_file_has_sessions_and_doctor_inspects_it() {
    let home = tempfile::tempdir().unwrap();
    let file = config(home.path());
    let mut session = teamster("session", &["--agent", "mine", "--config", &file]);
    let mut session = Running::start(session.stdin(Stdio::piped()));
    session.type_in(b"{\"type\":\"send\",\"text\":\"Hi\"}\n");
    let ended_session = session.end();
    assert_eq!(ended_session.code, Some(0), "{}", ended_session.err);
    assert!(ended_session.out.contains(r#""finalText":"well, hello""#), "{}", ended_session.out);

    let report = ended(teamster("doctor", &["--agent", "mine", "--config", &file, "--json"]));
    assert_eq!(report.code, Some(0), "{}", report.err);
    let document: Value = serde_json::from_str(&report.out).unwrap();
    let mine = document["agents"].as_array().unwrap().iter().find(|agent| agent["agent"] == "mine").unwrap();
    assert_eq!((&mine["canRun"], &mine["features"]["--fork"]["support"]), (&true.into(), &"yes".into()));
}

#[test]
fn an_error_in_the_file_is_reported_with_its_line_and_nothing_is_started() {
    let home = tempfile::tempdir().unwrap();
    let file = config(home.path());
    let refused = |names: &[&str], args: &[&str], expected: &str| {
        for name in names {
            let ended = ended(teamster(name, args));
            assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{name} {args:?}");
            assert!(ended.err.contains(expected), "{name} {args:?}: {}", ended.err);
        }
    };
    let known = r#"there is no agent "yours"; there are: acp, claude, codex, gemini, mine, opencode"#;
    let all = ["run", "session", "doctor"];
    refused(&all, &["--agent", "yours", "--config", &file], known);
    refused(&all, &["--config", "/nowhere/config.toml"], "cannot read /nowhere/config.toml: No such file");
    std::fs::write(&file, "[agents.mine]\nprotocol = \"acp\"\ncomand = \"x\"\n").unwrap();
    // Also where the agent is another one: nothing in the file is passed over.
    let expected = format!("{file}:3: unknown key \"comand\"; did you mean \"command\"?");
    refused(&all[..2], &["--agent", "claude", "--config", &file], &expected);
    let doctor = ended(teamster("doctor", &["--config", &file]));
    assert_eq!(doctor.code, Some(1), "{}", doctor.err);
    assert!(doctor.err.contains(&expected) && doctor.out.contains("codex "), "{} {}", doctor.err, doctor.out);
}
