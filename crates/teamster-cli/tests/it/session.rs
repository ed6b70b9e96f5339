//! `teamster session`: commands in, events out.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::command::{Ended, Running, capture, command, ended, lives, until, wait};

/// Takes the opening of a session.
const OPENING: &str = "read -r opening; ";
/// Takes a prompt and says what the recorded run said.
const TURN: &str = "read -r prompt; cat \"$CAPTURE\"; ";
/// Streams an answer, and stops when it is asked to.
const INTERRUPTED: &str = "read -r prompt; sed '$d' \"$STREAM\"; \
    while read -r line; do case $line in *interrupt*) tail -n 1 \"$STREAM\"; break;; esac; done; ";
/// Asks for leave in the middle of a turn, and writes down the answer.
const ASKING: &str = "read -r prompt; head -n 4 \"$CAPTURE\"; echo \"$REQUEST\"; read -r answer; echo \"$answer\" >> \"$HEARD\"; \
    sed 1,4d \"$CAPTURE\"; ";
const REST: &str = "cat >/dev/null";

/// `teamster session` with this script as the agent's CLI.
fn session(script: &str, args: &[&str]) -> Command {
    let mut command = command("session", &format!("{OPENING}{script}{REST}"), args);
    command.env("STREAM", capture("sig_int_stream")).stdin(Stdio::piped());
    command
}

/// The same, where the agent asks for leave to call a tool, or its user to choose.
fn asking(script: &str, heard: &Path, tool: &str, input: &Value) -> Command {
    let request = json!({
        "type": "control_request", "request_id": "r1",
        "request": {"subtype": "can_use_tool", "tool_name": tool, "input": input, "tool_use_id": "t1"},
    });
    let mut command = session(script, &["--answer-timeout", "10m"]);
    command.env("REQUEST", request.to_string()).env("HEARD", heard);
    command
}

/// What came of a session that was told all of this at once.
fn told(mut command: Command, lines: &str) -> Ended {
    let mut running = Running::start(&mut command);
    running.type_in(lines.as_bytes());
    running.end()
}

fn events(end: &Ended) -> Vec<Value> {
    end.out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// The events of the turn with this id.
fn turn<'a>(events: &'a [Value], id: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["turnId"] == id).collect()
}

fn is_done(event: &Value) -> bool {
    event["type"] == "done"
}

/// What was said of commands that were not followed.
fn refusals(events: &[Value]) -> Vec<(u64, String, Option<&str>)> {
    let errors = events.iter().filter(|event| event.get("line").is_some());
    errors
        .map(|error| {
            assert_eq!((&error["type"], &error["code"]), (&json!("error"), &json!("INVALID_REQUEST")), "{error}");
            let message = error["message"].as_str().unwrap().to_owned();
            (error["line"].as_u64().unwrap(), message, error["commandId"].as_str())
        })
        .collect()
}

#[test]
fn every_event_of_a_turn_has_the_id_of_its_command_and_turns_do_not_mix() {
    let lines = r#"{"type":"send","text":"one","id":"a"}
        {"type":"send","text":"two","id":"b"}
        {"type":"send","text":"three"}
    "#;
    let end = told(session(&TURN.repeat(3), &[]), lines);
    assert_eq!(end.code, Some(0), "{}", end.err);
    let events = events(&end);
    let ids: Vec<_> = events.iter().map(|event| event["turnId"].as_str().unwrap_or("none")).collect();
    let mut order = ids.clone();
    order.dedup();
    assert_eq!(order, ["a", "b", "none"]);
    for id in ["a", "b", "none"] {
        let of_turn: Vec<_> = events.iter().zip(&ids).filter(|(_, of)| **of == id).map(|(event, _)| event).collect();
        assert_eq!(of_turn.iter().filter(|event| is_done(event)).count(), 1);
        assert!(is_done(of_turn.last().unwrap()));
        assert!(of_turn.iter().any(|event| event["type"] == "text"));
    }
}

/// Answers the question whether it has taken the prompt.
const CLAIMED: &str = "read -r claim; id=$(echo \"$claim\" | sed 's/.*\"request_id\":\"\\([^\"]*\\)\".*/\\1/'); \
    echo '{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"'\"$id\"'\",\"response\":{\"cancelled\":'$given'}}}'; ";

