//! The flags of batch mode with full permissions, which chat gateways have always used: they stand in argv as they were.

use std::num::NonZeroU32;

use proptest::prelude::*;
use teamster_agents::agent::{Agent, claude::Claude, codex::Codex, gemini::Gemini, opencode::OpenCode};
use teamster_agents::launch::Arg;
use teamster_types::request::{AgentInterface, Conversation, OutputMode, PermissionMode, RunRequest};

/// A session's id as each agent makes them.
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

/// The arguments; a private file stands as what is before its path.
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

/// Whether a flag stands with this value, joined by `=` or as the next argument.
fn has(arguments: &[String], flag: &str, value: &str) -> bool {
    arguments.contains(&format!("{flag}={value}"))
        || arguments.windows(2).any(|pair| matches!(pair, [first, second] if first == flag && second == value))
}

fn is_resumable(arguments: &[String], flags: &[&str]) -> bool {
    let is_one =
        |argument: &String| flags.iter().any(|flag| argument == flag || argument.starts_with(&format!("{flag}=")));
    arguments.iter().any(is_one)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn claude_prints_one_document_and_asks_nobody((request, resumed) in asked()) {
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
        prop_assert_eq!(is_resumable(&arguments, &["--resume", "-r"]), resumed);
    }

    #[test]
    fn codex_prints_lines_and_asks_nobody((mut request, resumed) in asked()) {
        request.permissions.allow.clear();
        let Some(arguments) = arguments(&Codex, request, resumed) else { return Ok(()) };
        prop_assert_eq!(arguments.first().map(String::as_str), Some("exec"));
        prop_assert!(arguments.iter().any(|argument| argument == "--json"));
        prop_assert!(arguments.iter().any(|argument| argument == "--dangerously-bypass-approvals-and-sandbox"));
        prop_assert!(has(&arguments, "--cd", "/home/dev/project"));
        prop_assert_eq!(is_resumable(&arguments, &["resume"]), resumed);
    }

    #[test]
    fn gemini_prints_one_document_and_asks_nobody((mut request, resumed) in asked()) {
        request.permissions.allow.clear();
        let Some(arguments) = arguments(&Gemini, request, resumed) else { return Ok(()) };
        prop_assert!(has(&arguments, "--output-format", "json"), "{:?}", arguments);
        prop_assert!(has(&arguments, "--approval-mode", "yolo"), "{:?}", arguments);
        prop_assert_eq!(is_resumable(&arguments, &["--resume", "-r"]), resumed);
    }

    #[test]
    fn opencode_prints_lines((mut request, resumed) in asked()) {
        request.permissions.allow.clear();
        request.interface = AgentInterface::Exec;
        let Some(arguments) = arguments(&OpenCode, request, resumed) else { return Ok(()) };
        prop_assert_eq!(arguments.first().map(String::as_str), Some("run"));
        prop_assert!(has(&arguments, "--format", "json"));
        prop_assert_eq!(is_resumable(&arguments, &["--session", "-s", "--continue"]), resumed);
    }
}
