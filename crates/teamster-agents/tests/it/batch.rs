//! The specification's properties 1 to 6 of the query interface: the flags of batch mode with full permissions, which chat
//! gateways use, and how its output is parsed. Properties 7 to 10 are in `crates/teamster`.

use std::num::NonZeroU32;

use proptest::prelude::*;
use serde_json::json;
use teamster_agents::agent::{Agent, claude::Claude, codex::Codex, gemini::Gemini, opencode::OpenCode};
use teamster_agents::launch::Arg;
use teamster_agents::protocol::{ExitReport, Input};
use teamster_agents::transcript::End;
use teamster_types::event::{Event, RunResult};
use teamster_types::request::{AgentInterface, Conversation, OutputMode, PermissionMode, RunRequest};

use crate::drive::{Driver, events};
use crate::subject::{CLAUDE, SUBJECTS, Subject};

/// A session id in the format of each agent: a UUID, or the id of OpenCode.
#[derive(Clone, Debug)]
struct Ids {
    uuid: String,
    opencode: String,
}

impl Ids {
    fn of(&self, agent: &str) -> &str {
        if agent == "opencode" { &self.opencode } else { &self.uuid }
    }
}

prop_compose! {
    fn ids()(
        uuid in "[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
        opencode in "ses_[0-9a-f]{12}[0-9A-Za-z]{14}",
    ) -> Ids {
        Ids { uuid, opencode }
    }
}

prop_compose! {
    fn asked()(
        prompt in "[^\0]{1,80}",
        instructions in proptest::option::of("[^\0]{1,40}"),
        turns in proptest::option::of(1_u32..100),
        tools in proptest::collection::vec("[A-Z][a-z]{2,8}", 0..3),
        model in proptest::option::of("[a-z][a-z0-9]{0,8}/[a-z][a-z0-9.:-]{0,20}"),
        resumed in proptest::option::of(ids()),
    ) -> (RunRequest, Option<Ids>) {
        let mut request = RunRequest::new(prompt);
        request.append_system_prompt = instructions;
        request.max_turns = turns.and_then(NonZeroU32::new);
        request.model = model;
        request.permissions.mode = PermissionMode::Full;
        request.permissions.allow = tools;
        request.output = OutputMode::Batch;
        request.cwd = Some("/home/dev/project".into());
        (request, resumed)
    }
}

prop_compose! {
    /// A request that every agent with these options accepts: it has a system prompt and a limit of turns.
    fn asked_in_full()(
        (mut request, resumed) in asked(),
        prompt in "[a-zA-Z][a-zA-Z0-9 .,?\n]{0,80}",
        instructions in "[a-zA-Z][^\0]{0,40}",
        turns in 1_u32..100,
    ) -> (RunRequest, Option<Ids>) {
        request.prompt = prompt;
        request.append_system_prompt = Some(instructions);
        request.max_turns = NonZeroU32::new(turns);
        (request, resumed)
    }
}

/// Returns the arguments. A private file's argument is the text before its path.
fn arguments(agent: &dyn Agent, mut request: RunRequest, resumed: Option<&Ids>) -> Option<Vec<String>> {
    if let Some(ids) = resumed {
        request.conversation = Conversation::Resume(ids.of(agent.name()).into());
    }
    request.validate().ok()?;
    agent.capabilities().unwrap().check(agent.name(), &request).ok()?;
    let launch = agent.plan(&request).ok()?.launch;
    let text = |arg: Arg| match arg {
        Arg::Text(text) => text,
        Arg::PathOf { before, .. } => before,
    };
    Some(launch.args.into_iter().map(text).collect())
}

/// Returns whether the arguments contain a flag with this value, joined by `=` or as the next argument.
fn has(arguments: &[String], flag: &str, value: &str) -> bool {
    arguments.contains(&format!("{flag}={value}"))
        || arguments.windows(2).any(|pair| matches!(pair, [first, second] if first == flag && second == value))
}

