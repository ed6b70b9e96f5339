//! The interface that serves a request, and the calls for the request.

use proptest::prelude::*;
use serde_json::json;
use teamster_agents::agent::{Agent, codex::Codex};
use teamster_agents::launch::{Arg, Launch, Stdin};
use teamster_agents::protocol::Protocol;
use teamster_types::event::{ErrorCode, WarningCode};
use teamster_types::request::{
    AgentInterface, Attachment, Conversation, McpServer, OutputMode, PermissionMode, ProjectTrust, PromptMode,
    RunRequest,
};

use super::THREAD;
use super::session::{TestSession, mode, session_request};
use crate::any_request::{SECRET, any_request};

#[test]
fn a_permission_mode_becomes_a_sandbox_and_an_approval_policy() {
    let opened = |request: &RunRequest, session: bool| {
        let mut session = if session {
            TestSession::session(&{
                let mut options = request.clone();
                options.prompt.clear();
                options
            })
        } else {
            TestSession::run(request)
        };
        session.reply("initialize", &json!({}));
        let params = session.wrote("thread/start").unwrap()["params"].clone();
        let profile = &params["config"]["permissions"]["teamster"];
        let sandbox = params["sandbox"].as_str().or(profile["extends"].as_str()).unwrap().to_owned();
        // No action can leave the sandbox of a profile that denies reading some path.
        assert_eq!(params.get("permissions").is_some(), profile["filesystem"]["/nonexistent/teamster"] == "deny");
        assert_eq!(params["approvalsReviewer"], "user");
        (sandbox, params["approvalPolicy"].as_str().unwrap().to_owned())
    };
    let untrusted = |mut request: RunRequest| {
        request.project_trust = ProjectTrust::Untrusted;
        request.cwd = Some("/p".into());
        request
    };
    let table = [
        (mode(PermissionMode::ReadOnly), (":read-only", "never"), (":read-only", "never")),
        (mode(PermissionMode::Ask), (":read-only", "never"), ("read-only", "on-request")),
        (mode(PermissionMode::Edit), ("workspace-write", "never"), ("workspace-write", "on-request")),
        (untrusted(mode(PermissionMode::Edit)), (":workspace", "never"), ("workspace-write", "on-request")),
        (mode(PermissionMode::Full), ("danger-full-access", "never"), ("danger-full-access", "never")),
    ];
    for (request, run, session) in table {
        let pair = |(sandbox, policy): (&str, &str)| (sandbox.to_owned(), policy.to_owned());
        assert_eq!((opened(&request, false), opened(&request, true)), (pair(run), pair(session)), "{request:?}");
    }
}

#[test]
fn the_app_server_serves_all_requests_that_it_supports_and_exec_the_others() {
    let change = |change: fn(&mut RunRequest)| {
        let mut request = RunRequest::new("x");
        change(&mut request);
        request
    };
    let with_args = |args: &[&str]| {
        let mut request = RunRequest::new("x");
        request.cli_args = args.iter().map(|&arg| arg.to_owned()).collect();
        request
    };
    let table = [
        (RunRequest::new("x"), "app-server"),
        (change(|r| r.interface = AgentInterface::Spawn), "app-server"),
        (change(|r| r.interface = AgentInterface::Exec), "exec"),
        (change(|r| r.output = OutputMode::Messages), "app-server"),
        (change(|r| r.output = OutputMode::Batch), "exec"),
        (change(|r| r.conversation = Conversation::Continue), "exec"),
        (change(|r| (r.conversation, r.cwd) = (Conversation::Continue, Some("/p".into()))), "app-server"),
        (change(|r| r.add_dirs = vec!["lib".into()]), "exec"),
        (change(|r| (r.add_dirs, r.cwd) = (vec!["lib".into()], Some("/p".into()))), "app-server"),
        (with_args(&["--config=a=1", "-c", "b=2", "--enable", "x", "--disable=y", "--strict-config"]), "app-server"),
        (with_args(&["--oss"]), "exec"),
        (with_args(&["-c"]), "exec"),
        (with_args(&["-cx=1"]), "exec"),
    ];
    for (request, interface) in table {
        let launch = Codex.plan(&request).unwrap().launch;
        assert_eq!(launch.args.first(), Some(&Arg::Text(interface.to_owned())), "{request:?} {:?}", request.cli_args);
        let has_session = Codex.plan_session(&request).unwrap().is_some();
        assert_eq!(has_session, interface == "app-server");
    }
}