#[test]
fn turns_that_the_agent_begins_by_itself_have_names_of_their_own_and_do_not_mix_with_others() {
    let own = "head -n 1 \"$CAPTURE\"; ";
    let rest = "sed 1d \"$CAPTURE\"; ";
    // A turn of the agent's own begins when the second prompt comes, which it gives back.
    let script = format!(
        "read -r prompt; {own} given=false; {CLAIMED} {rest} read -r prompt; {own} given=true; {CLAIMED} {rest} \
         read -r prompt; {own} given=false; {CLAIMED} {rest}"
    );
    let lines = concat!(
        r#"{"type":"send","text":"zero","id":"own-7"}"#,
        "\n",
        r#"{"type":"send","text":"one","id":"a"}"#,
        "\n",
        r#"{"type":"send","text":"two","id":"b"}"#,
        "\n",
    );
    let end = told(session(&script, &["--background-tasks"]), lines);
    assert_eq!(end.code, Some(0), "{}", end.err);
    let events = events(&end);
    let refused = refusals(&events);
    assert_eq!((refused.len(), refused[0].0, refused[0].2), (1, 1, Some("own-7")));
    let mut order: Vec<_> = events.iter().filter_map(|event| event["turnId"].as_str()).collect();
    order.dedup();
    assert_eq!(order, ["a", "own-1", "b"]);
    for id in order {
        assert_eq!(turn(&events, id).into_iter().filter(|event| is_done(event)).count(), 1, "{id}");
    }
}

/// Asserts that every line carries the run id of the session and a time.
fn assert_stamped(events: &[Value]) {
    for event in events {
        assert!(event["runId"].is_string() && event["runId"] == events[0]["runId"], "{event}");
        assert!(event["time"].as_str().is_some_and(|time| time.ends_with('Z')), "{event}");
    }
}

#[test]
fn what_is_sent_now_is_heard_within_the_running_turn_or_is_the_next_one() {
    // It echoes what it is told in mid-turn, once.
    let heard = "read -r prompt; head -n 4 \"$CAPTURE\"; read -r words; \
        echo \"$words\" | sed 's/}$/,\"isReplay\":true}/'; sed 1,4d \"$CAPTURE\"; ";
    let lines = concat!(
        r#"{"type":"send","text":"one","id":"a"}"#,
        "\n",
        r#"{"type":"send","text":"two","id":"b","now":true}"#,
        "\n",
    );
    let mut running = Running::start(&mut session(&format!("{heard}{TURN}"), &[]));
    running.type_in(lines.as_bytes());
    let end = running.end();
    assert_eq!(end.code, Some(0), "{}", end.err);
    let events = events(&end);
    let joined: Vec<_> = events.iter().filter(|event| event["type"] == "joined").collect();
    assert_eq!(joined.len(), 1, "{events:?}");
    let fields = ["line", "commandId", "turnId"].map(|name| joined[0][name].clone());
    assert_eq!(fields, [json!(2), json!("b"), json!("a")]);
    assert_stamped(&events);
    assert_eq!(turn(&events, "b").len(), 0);

    let lines = concat!(
        r#"{"type":"send","text":"  ","id":"empty","now":true}"#,
        "\n",
        r#"{"type":"send","text":"one","id":"a","now":true}"#
    );
    let end = told(session(TURN, &[]), lines);
    let events = self::events(&end);
    assert_eq!(refusals(&events).len(), 1);
    assert!(is_done(turn(&events, "a").last().unwrap()), "while no turn runs it is one");
}

