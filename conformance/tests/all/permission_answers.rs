//! The `permission_answered` events of a session: the decision, and whether the caller or the time limit made it.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use teamster::event::{AnsweredBy, Event, PermissionAnswered, PermissionDecision, PermissionRequest, ToolKind};
use teamster::json::RawJson;
use teamster::request::{Answer, PermissionMode};
use teamster_conformance::{Agent, Recording, TestRun, agent_tests};
use teamster_testkit::provider::Scenario;

/// The time limit of an answer: enough for one that is given at once.
const ANSWER_LIMIT: Duration = Duration::from_secs(4);

agent_tests! {
    each_permission_request_is_followed_by_its_answer_and_the_source: [claude, opencode],
}

async fn permission_request(run: &mut TestRun) -> Result<PermissionRequest> {
    let event = run.until("a permission request", |event| matches!(event, Event::PermissionRequest(_))).await?;
    let Event::PermissionRequest(request) = event else { unreachable!() };
    Ok(*request)
}

/// Returns the only answer of a turn. It is after its request, and before the result of the call.
fn only_answer(recording: &Recording) -> Result<&PermissionAnswered> {
    let index = |is: fn(&Event) -> bool| recording.events.iter().position(is);
    let request = index(|event| matches!(event, Event::PermissionRequest(_))).context("no request")?;
    let answer = index(|event| matches!(event, Event::PermissionAnswered(_))).context("no answer")?;
    let result = index(|event| matches!(event, Event::ToolResult(_))).context("no result")?;
    assert!(request < answer && answer < result, "{:?}", recording.events);
    let mut answers = recording.events.iter().filter_map(|event| match event {
        Event::PermissionAnswered(answered) => Some(&**answered),
        _ => None,
    });
    let first = answers.next().context("no answer")?;
    assert_eq!(answers.next(), None);
    Ok(first)
}

/// A model that creates a file in each of three turns.
fn creates_files(agent: &Agent) -> Scenario {
    let (shell, input) = agent.shell("touch made");
    (0..3).fold(Scenario::new(), |scenario, _| {
        scenario.reply(agent.reply().tool(shell, input.clone())).reply(agent.reply().text("Done."))
    })
}

async fn each_permission_request_is_followed_by_its_answer_and_the_source(agent: &Agent) -> Result<()> {
    let env = agent.test_env(creates_files(agent)).await?;
    let mut request = agent.request(&env, "");
    request.permissions.mode = PermissionMode::Ask;
    request.limits.answer = ANSWER_LIMIT;
    let session = env.open(request)?;

    let mut run = session.send("Prompt 1.")?;
    let request = permission_request(&mut run).await?;
    assert_eq!((&request.kind, &request.server), (&Some(ToolKind::Execute), &None), "{request:?}");
    assert!(request.deadline.is_some());
    session.handle().answer(request.request_id.clone(), Answer::Option { option_id: "deny".to_owned() }).await?;
    let recording = run.finish().await?;
    let answer = only_answer(&recording)?;
    assert_eq!((&answer.request_id, answer.option_id.as_deref()), (&request.request_id, Some("deny")));
    assert_eq!((&answer.decision, &answer.by), (&PermissionDecision::Deny, &AnsweredBy::Caller));

    let recording = session.run_turn("Prompt 2.").await?;
    let answer = only_answer(&recording)?;
    assert_eq!((&answer.decision, &answer.by), (&PermissionDecision::Deny, &AnsweredBy::Timeout));
    assert!(!env.project().join("made").exists());

    let mut run = session.send("Prompt 3.")?;
    let request = permission_request(&mut run).await?;
    // OpenCode does not accept changed arguments.
    let takes_input = agent.name == "claude";
    let input: Option<Value> = takes_input.then(|| json!({"command": "touch other", "description": "Another file"}));
    session.handle().answer(request.request_id, Answer::Allow { input: input.clone() }).await?;
    let recording = run.finish().await?;
    let answer = only_answer(&recording)?;
    assert_eq!((&answer.decision, &answer.by), (&PermissionDecision::Allow, &AnsweredBy::Caller));
    assert_eq!(answer.input.as_ref().map(RawJson::to_value).transpose()?, input);
    assert!(env.project().join(if takes_input { "other" } else { "made" }).exists());
    session.close().await
}