#[test]
fn images_and_texts_are_part_of_the_turns_input() {
    let mut request = RunRequest::new("Look.");
    let attach = |name: &str, data: &[u8]| Attachment::Data { name: name.to_owned(), data: data.to_vec() };
    request.attachments = vec![attach("a.txt", b"notes"), attach("b.png", b"\x89PNG\r\n\x1a\n")];
    let mut session = TestSession::run(&request);
    session.open(THREAD);
    let input = &session.wrote("turn/start").unwrap()["params"]["input"];
    assert_eq!(input[0], json!({"type": "image", "url": "data:image/png;base64,iVBORw0KGgo="}));
    assert_eq!(input[1]["text"], "Attached file a.txt:\nnotes\n\nLook.");
}

#[test]
fn a_literal_prompt_blocks_each_skill_that_it_mentions() {
    let mut request = session_request();
    request.prompt_mode = PromptMode::Literal;
    let mut session = TestSession::session(&request);
    session.open(THREAD);
    session.send("Use $greet: it costs $5.");
    let input = session.wrote("turn/start").unwrap()["params"]["input"].as_array().unwrap().clone();
    let blocked: Vec<_> =
        input.iter().filter(|part| part["type"] == "skill").map(|part| part["name"].clone()).collect();
    assert_eq!(blocked, ["5", "greet", "greet:"]);
    session.turn_starts("turn-1");
    session.turn_ends("turn-1", "completed");
    session.send("see [$x](plugin://x)");
    assert_eq!(session.result().error_code, Some(ErrorCode::InvalidRequest));
}

#[test]
fn the_configuration_of_a_server_contains_names_of_variables_instead_of_values() {
    let mut request = RunRequest::new("x");
    request.mcp_servers.insert("my.calc".to_owned(), McpServer::stdio("calc").env("TOKEN", "s3cret").required());
    request.mcp_servers.insert("web".to_owned(), McpServer::http("http://x").bearer_token("s3cret"));
    let plan = Codex.plan(&request).unwrap();
    assert_eq!(plan.launch.env.get("TOKEN"), Some(&Some(Arg::Text("s3cret".to_owned()))));
    let mut session = TestSession::start(plan.protocol, true);
    session.reply("initialize", &json!({}));
    let config = &session.wrote("thread/start").unwrap()["params"]["config"];
    let calc = &config["mcp_servers"]["my_calc"];
    assert_eq!((&calc["env_vars"], &calc["required"]), (&json!(["TOKEN"]), &json!(true)));
    assert!(!config.to_string().contains("s3cret"));
    // Commands of the model do not inherit the values.
    assert_eq!(config["shell_environment_policy.set"]["TOKEN"], "");
    // A failed server is reported with its error and its given name.
    session.refuse(
        "thread/start",
        "error creating thread: x: required MCP servers failed to initialize: my_calc: no; web: gone",
    );
    assert_eq!(session.warned(&WarningCode::McpServerFailed), 2);
    assert_eq!(session.result().error_code, Some(ErrorCode::Config));
}

/// Generates requests that Codex can serve.
fn servable_requests() -> impl Strategy<Value = RunRequest> {
    any_request().prop_map(|mut request| {
        request.permissions.allow.clear();
        request.output = OutputMode::Stream;
        request.cwd = Some("/made/up \"directory\"".into());
        request.conversation = match request.conversation {
            Conversation::Resume(_) => Conversation::Resume(THREAD.into()),
            Conversation::Fork(_) => Conversation::Fork(THREAD.into()),
            other => other,
        };
        request
    })
}

fn planned(request: &RunRequest) -> Option<(Launch, Box<dyn Protocol>)> {
    request.validate().ok()?;
    Codex.capabilities().unwrap().check("codex", request).ok()?;
    let plan = Codex.plan(request).ok()?;
    Some((plan.launch, plan.protocol))
}