fn resumes(arguments: &[String], flags: &[&str]) -> bool {
    let is_one =
        |argument: &String| flags.iter().any(|flag| argument == flag || argument.starts_with(&format!("{flag}=")));
    arguments.iter().any(is_one)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn property_1_claude_prints_one_document_and_asks_for_no_permission((request, resumed) in asked_in_full()) {
        let arguments = arguments(&Claude, request.clone(), resumed.as_ref());
        let Some(arguments) = arguments else { return Err(TestCaseError::fail("the request is refused")) };
        prop_assert!(arguments.iter().any(|argument| argument == "-p"));
        prop_assert!(has(&arguments, "--output-format", "json"));
        prop_assert!(arguments.iter().any(|argument| argument == "--dangerously-skip-permissions"));
        prop_assert!(arguments.iter().any(|argument| argument == "--append-system-prompt-file="));
        prop_assert!(has(&arguments, "--max-turns", &request.max_turns.unwrap().to_string()));
        let allowed = arguments.iter().filter(|argument| argument.starts_with("--allowedTools=")).count();
        prop_assert_eq!(allowed, request.permissions.allow.len(), "one entry a tool");
    }

    #[test]
    fn property_2_codex_prints_lines_and_asks_for_no_permission((mut request, resumed) in asked()) {
        request.permissions.allow.clear();
        let Some(arguments) = arguments(&Codex, request, resumed.as_ref()) else { return Ok(()) };
        prop_assert_eq!(arguments.first().map(String::as_str), Some("exec"));
        prop_assert!(arguments.iter().any(|argument| argument == "--json"));
        prop_assert!(arguments.iter().any(|argument| argument == "--dangerously-bypass-approvals-and-sandbox"));
        prop_assert!(has(&arguments, "--cd", "/home/dev/project"));
    }

    #[test]
    fn property_3_gemini_prints_one_document_and_asks_for_no_permission((mut request, resumed) in asked()) {
        request.permissions.allow.clear();
        let Some(arguments) = arguments(&Gemini, request, resumed.as_ref()) else { return Ok(()) };
        prop_assert!(has(&arguments, "--output-format", "json"), "{:?}", arguments);
        prop_assert!(has(&arguments, "--approval-mode", "yolo"), "{:?}", arguments);
    }

    #[test]
    fn property_4_opencode_prints_lines_and_gets_the_model((mut request, resumed) in asked_in_full()) {
        request.permissions.allow.clear();
        // Only its server counts model calls.
        request.max_turns = None;
        request.interface = AgentInterface::Exec;
        let arguments = arguments(&OpenCode, request.clone(), resumed.as_ref());
        let Some(arguments) = arguments else { return Err(TestCaseError::fail("the request is refused")) };
        prop_assert_eq!(arguments.first().map(String::as_str), Some("run"));
        prop_assert!(has(&arguments, "--format", "json"));
        prop_assert_eq!(resumes(&arguments, &["--model", "-m"]), request.model.is_some());
        if let Some(model) = &request.model {
            prop_assert!(has(&arguments, "--model", model), "{:?}", arguments);
        }
    }

    #[test]
    fn property_5_the_flags_of_a_resume_are_there_only_with_a_session_id((mut request, resumed) in asked()) {
        request.permissions.allow.clear();
        request.interface = AgentInterface::Exec;
        let agents: [(&dyn Agent, &[&str]); 4] = [
            (&Claude, &["--resume", "-r"]),
            (&Codex, &["resume"]),
            (&Gemini, &["--resume", "-r"]),
            (&OpenCode, &["--session", "-s", "--continue"]),
        ];
        for (agent, flags) in agents {
            let Some(arguments) = arguments(agent, request.clone(), resumed.as_ref()) else { continue };
            prop_assert_eq!(resumes(&arguments, flags), resumed.is_some(), "{}: {:?}", agent.name(), arguments);
            let Some(ids) = &resumed else { continue };
            let id = ids.of(agent.name());
            let has_id = arguments.iter().any(|argument| argument == id || argument.ends_with(&format!("={id}")));
            prop_assert!(has_id, "{}: {:?}", agent.name(), arguments);
        }
    }

    #[test]
    fn property_5_an_id_that_could_be_a_flag_or_is_empty_is_refused(
        id in prop_oneof!["-[^\0]{0,20}", "[ \t]{0,4}", "[a-z]{0,4}\0[a-z]{0,4}"],
    ) {
        let mut request = RunRequest::new("x");
        request.conversation = Conversation::Resume(id.as_str().into());
        prop_assert!(request.validate().is_err(), "{:?}", id);
        request.conversation = Conversation::Fork(id.as_str().into());
        prop_assert!(request.validate().is_err(), "{:?}", id);
    }

    #[test]
    fn property_5_gemini_refuses_what_it_would_take_as_a_number_or_the_newest(id in prop_oneof!["[0-9]{1,6}", "latest"]) {
        let mut request = RunRequest::new("x");
        request.conversation = Conversation::Resume(id.as_str().into());
        prop_assert!(Gemini.plan(&request).is_err());
    }

    #[test]
    fn property_6_lines_of_codex_are_parsed_to_their_text_and_session(text in "(?s)[^\0]{1,80}", ids in ids()) {
        let lines = [
            json!({"type": "thread.started", "thread_id": ids.uuid}),
            json!({"type": "turn.started"}),
            json!({"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": text}}),
            json!({"type": "turn.completed", "usage": {"input_tokens": 9, "cached_input_tokens": 0, "output_tokens": 1}}),
        ];
        assert_parsed(&Codex, &lines, &text, &ids)?;
    }

    #[test]
    fn property_6_a_document_of_gemini_is_parsed_to_its_text_and_session(text in "(?s)[^\0]{1,80}", ids in ids()) {
        let document = json!({"session_id": ids.uuid, "response": text, "stats": {"models": {}}});
        assert_parsed(&Gemini, &[document], &text, &ids)?;
    }

    #[test]
    fn property_6_lines_of_opencode_are_parsed_to_their_text_and_session(text in "(?s)[^\0]{1,80}", ids in ids()) {
        let line = |kind: &str, part: serde_json::Value| {
            let mut part = part;
            (part["messageID"], part["sessionID"]) = ("msg_1".into(), ids.opencode.as_str().into());
            json!({"type": kind, "timestamp": 1_795_303_492_348_u64, "sessionID": ids.opencode, "part": part})
        };
        let lines = [
            line("step_start", json!({"id": "prt_1", "type": "step-start"})),
            line("text", json!({"id": "prt_2", "type": "text", "text": text, "time": {"start": 1, "end": 2}})),
            line("step_finish", json!({
                "id": "prt_3", "type": "step-finish", "reason": "stop", "cost": 0.001,
                "tokens": {"total": 3, "input": 2, "output": 1, "reasoning": 0, "cache": {"write": 0, "read": 0}},
            })),
        ];
        assert_parsed(&OpenCode, &lines, &text, &ids)?;
    }

    #[test]
    fn property_8_a_non_zero_exit_is_an_error_with_the_exit_code_and_stderr_on_every_agent(
        code in 1_i32..256,
        stderr in "(?s)[a-zA-Z0-9 \n]{1,900}",
    ) {
        for subject in SUBJECTS {
            let mut request = RunRequest::new("x");
            (request.cli_path, request.cwd) = (Some("agent".into()), Some("/home/dev/project".into()));
            let mut driver = Driver::start_of(subject, &request);
            for line in stderr.lines() {
                driver.handle(Input::Diagnostic(line.as_bytes()));
            }
            let exit = Some(ExitReport { code: Some(code), signal: None, stderr: &stderr });
            let result = result_of(driver, exit);
            prop_assert!(result.is_error, "{}", subject.agent.name());
            prop_assert_eq!(result.exit_code, Some(code), "{}", subject.agent.name());
            prop_assert_eq!(result.stderr.as_ref().map(teamster_types::text::UntrustedText::as_str), Some(stderr.as_str()));
            let failure = result.into_result().unwrap_err();
            prop_assert!(!failure.failure.message.is_empty(), "{}", subject.agent.name());
        }
    }

    #[test]
    fn property_6_a_document_is_parsed_to_its_text_and_session(text in "(?s)[^\0]{1,80}") {
        let id = "67c9c3e6-c7de-48a2-bc6b-8c0c662932f4";
        let document = json!({
            "type": "result", "subtype": "success", "is_error": false, "result": text, "session_id": id,
        });
        let result = parsed(CLAUDE, document.to_string().as_bytes());
        prop_assert!(!result.is_error, "{:?}", result.error);
        prop_assert_eq!(result.final_text.as_str(), text.as_str());
        prop_assert_eq!(result.session_id, Some(id.into()));
    }

    #[test]
    fn property_6_output_that_is_no_document_is_an_error(output in "[a-z ]{0,80}") {
        for subject in SUBJECTS.iter().filter(|subject| subject.agent.name() != "acp") {
            let result = parsed(subject, output.as_bytes());
            prop_assert!(result.is_error, "{}", subject.agent.name());
            prop_assert!(result.error_code.is_some(), "{}", subject.agent.name());
        }
    }
}

