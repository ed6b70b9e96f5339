//! What a request becomes: which form of the CLI, and what is written to it.

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
use super::talk::{Talk, frame, mode};
use crate::requests::{SECRET, any_request};

#[test]
fn a_mode_is_a_sandbox_and_who_is_asked() {
    let asked = |request: &RunRequest, session: bool| {
        let mut talk = if session {
            Talk::session(&{
                let mut frame = request.clone();
                frame.prompt.clear();
                frame
            })
        } else {
            Talk::run(request)
        };
        talk.reply("initialize", &json!({}));
        let params = talk.wrote("thread/start").unwrap()["params"].clone();
        let profile = &params["config"]["permissions"]["teamster"];
        let fence = params["sandbox"].as_str().or(profile["extends"].as_str()).unwrap().to_owned();
        // Nothing leaves a profile that denies the reading of something.
        assert_eq!(params.get("permissions").is_some(), profile["filesystem"]["/nonexistent/teamster"] == "deny");
        assert_eq!(params["approvalsReviewer"], "user");
        (fence, params["approvalPolicy"].as_str().unwrap().to_owned())
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
        let pair = |(fence, policy): (&str, &str)| (fence.to_owned(), policy.to_owned());
        assert_eq!((asked(&request, false), asked(&request, true)), (pair(run), pair(session)), "{request:?}");
    }
}