proptest! {
    #[test]
    fn arguments_contain_only_known_flags_and_nothing_private(request in servable_requests()) {
        let mut request = request;
        request.prompt = format!("HIDDEN {}", request.prompt);
        request.append_system_prompt = Some("HIDDEN".to_owned());
        if let Some((launch, _)) = planned(&request) {
            prop_assert_eq!(&launch.stdin, &Stdin::Open);
            for arg in launch.args.iter().skip(1) {
                let Arg::Text(text) = arg else { panic!("{arg:?}") };
                let ours = [
                    "--config=features.unbounded_connection_retries=", "--config=projects=",
                    "--config=project_doc_max_bytes=", "--config=skills.include_instructions=",
                ];
                prop_assert!(ours.iter().any(|flag| text.starts_with(flag)), "{}", text);
                prop_assert!(!text.contains("HIDDEN") && !text.contains(SECRET) && !text.contains('\0'));
            }
        }
    }

    #[test]
    fn every_value_of_a_request_is_sent_unchanged_and_no_secret_is_sent(request in servable_requests()) {
        if let Some((_, protocol)) = planned(&request) {
            let mut session = TestSession::start(protocol, true);
            session.reply("initialize", &json!({}));
            if session.wrote("thread/list").is_some() {
                session.reply("thread/list", &json!({"data": []}));
            }
            if session.wrote("thread/read").is_some() {
                session.reply("thread/read", &json!({"thread": {"id": THREAD, "model": "m"}}));
            }
            let opened = session.written.last().unwrap().clone();
            let params = &opened["params"];
            if let Some(model) = &request.model {
                prop_assert_eq!(&params["model"], model);
            }
            if let (None, Some(more)) = (&request.system_prompt, &request.append_system_prompt) {
                prop_assert_eq!(&params["developerInstructions"], more);
            }
            if let Some(effort) = &request.effort {
                prop_assert_eq!(&params["config"]["model_reasoning_effort"], effort);
            }
            prop_assert!(!opened.to_string().contains(SECRET));
        }
    }
}

#[test]
fn rules_for_the_runs_servers_are_configured_and_other_rules_are_applied_to_requests() {
    let mut request = session_request();
    let mut calc = McpServer::stdio("calc");
    calc.disabled_tools = vec!["old".to_owned()];
    request.mcp_servers.insert("my.calc".to_owned(), calc);
    request.mcp_servers.insert("web".to_owned(), McpServer::http("http://x").required());
    request.permissions.allow = ["mcp__my.calc__add", "command_execution(git push:*)", "file_change", "mcp__users_own"]
        .map(str::to_owned)
        .to_vec();
    request.permissions.deny = vec!["mcp__my.calc__drop".to_owned(), "mcp__web".to_owned()];
    let mut session = TestSession::session(&request);
    session.reply("initialize", &json!({}));
    let servers = &session.wrote("thread/start").unwrap()["params"]["config"]["mcp_servers"];
    assert_eq!(servers["my_calc"]["disabled_tools"], json!(["drop", "old"]));
    assert_eq!(servers["my_calc"]["tools"], json!({"add": {"approval_mode": "approve"}}));
    assert_eq!(servers["my_calc"]["enabled"], true);
    assert_eq!((&servers["web"]["enabled"], &servers["web"]["required"]), (&json!(false), &json!(false)));
    // A run sends no permission request, and a session sends none for actions that the sandbox permits.
    request.prompt = "x".to_owned();
    assert!(Codex.plan(&request).unwrap_err().to_string().contains("command_execution(git push:*)"));
    for (allow, deny) in [(Some("Bash"), None), (None, Some("command_execution(rm:*)")), (None, Some("file_change"))] {
        let mut request = session_request();
        request.permissions.allow.extend(allow.map(str::to_owned));
        request.permissions.deny.extend(deny.map(str::to_owned));
        let error = Codex.plan_session(&request).unwrap_err().to_string();
        assert!(error.contains(allow.or(deny).unwrap()), "{error}");
    }
}