#[test]
fn a_bad_command_is_an_error_that_says_where_and_ends_nothing() {
    let mut lines = b"hello\n\n{\"type\":\"send\",\"text\":\"\xff\"}\n".to_vec();
    lines.extend_from_slice(
        br#"{"type":"send","id":"x"}
{"type":"send","text":"  ","id":"empty"}
{"type":"send","text":"a","id":"gone","attachments":[{"path":"/nowhere/at/all"}]}
{"type":"interrupt","id":"early"}
{"type":"answer","requestId":"r","decision":"deny","id":"unasked"}
{"type":"answer","requestId":"r","decision":"allow","message":"why","id":"odd"}
{"type":"answer","requestId":"r"}
{"type":"set_model","model":"-x","id":"flag"}
{"type":"send","text":"good","id":"good"}"#,
    );
    let mut running = Running::start(&mut session(TURN, &[]));
    running.type_in(&lines);
    let end = running.end();
    assert_eq!(end.code, Some(0), "{}", end.err);
    let events = events(&end);
    assert_stamped(&events);
    let told: Vec<_> =
        refusals(&events).into_iter().map(|(line, message, id)| format!("{line} {id:?} {message}")).collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    1 None line 1: invalid JSON: expected value at byte 1
    3 None line 3: invalid UTF-8 at byte 24
    4 Some("x") line 4: send: missing field `text`
    5 Some("empty") line 5: the prompt is empty: describe what the agent should do
    6 Some("gone") line 6: cannot attach /nowhere/at/all: No such file or directory (os error 2)
    7 Some("early") line 7: no turn is running
    8 Some("unasked") line 8: the request r does not wait for an answer: it is unknown, was answered before, or its turn has ended
    9 Some("odd") line 9: a message is valid only with the decision deny
    10 None line 10: an answer needs a decision (allow, allow_always or deny), an optionId, or choices for a question
    11 Some("flag") line 11: model must not start with '-': "-x"
    "#);
    assert!(is_done(turn(&events, "good").last().unwrap()));
    assert_eq!(events.iter().filter(|event| is_done(event)).count(), 1);
}