/// Returns the result of a batch run that prints this line and exits with code 0.
fn parsed(subject: &Subject, line: &[u8]) -> RunResult {
    let mut request = RunRequest::new("x");
    (request.output, request.interface) = (OutputMode::Batch, AgentInterface::Exec);
    let mut driver = Driver::start_of(subject, &request);
    driver.handle(Input::Line(line));
    result_of(driver, Some(ExitReport { code: Some(0), ..ExitReport::default() }))
}

/// Asserts that a batch run that prints these lines has this text and session.
fn assert_parsed(agent: &dyn Agent, lines: &[serde_json::Value], text: &str, ids: &Ids) -> Result<(), TestCaseError> {
    let subject = SUBJECTS.iter().find(|subject| subject.agent.name() == agent.name()).unwrap();
    let mut request = RunRequest::new("x");
    request.interface = AgentInterface::Exec;
    if agent.name() == "gemini" {
        request.output = OutputMode::Batch;
    }
    let mut driver = Driver::start_of(subject, &request);
    for line in lines {
        driver.handle(Input::Line(line.to_string().as_bytes()));
    }
    let result = result_of(driver, Some(ExitReport { code: Some(0), ..ExitReport::default() }));
    prop_assert!(!result.is_error, "{:?}", result.error);
    prop_assert_eq!(result.final_text.as_str(), text);
    prop_assert_eq!(
        result.session_id.as_ref().map(teamster_types::event::SessionId::as_str),
        Some(ids.of(agent.name()))
    );
    Ok(())
}

/// Returns the result of a run that ends with this exit.
fn result_of(driver: Driver, exit: Option<ExitReport<'_>>) -> RunResult {
    match events(&driver.end(&End { exit, ..End::default() })).last() {
        Some(Event::Done(done)) => done.result.clone(),
        other => panic!("{other:?}"),
    }
}
