//! What the stream says of the answers to permission requests, on real CLIs.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use teamster::event::{AnsweredBy, Event, PermissionAnswered, PermissionDecision, PermissionRequest, ToolKind};
use teamster::json::RawJson;
use teamster::request::{Answer, PermissionMode};
use teamster_conformance::{AGENTS, Agent, Live, Recording};
use teamster_testkit::provider::Scenario;

/// How long a request waits: enough for one that is answered at once.
const LIMIT: Duration = Duration::from_secs(4);

async fn asked(live: &mut Live<'_>) -> Result<PermissionRequest> {
    let event = live.until("a permission request", |event| matches!(event, Event::PermissionRequest(_))).await?;
    let Event::PermissionRequest(request) = event else { unreachable!() };
    Ok(*request)
}

/// The only answer of a turn: after its request, before the result of the call.
fn answered(recording: &Recording) -> Result<&PermissionAnswered> {
    let place = |is: fn(&Event) -> bool| recording.events.iter().position(is);
    let asked = place(|event| matches!(event, Event::PermissionRequest(_))).context("no request")?;
    let answer = place(|event| matches!(event, Event::PermissionAnswered(_))).context("no answer")?;
    let result = place(|event| matches!(event, Event::ToolResult(_))).context("no result")?;
    assert!(asked < answer && answer < result, "{:?}", recording.events);
    let mut answers = recording.events.iter().filter_map(|event| match event {
        Event::PermissionAnswered(answered) => Some(&**answered),
        _ => None,
    });
    let first = answers.next().context("no answer")?;
    assert_eq!(answers.next(), None);
    Ok(first)
}

/// A model that makes a file in each of three turns.
fn makes_files(agent: &Agent) -> Scenario {
    let (shell, input) = agent.shell("touch made");
    (0..3).fold(Scenario::new(), |scenario, _| {
        scenario.reply(agent.reply().tool(shell, input.clone())).reply(agent.reply().text("Done."))
    })
}

#[tokio::test]
async fn each_permission_request_is_followed_by_its_answer_and_the_source() -> Result<()> {
    for agent in AGENTS.iter().filter(|agent| ["claude", "opencode"].contains(&agent.name)) {
        let lab = agent.lab(makes_files(agent)).await?;
        let mut frame = agent.request(&lab, "");
        frame.permissions.mode = PermissionMode::Ask;
        frame.limits.answer = LIMIT;
        let talk = lab.open(frame, |opening| opening)?;

        let mut live = talk.send("Prompt 1.")?;
        let request = asked(&mut live).await?;
        assert_eq!((&request.kind, &request.server), (&Some(ToolKind::Execute), &None), "{request:?}");
        assert!(request.deadline.is_some());
        talk.session().answer(request.request_id.clone(), Answer::Option { option_id: "deny".to_owned() }).await?;
        let recording = live.finish().await?;
        let answer = answered(&recording)?;
        assert_eq!((&answer.request_id, answer.option_id.as_deref()), (&request.request_id, Some("deny")));
        assert_eq!((&answer.decision, &answer.by), (&PermissionDecision::Deny, &AnsweredBy::Caller), "{}", agent.name);

        let recording = talk.say("Prompt 2.").await?;
        let answer = answered(&recording)?;
        assert_eq!((&answer.decision, &answer.by), (&PermissionDecision::Deny, &AnsweredBy::Timeout), "{}", agent.name);
        assert!(!lab.project().join("made").exists());

        let mut live = talk.send("Prompt 3.")?;
        let request = asked(&mut live).await?;
        // OpenCode takes no other arguments.
        let takes_input = agent.name == "claude";
        let input: Option<Value> =
            takes_input.then(|| json!({"command": "touch other", "description": "Another file"}));
        talk.session().answer(request.request_id, Answer::Allow { input: input.clone() }).await?;
        let recording = live.finish().await?;
        let answer = answered(&recording)?;
        assert_eq!((&answer.decision, &answer.by), (&PermissionDecision::Allow, &AnsweredBy::Caller), "{}", agent.name);
        assert_eq!(answer.input.as_ref().map(RawJson::to_value).transpose()?, input, "{}", agent.name);
        assert!(lab.project().join(if takes_input { "other" } else { "made" }).exists(), "{}", agent.name);
        talk.close().await?;
    }
    Ok(())
}