#[test]
fn an_interrupt_ends_the_turn_and_not_the_session() {
    let mut command = session(&format!("{INTERRUPTED}{TURN}"), &["--grace", "60s"]);
    let mut running = Running::start(&mut command);
    running.say(r#"{"type":"send","text":"one","id":"a"}"#);
    running.wait_for_out("\"type\":\"text\"");
    running.say(r#"{"type":"interrupt"}"#);
    running.wait_for_out("\"type\":\"done\"");
    running.type_in(br#"{"type":"send","text":"two","id":"b"}"#);
    let end = running.end();
    assert_eq!(end.code, Some(0), "{}", end.err);
    let events = events(&end);
    assert_eq!(turn(&events, "a").last().unwrap()["result"]["aborted"], true);
    assert_eq!(turn(&events, "b").last().unwrap()["result"]["isError"], false);
    assert!(!end.out.contains("SESSION_REOPENED"));
}

#[test]
fn a_permission_request_is_answered_once_and_the_agent_hears_it() {
    for (answer, heard_of) in [
        (r#""decision":"allow","input":{"command":"ls"}"#, r#"{"behavior":"allow","updatedInput":{"command":"ls"}}"#),
        (r#""decision":"allow_always""#, r#""behavior":"allow""#),
        (r#""decision":"deny","message":"Not today.""#, r#"{"behavior":"deny","message":"Not today."}"#),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let heard = directory.path().join("heard");
        let mut running = Running::start(&mut asking(ASKING, &heard, "Bash", &json!({"command": "touch x"})));
        running.say(r#"{"type":"send","text":"one","id":"a"}"#);
        running.wait_for_out(r#""type":"permission_request""#);
        running.say(&format!(r#"{{"type":"answer","requestId":"r1",{answer}}}"#));
        running.say(r#"{"type":"answer","requestId":"r1","decision":"deny","id":"late"}"#);
        running.wait_for_out("\"commandId\":\"late\"");
        running.type_in(b"");
        let end = running.end();
        assert_eq!(end.code, Some(0), "{}", end.err);
        let heard = std::fs::read_to_string(&heard).unwrap();
        assert!(heard.contains(heard_of) && heard.lines().count() == 1, "{answer}: {heard}");
    }
}

#[test]
fn a_question_is_answered_by_choices() {
    let directory = tempfile::tempdir().unwrap();
    let heard = directory.path().join("heard");
    let question = json!({"questions": [
        {"question": "Which?", "options": [{"label": "A"}, {"label": "B"}], "multiSelect": false}
    ]});
    let mut running = Running::start(&mut asking(ASKING, &heard, "AskUserQuestion", &question));
    running.say(r#"{"type":"send","text":"one"}"#);
    running.wait_for_out(r#""type":"question""#);
    running.say(r#"{"type":"answer","requestId":"r1","choices":{"Which?":["B"]}}"#);
    running.wait_for_out("\"type\":\"done\"");
    running.type_in(b"");
    assert_eq!(running.end().code, Some(0));
    let heard = std::fs::read_to_string(&heard).unwrap();
    assert!(heard.contains(r#""answers":{"Which?":"B"}"#), "{heard}");
}

#[test]
fn what_is_asked_when_the_input_has_ended_is_denied_at_once() {
    for asked_before in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let heard = directory.path().join("heard");
        let mut running = Running::start(&mut asking(ASKING, &heard, "Bash", &json!({"command": "touch x"})));
        running.say(r#"{"type":"send","text":"one","id":"a"}"#);
        if asked_before {
            running.wait_for_out(r#""type":"permission_request""#);
        }
        running.type_in(b"");
        let end = running.end();
        assert_eq!(end.code, Some(0), "{}", end.err);
        let heard = std::fs::read_to_string(&heard).unwrap();
        assert!(heard.contains(r#""behavior":"deny""#), "{heard}");
    }
}

#[test]
fn after_close_turns_that_were_sent_are_taken_and_others_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let heard = directory.path().join("heard");
    let mut running =
        Running::start(&mut asking(&format!("{ASKING}{TURN}"), &heard, "Bash", &json!({"command": "touch x"})));
    for line in [
        r#"{"type":"send","text":"one","id":"a"}"#,
        r#"{"type":"send","text":"two","id":"b"}"#,
        r#"{"type":"close"}"#,
        r#"{"type":"send","text":"three","id":"c"}"#,
    ] {
        running.say(line);
    }
    running.wait_for_out(r#""type":"permission_request""#);
    running.say(r#"{"type":"answer","requestId":"r1","decision":"allow"}"#);
    // Though its input is still open.
    running.wait_for_exit();
    let end = running.end();
    assert_eq!(end.code, Some(0), "{}", end.err);
    let events = events(&end);
    let done: Vec<_> = events.iter().filter(|event| is_done(event)).map(|event| event["turnId"].clone()).collect();
    assert_eq!(done, ["a", "b"]);
    assert_eq!(refusals(&events).iter().map(|(_, _, id)| *id).collect::<Vec<_>>(), [Some("c")]);
    assert!(std::fs::read_to_string(&heard).unwrap().contains(r#""behavior":"allow""#));
}

#[test]
fn another_model_and_another_mode_hold_for_what_comes() {
    let directory = tempfile::tempdir().unwrap();
    let (heard, starts) = (directory.path().join("heard"), directory.path().join("starts"));
    let script = format!(
        "echo \"$@\" >> \"$STARTS\"; {TURN} while read -r line; do echo \"$line\" >> \"$HEARD\"; \
         case $line in *'\"user\"'*) cat \"$CAPTURE\";; esac; done; "
    );
    let mut command = session(&script, &[]);
    let mut running = Running::start(command.env("HEARD", &heard).env("STARTS", &starts));
    running.say(r#"{"type":"send","text":"one","id":"a"}"#);
    running.wait_for_out("\"type\":\"done\"");
    running.say(r#"{"type":"set_model","model":"another-model"}"#);
    running.say(r#"{"type":"send","text":"two","id":"b"}"#);
    until("the second turn is heard", || std::fs::read_to_string(&heard).is_ok_and(|heard| heard.contains("two")));
    assert!(std::fs::read_to_string(&heard).unwrap().contains("another-model"), "by the same process");
    running.say(r#"{"type":"set_permission_mode","mode":"edit"}"#);
    running.type_in(br#"{"type":"send","text":"three","id":"c"}"#);
    let end = running.end();
    assert_eq!(end.code, Some(0), "{}", end.err);
    let events = events(&end);
    for id in ["b", "c"] {
        assert_eq!(turn(&events, id).last().unwrap()["result"]["isError"], false);
    }
    let starts = std::fs::read_to_string(&starts).unwrap();
    let second = starts.lines().nth(1).unwrap_or_else(|| panic!("another process is needed: {starts}"));
    assert!(second.contains("--permission-mode=default") && second.contains("another-model"), "{second}");
}

#[test]
fn attachments_come_by_path_and_by_content() {
    let directory = tempfile::tempdir().unwrap();
    let heard = directory.path().join("heard");
    std::fs::write(directory.path().join("note.txt"), "from a file").unwrap();
    let script = "read -r prompt; echo \"$prompt\" > \"$HEARD\"; cat \"$CAPTURE\"; ";
    let mut command = session(script, &["-C", directory.path().to_str().unwrap()]);
    command.env("HEARD", &heard);
    let end = told(
        command,
        r#"{"type":"send","text":"read","attachments":[{"path":"note.txt"},{"data":{"name":"b.txt","data":"aW5saW5l"}}]}"#,
    );
    assert_eq!(end.code, Some(0), "{}{}", end.out, end.err);
    let heard = std::fs::read_to_string(&heard).unwrap();
    assert!(heard.contains("from a file") && heard.contains("inline"), "{heard}");
}

#[test]
fn a_reader_that_leaves_ends_the_session_and_nothing_is_left() {
    let directory = tempfile::tempdir().unwrap();
    for between_turns in [true, false] {
        let pid = directory.path().join(format!("pid-{between_turns}"));
        let turn = if between_turns { TURN } else { "read -r prompt; sed '$d' \"$CAPTURE\"; " };
        let mut command = session(&format!("echo $$ > \"$PID_FILE\"; {turn}"), &["--grace", "200ms"]);
        let mut child = command.env("PID_FILE", &pid).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        // It stays open.
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"{\"type\":\"send\",\"text\":\"one\"}\n").unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let last = if between_turns { "\"type\":\"done\"" } else { "\"type\":\"text\"" };
        let mut line = String::new();
        while !line.contains(last) {
            line.clear();
            assert_ne!(out.read_line(&mut line).unwrap(), 0);
        }
        drop(out);
        assert_eq!(wait(&mut child), Some(141), "{between_turns}");
        assert!(!lives(&pid), "{between_turns}");
    }
}

#[test]
fn a_signal_ends_the_running_turn_and_the_session() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut running = Running::start(&mut session(INTERRUPTED, &["--grace", "60s"]));
        running.say(r#"{"type":"send","text":"one","id":"a"}"#);
        running.say(r#"{"type":"send","text":"two","id":"b"}"#);
        running.wait_for_out("\"type\":\"text\"");
        running.signal(signal);
        assert_eq!(running.wait_for_exit(), Some(130), "{signal:?}");
        let end = running.end();
        assert_eq!(end.err.contains("Ctrl-C again"), signal == Signal::INT, "{}", end.err);
        let events = events(&end);
        for id in ["a", "b"] {
            assert_eq!(turn(&events, id).last().unwrap()["result"]["aborted"], true, "{signal:?} {id}");
        }
    }
}

#[test]
fn a_signal_between_turns_ends_the_session() {
    let mut running = Running::start(&mut session(TURN, &[]));
    running.say(r#"{"type":"send","text":"one"}"#);
    running.wait_for_out("\"type\":\"done\"");
    running.signal(Signal::TERM);
    assert_eq!(running.wait_for_exit(), Some(130));
}

#[test]
fn a_second_ctrl_c_ends_an_agent_that_is_deaf_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let pid = directory.path().join("pid");
    let script = "echo $$ > \"$PID_FILE\"; read -r prompt; sed '$d' \"$CAPTURE\"; ";
    let mut command = session(script, &["--grace", "60s"]);
    let mut running = Running::start(command.env("PID_FILE", &pid));
    running.say(r#"{"type":"send","text":"one"}"#);
    running.wait_for_out("\"type\":\"text\"");
    running.signal(Signal::INT);
    running.wait_for_err("press Ctrl-C again to kill it");
    running.signal(Signal::INT);
    assert_eq!(running.wait_for_exit(), Some(130));
    assert!(!lives(&pid));
}

#[test]
fn the_last_turn_gives_the_exit_code() {
    let send = r#"{"type":"send","text":"one"}"#;
    let mut failed = session(TURN, &[]);
    failed.env("CAPTURE", capture("limit_max_turns_1"));
    assert_eq!(told(failed, send).code, Some(1));
    assert_eq!(told(session(TURN, &["--cli-path", "no-such-program-anywhere"]), send).code, Some(127));
    assert_eq!(told(session("", &[]), "").code, Some(0), "no turn, no error");
}

#[test]
fn what_cannot_be_a_session_starts_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    for args in [&["--cwd", "/nowhere/at/all"][..], &["--batch"], &["--model=-x"], &["a prompt"]] {
        let mut command = session(": > \"$TRACE\"; ", args);
        command.env("TRACE", &trace).stdin(Stdio::null());
        let end = ended(command);
        assert_eq!((end.code, end.out.as_str()), (Some(2), ""), "{args:?}: {}", end.err);
        assert!(!trace.exists(), "{args:?}");
    }
}

/// Runs an example with `teamster` where it looks for it; `None` where the language is not here.
fn run_example(interpreter: &str, file: &str, script: &str, answers: &str) -> Option<Ended> {
    let directory = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_teamster"), directory.path().join("teamster")).unwrap();
    let heard = directory.path().join("heard");
    let prepared = asking(script, &heard, "Bash", &json!({"command": "touch x"}));
    let path = format!("{}:{}", directory.path().to_str().unwrap(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(interpreter);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(file)).args(["one", "two"]);
    command.env_clear().envs(prepared.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("PATH", path);
    command.env("HOME", directory.path()).env("TEAMSTER_OPTIONS", "--answer-timeout 10m").stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Command::new(interpreter).arg("--version").stdout(Stdio::null()).status().ok()?;
    let mut running = Running::start(&mut command);
    running.type_in(answers.as_bytes());
    let mut end = running.end();
    end.err += &std::fs::read_to_string(&heard).unwrap_or_default();
    Some(end)
}

#[test]
fn the_examples_hold_a_conversation() {
    for (interpreter, file) in [("python3", "session.py"), ("node", "session.mjs")] {
        for (answer, behaviour) in [("y\n", r#""behavior":"allow""#), ("", r#""behavior":"deny""#)] {
            let Some(end) = run_example(interpreter, file, &format!("{ASKING}{TURN}"), answer) else { continue };
            assert_eq!(end.code, Some(0), "{file}: {}", end.err);
            assert_eq!(end.out.matches("Hello, wörld!").count(), 2, "{file}: {}", end.out);
            assert!(end.out.contains(r#"Bash {"command"#) && end.err.contains(behaviour), "{file}: {}", end.err);
        }
        let Some(end) = run_example(interpreter, file, "exit 3; ", "") else { continue };
        assert_eq!(end.code, Some(1), "{file}: {}", end.err);
        assert_eq!(end.err.matches("CLI_EXIT").count(), 2, "{file}: {}", end.err);
        let short = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(file);
        assert!(std::fs::read_to_string(short).unwrap().lines().count() <= 40, "{file}");
    }
}

#[test]
fn a_turn_that_waits_is_interrupted_by_its_name_and_ends_before_the_one_that_runs() {
    let script =
        "read -r prompt; sed '$d' \"$STREAM\"; while [ ! -e \"$GO\" ]; do sleep 0.05; done; tail -n 1 \"$STREAM\"; ";
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let mut command = session(&format!("{script}{TURN}"), &[]);
    command.env("GO", &go);
    let mut running = Running::start(&mut command);
    for (text, id) in [("one", "a"), ("two", "b"), ("three", "c")] {
        running.say(&json!({"type": "send", "text": text, "id": id}).to_string());
    }
    running.say(r#"{"type":"interrupt","turnId":"b"}"#);
    running.say(r#"{"type":"interrupt","turnId":"x","id":"i"}"#);
    running.say(r#"{"type":"close"}"#);
    // The first turn ends only when the end of the second one was written.
    running.wait_for_out(r#""turnId":"b""#);
    running.wait_for_out(r#""commandId":"i""#);
    std::fs::write(&go, "").unwrap();
    let end = running.end();
    assert_eq!(end.code, Some(0), "{}", end.err);
    let events = events(&end);
    let cancelled: Vec<_> = turn(&events, "b").iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(cancelled, ["error", "done"]);
    for id in ["a", "c"] {
        assert!(is_done(turn(&events, id).last().unwrap()));
    }
    assert_eq!(refusals(&events), [(5, "line 5: no turn \"x\" runs or waits".to_owned(), Some("i"))]);
}
