//! Permission requests of a session: an answer allows what was requested, and no more.

use serde_json::{Value, json};
use teamster_agents::agent::{Agent as _, claude::Claude};
use teamster_agents::protocol::{Action, Input, ProcessAction};
use teamster_types::event::{AnsweredBy, Event, PermissionOptionKind, PermissionRequest, ToolKind};
use teamster_types::request::{Answer, McpServer, PermissionMode, RunRequest};

use super::TestSession;

fn permission_request(tool: &str, input: &Value, suggestions: &Value) -> Value {
    json!({"type": "control_request", "request_id": "r1", "request": {"subtype": "can_use_tool", "tool_name": tool,
           "input": input, "tool_use_id": "t1", "permission_suggestions": suggestions}})
}

fn requested(session: &TestSession) -> PermissionRequest {
    let Some(Event::PermissionRequest(request)) = session.turn.as_ref().unwrap().events.last() else {
        panic!("no permission request")
    };
    (**request).clone()
}

fn answered(session: &TestSession) -> &Value {
    &session.written.last().unwrap()["response"]["response"]
}

/// The suggestions of 2.1.197 for `touch` outside its directories.
fn suggestions() -> Value {
    json!([
        {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "touch /x"}], "behavior": "allow",
         "destination": "localSettings"},
        {"type": "addDirectories", "directories": ["/"], "destination": "session"},
        {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
    ])
}

#[test]
fn always_adds_the_narrow_rule_for_the_session_and_changes_nothing_else() {
    let mut session = TestSession::new(false);
    session.send();
    session.line(&permission_request("Bash", &json!({"command": "touch /x"}), &suggestions()));
    session.answer(&Answer::AllowAlways);
    let rules = json!([{"type": "addRules", "behavior": "allow", "destination": "session",
                        "rules": [{"toolName": "Bash", "ruleContent": "touch /x"}]}]);
    assert_eq!(answered(&session)["behavior"], "allow");
    assert_eq!(answered(&session)["updatedPermissions"], rules);
}

#[test]
fn a_suggestion_that_is_wider_than_the_request_is_not_offered_and_not_applied() {
    let rule = |tool: &str, content: &str, behavior: &str| {
        json!([{"type": "addRules", "rules": [{"toolName": tool, "ruleContent": content}], "behavior": behavior,
                "destination": "session"}])
    };
    for suggestions in [
        json!([{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]),
        json!([{"type": "setMode", "mode": "bypassPermissions"}]),
        json!([{"type": "addDirectories", "directories": ["/"]}]),
        json!([{"type": "replaceRules", "rules": [{"toolName": "Bash", "ruleContent": "ls"}], "behavior": "allow"}]),
        json!([{"type": "addRules", "rules": [{"toolName": "Bash"}], "behavior": "allow"}]),
        json!([{"type": "addRules", "rules": [], "behavior": "allow"}]),
        rule("Bash", "*", "allow"),
        rule("Bash", ":*", "allow"),
        rule("Write", "src/x", "allow"),
        rule("Bash", "ls", "deny"),
        json!(["x", null, 7]),
    ] {
        let mut session = TestSession::new(false);
        session.send();
        session.line(&permission_request("Bash", &json!({"command": "ls"}), &suggestions));
        let kinds: Vec<_> = requested(&session).options.into_iter().map(|option| option.kind).collect();
        assert!(!kinds.contains(&PermissionOptionKind::AllowAlways), "{suggestions}");
        session.answer(&Answer::AllowAlways);
        assert_eq!(answered(&session)["updatedPermissions"], json!([]), "{suggestions}");
    }
}

#[test]
fn a_request_names_the_server_the_kind_and_the_path() {
    let mut request = RunRequest::default();
    request.mcp_servers.insert("my.files".to_owned(), McpServer::stdio("x"));
    let mut session = TestSession::with(&request);
    session.send();
    let mut line = permission_request("mcp__my_files__Write", &json!({}), &json!([]));
    line["request"]["blocked_path"] = "/etc/passwd".into();
    session.line(&line);
    let request = requested(&session);
    assert_eq!(request.tool_name, "mcp__my.files__Write");
    assert_eq!(request.server.as_deref(), Some("my.files"));
    assert_eq!(request.kind, Some(ToolKind::Mcp));
    assert_eq!(
        request.targets.iter().map(teamster_types::text::UntrustedText::as_str).collect::<Vec<_>>(),
        ["/etc/passwd"]
    );
}

fn editing() -> RunRequest {
    let mut request = RunRequest::default();
    request.permissions.mode = PermissionMode::Edit;
    request.permissions.deny = vec!["Write(secret)".to_owned()];
    request.cwd = Some("/p".into());
    request
}

fn edit_suggestion() -> Value {
    json!([{"type": "setMode", "mode": "acceptEdits", "destination": "session"}])
}

#[test]
fn the_mode_edit_allows_an_edit_and_requests_permission_for_every_command() {
    let file = |path: &str| json!({"file_path": path, "content": "x"});
    for (tool, input, is_allowed) in [
        ("Write", file("/p/a"), true),
        ("Edit", file("/p/a"), true),
        ("Write", file("/p/secret"), false),
        ("Write", file("/etc/passwd"), false),
        ("Bash", json!({"command": "rm -f a"}), false),
        ("Bash", json!({"command": "touch a"}), false),
        ("Bash", json!({"command": "mkdir a"}), false),
        ("Read", json!({"file_path": "/etc/passwd"}), false),
    ] {
        let mut session = TestSession::with(&editing());
        session.send();
        session.line(&permission_request(tool, &input, &edit_suggestion()));
        let is_requested =
            session.turn.as_ref().unwrap().events.iter().any(|event| matches!(event, Event::PermissionRequest(_)));
        assert_eq!(is_requested, !is_allowed, "{tool} {input}");
        if is_allowed {
            assert_eq!(answered(&session), &json!({"behavior": "allow", "updatedInput": input}), "{tool}");
        }
    }
}

#[test]
fn a_run_in_the_mode_edit_allows_an_edit_and_denies_every_command() {
    for (tool, input, behavior, by) in [
        ("Write", json!({"file_path": "/p/a", "content": "x"}), "allow", AnsweredBy::Mode),
        ("Bash", json!({"command": "rm -f a"}), "deny", AnsweredBy::Unattended),
    ] {
        let mut request = editing();
        "Go.".clone_into(&mut request.prompt);
        let plan = Claude.plan(&request).unwrap();
        let arguments: Vec<_> = plan.launch.args.iter().map(|argument| format!("{argument:?}")).collect();
        assert!(!arguments.iter().any(|argument| argument.contains("acceptEdits")), "{arguments:?}");
        let mut protocol = plan.protocol;
        let mut actions = Vec::new();
        protocol.handle(
            Input::Line(permission_request(tool, &input, &edit_suggestion()).to_string().as_bytes()),
            &mut actions,
        );
        let [Action::Emit(Event::PermissionAnswered(answered)), Action::Process(ProcessAction::Write(bytes))] =
            &actions[..]
        else {
            panic!("{actions:?}")
        };
        assert_eq!((answered.decision.as_str(), &answered.by), (behavior, &by), "{tool}");
        assert_eq!(answered.request.as_ref().unwrap().input, input);
        let written: Value = serde_json::from_slice(bytes).unwrap();
        assert_eq!(written["response"]["response"]["behavior"], behavior, "{tool}");
    }
}
