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

/// A session id in the format of each agent.
const IDS: [(&str, &str); 4] = [
    ("claude", "67c9c3e6-c7de-48a2-bc6b-8c0c662932f4"),
    ("codex", "67c9c3e6-c7de-48a2-bc6b-8c0c662932f4"),
    ("gemini", "67c9c3e6-c7de-48a2-bc6b-8c0c662932f4"),
    ("opencode", "ses_dfeb4300fffesKHMMnxY4YJHtD"),
];

prop_compose! {
    fn asked()(
        prompt in "[^\0]{1,80}",
        instructions in proptest::option::of("[^\0]{1,40}"),
        turns in proptest::option::of(1_u32..100),
        tools in proptest::collection::vec("[A-Z][a-z]{2,8}", 0..3),
        resumed in any::<bool>(),
    ) -> (RunRequest, bool) {
        let mut request = RunRequest::new(prompt);
        request.append_system_prompt = instructions;
        request.max_turns = turns.and_then(NonZeroU32::new);
        request.permissions.mode = PermissionMode::Full;
        request.permissions.allow = tools;
        request.output = OutputMode::Batch;
        request.cwd = Some("/home/dev/project".into());
        (request, resumed)
    }
}

/// Returns the arguments. A private file's argument is the text before its path.
fn arguments(agent: &dyn Agent, mut request: RunRequest, resumed: bool) -> Option<Vec<String>> {
    if resumed {
        let (_, id) = IDS.iter().find(|(name, _)| *name == agent.name()).unwrap();
        request.conversation = Conversation::Resume((*id).into());
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
    fn property_1_claude_prints_one_document_and_asks_for_no_permission((request, resumed) in asked()) {
        let Some(arguments) = arguments(&Claude, request.clone(), resumed) else { return Ok(()) };
        prop_assert!(arguments.iter().any(|argument| argument == "-p"));
        prop_assert!(has(&arguments, "--output-format", "json"));
        prop_assert!(arguments.iter().any(|argument| argument == "--dangerously-skip-permissions"));
        let file = arguments.iter().any(|argument| argument == "--append-system-prompt-file=");
        prop_assert_eq!(file, request.append_system_prompt.is_some());
        if let Some(turns) = request.max_turns {
            prop_assert!(has(&arguments, "--max-turns", &turns.to_string()));
        }
        let allowed = arguments.iter().filter(|argument| argument.starts_with("--allowedTools=")).count();
        prop_assert_eq!(allowed, request.permissions.allow.len(), "one entry a tool");
    }

    #[test]
    fn property_2_codex_prints_lines_and_asks_for_no_permission((mut request, resumed) in asked()) {
        request.permissions.allow.clear();
        let Some(arguments) = arguments(&Codex, request, resumed) else { return Ok(()) };
        prop_assert_eq!(arguments.first().map(String::as_str), Some("exec"));
        prop_assert!(arguments.iter().any(|argument| argument == "--json"));
        prop_assert!(arguments.iter().any(|argument| argument == "--dangerously-bypass-approvals-and-sandbox"));
        prop_assert!(has(&arguments, "--cd", "/home/dev/project"));
    }

    #[test]
    fn property_3_gemini_prints_one_document_and_asks_for_no_permission((mut request, resumed) in asked()) {
        request.permissions.allow.clear();
        let Some(arguments) = arguments(&Gemini, request, resumed) else { return Ok(()) };
        prop_assert!(has(&arguments, "--output-format", "json"), "{:?}", arguments);
        prop_assert!(has(&arguments, "--approval-mode", "yolo"), "{:?}", arguments);
    }

    #[test]
    fn property_4_opencode_prints_lines((mut request, resumed) in asked()) {
        request.permissions.allow.clear();
        request.interface = AgentInterface::Exec;
        let Some(arguments) = arguments(&OpenCode, request, resumed) else { return Ok(()) };
        prop_assert_eq!(arguments.first().map(String::as_str), Some("run"));
        prop_assert!(has(&arguments, "--format", "json"));
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
            let Some(arguments) = arguments(agent, request.clone(), resumed) else { continue };
            let (_, id) = IDS.iter().find(|(name, _)| *name == agent.name()).unwrap();
            prop_assert_eq!(resumes(&arguments, flags), resumed, "{}: {:?}", agent.name(), arguments);
            let has_id = arguments.iter().any(|argument| argument == id || argument.ends_with(&format!("={id}")));
            prop_assert_eq!(has_id, resumed, "{}: {:?}", agent.name(), arguments);
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
    let exit = Some(ExitReport { code: Some(0), ..ExitReport::default() });
    match events(&driver.end(&End { exit, ..End::default() })).last() {
        Some(Event::Done(done)) => done.result.clone(),
        other => panic!("{other:?}"),
    }
}