#[test]
fn the_app_server_takes_what_has_a_meaning_there_and_exec_the_rest() {
    let change = |change: fn(&mut RunRequest)| {
        let mut request = RunRequest::new("x");
        change(&mut request);
        request
    };
    let args = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let with_args = |words: &[&str]| {
        let mut request = RunRequest::new("x");
        request.cli_args = args(words);
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
    for (request, form) in table {
        let launch = Codex.plan(&request).unwrap().launch;
        assert_eq!(launch.args.first(), Some(&Arg::Text(form.to_owned())), "{request:?} {:?}", request.cli_args);
        let lives = Codex.plan_session(&request).unwrap().is_some();
        assert_eq!(lives, form == "app-server");
    }
}

#[test]
fn images_and_texts_go_with_the_prompt() {
    let mut request = RunRequest::new("Look.");
    let attach = |name: &str, data: &[u8]| Attachment::Data { name: name.to_owned(), data: data.to_vec() };
    request.attachments = vec![attach("a.txt", b"notes"), attach("b.png", b"\x89PNG\r\n\x1a\n")];
    let mut talk = Talk::run(&request);
    talk.open(THREAD);
    let input = &talk.wrote("turn/start").unwrap()["params"]["input"];
    assert_eq!(input[0], json!({"type": "image", "url": "data:image/png;base64,iVBORw0KGgo="}));
    assert_eq!(input[1]["text"], "Attached file a.txt:\nnotes\n\nLook.");
}

#[test]
fn a_literal_prompt_names_each_skill_that_it_must_not_bring_in() {
    let mut request = frame();
    request.prompt_mode = PromptMode::Literal;
    let mut talk = Talk::session(&request);
    talk.open(THREAD);
    talk.send("Use $greet: it costs $5.");
    let input = talk.wrote("turn/start").unwrap()["params"]["input"].as_array().unwrap().clone();
    let blocked: Vec<_> =
        input.iter().filter(|part| part["type"] == "skill").map(|part| part["name"].clone()).collect();
    assert_eq!(blocked, ["5", "greet", "greet:"]);
    talk.turn_starts("turn-1");
    talk.turn_ends("turn-1", "completed");
    talk.send("see [$x](plugin://x)");
    assert_eq!(talk.result().error_code, Some(ErrorCode::InvalidRequest));
}

#[test]
fn servers_of_a_thread_are_configured_by_names_of_variables() {
    let mut request = RunRequest::new("x");
    request.mcp_servers.insert("my.calc".to_owned(), McpServer::stdio("calc").env("TOKEN", "s3cret").required());
    request.mcp_servers.insert("web".to_owned(), McpServer::http("http://x").bearer_token("s3cret"));
    let plan = Codex.plan(&request).unwrap();
    assert_eq!(plan.launch.env.get("TOKEN"), Some(&Some(Arg::Text("s3cret".to_owned()))));
    let mut talk = Talk::start(plan.protocol, true);
    talk.reply("initialize", &json!({}));
    let config = &talk.wrote("thread/start").unwrap()["params"]["config"];
    let calc = &config["mcp_servers"]["my_calc"];
    assert_eq!((&calc["env_vars"], &calc["required"]), (&json!(["TOKEN"]), &json!(true)));
    assert!(!config.to_string().contains("s3cret"));
    // Commands of the model do not have them.
    assert_eq!(config["shell_environment_policy.set"]["TOKEN"], "");
    // Who did not start is told with its error, and by the name that its caller gave.
    talk.refuse(
        "thread/start",
        "error creating thread: x: required MCP servers failed to initialize: my_calc: no; web: gone",
    );
    assert_eq!(talk.warned(&WarningCode::McpServerFailed), 2);
    assert_eq!(talk.result().error_code, Some(ErrorCode::Config));
}

/// What Codex can do of any request.
fn askable() -> impl Strategy<Value = RunRequest> {
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
    fn nothing_of_a_request_but_our_own_flags_stands_in_an_argument(request in askable()) {
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
    fn every_value_of_a_request_arrives_as_it_is_and_no_secret_is_written(request in askable()) {
        if let Some((_, protocol)) = planned(&request) {
            let mut talk = Talk::start(protocol, true);
            talk.reply("initialize", &json!({}));
            if talk.wrote("thread/list").is_some() {
                talk.reply("thread/list", &json!({"data": []}));
            }
            if talk.wrote("thread/read").is_some() {
                talk.reply("thread/read", &json!({"thread": {"id": THREAD, "model": "m"}}));
            }
            let opened = talk.written.last().unwrap().clone();
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
fn rules_for_the_runs_own_servers_are_configured_and_others_are_held_against_what_is_asked() {
    let mut request = frame();
    let mut calc = McpServer::stdio("calc");
    calc.disabled_tools = vec!["old".to_owned()];
    request.mcp_servers.insert("my.calc".to_owned(), calc);
    request.mcp_servers.insert("web".to_owned(), McpServer::http("http://x").required());
    request.permissions.allow = ["mcp__my.calc__add", "command_execution(git push:*)", "file_change", "mcp__users_own"]
        .map(str::to_owned)
        .to_vec();
    request.permissions.deny = vec!["mcp__my.calc__drop".to_owned(), "mcp__web".to_owned()];
    let mut talk = Talk::session(&request);
    talk.reply("initialize", &json!({}));
    let servers = &talk.wrote("thread/start").unwrap()["params"]["config"]["mcp_servers"];
    assert_eq!(servers["my_calc"]["disabled_tools"], json!(["drop", "old"]));
    assert_eq!(servers["my_calc"]["tools"], json!({"add": {"approval_mode": "approve"}}));
    assert_eq!(servers["my_calc"]["enabled"], true);
    assert_eq!((&servers["web"]["enabled"], &servers["web"]["required"]), (&json!(false), &json!(false)));
    // A run asks for nothing, and neither does what the sandbox lets through.
    request.prompt = "x".to_owned();
    assert!(Codex.plan(&request).unwrap_err().to_string().contains("command_execution(git push:*)"));
    for (allow, deny) in [(Some("Bash"), None), (None, Some("command_execution(rm:*)")), (None, Some("file_change"))] {
        let mut request = frame();
        request.permissions.allow.extend(allow.map(str::to_owned));
        request.permissions.deny.extend(deny.map(str::to_owned));
        let error = Codex.plan_session(&request).unwrap_err().to_string();
        assert!(error.contains(allow.or(deny).unwrap()), "{error}");
    }
}
