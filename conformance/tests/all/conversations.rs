//! Conversations that go on from run to run.

use anyhow::{Context, Result};
use teamster::RunRequest;
use teamster::event::{ErrorCode, SessionId};
use teamster::request::Conversation;
use teamster_conformance::{AGENTS, Agent, BOUND, Recording, TestEnv};
use teamster_testkit::provider::{Message, ModelRequest, Reply, Scenario};

const PROMPTS: [&str; 7] = ["First.", "Second.", "Third.", "Aside.", "Old.", "Newest.", "More."];

/// What the conversation's user has said so far: agents put words of their own beside it.
fn prompts(request: &ModelRequest) -> Vec<&str> {
    let prompts = request.messages.iter().filter(|message| message.is_prompt());
    prompts.flat_map(Message::texts).filter(|text| PROMPTS.contains(text)).collect()
}

/// A model that says how often it has been asked in this conversation.
fn counts(agent: &Agent) -> Scenario {
    let reply = agent.reply();
    Reply::from_fn(move |request: &ModelRequest| reply.clone().text(format!("Answer {}.", prompts(request).len())))
        .into()
}

fn request(agent: &Agent, lab: &TestEnv, prompt: &str, conversation: Conversation) -> RunRequest {
    let mut request = agent.request(lab, prompt);
    request.conversation = conversation;
    request
}

fn session(recording: &Recording) -> Result<SessionId> {
    recording.result.session_id.clone().context("no session id")
}

#[tokio::test]
async fn a_conversation_is_resumed_and_forked_with_its_history_on_every_agent() -> Result<()> {
    for agent in AGENTS {
        let lab = agent.lab(counts(agent)).await?;
        let id = session(&lab.run(request(agent, &lab, "First.", Conversation::New)).await?)?;
        let second = lab.run(request(agent, &lab, "Second.", Conversation::Resume(id.clone()))).await?;
        assert_eq!(session(&second)?, id, "{}", agent.name);
        assert_eq!(second.init()?.session_id, id, "{}", agent.name);
        assert_eq!(prompts(&second.requests[0]), ["First.", "Second."], "{}", agent.name);
        assert_eq!(second.result.text, "Answer 2.", "{}", agent.name);
        let usage = second.result.usage.as_ref().context("no usage")?;
        assert_eq!((usage.input_tokens, usage.output_tokens), (25, 40), "{}: of this run alone", agent.name);
        let forking = request(agent, &lab, "Aside.", Conversation::Fork(id.clone()));
        if agent.name == "gemini" {
            assert!(lab.start(forking).is_err(), "it cannot");
        } else {
            let fork = lab.run(forking).await?;
            assert_ne!(session(&fork)?, id, "{}", agent.name);
            assert_eq!(prompts(&fork.requests[0]), ["First.", "Second.", "Aside."], "{}", agent.name);
        }
        let third = lab.run(request(agent, &lab, "Third.", Conversation::Resume(id))).await?;
        assert_eq!(prompts(&third.requests[0]), ["First.", "Second.", "Third."], "{}", agent.name);
    }
    Ok(())
}

#[tokio::test]
async fn continue_resumes_the_newest_conversation_of_the_directory_or_starts_one() -> Result<()> {
    for agent in AGENTS {
        let lab = agent.lab(counts(agent)).await?;
        let first = lab.run(request(agent, &lab, "Old.", Conversation::Continue)).await?;
        assert!(!first.result.is_error, "{}: {:?}", agent.name, first.result);
        assert_eq!(prompts(&first.requests[0]), ["Old."], "{}", agent.name);
        let newest = session(&lab.run(request(agent, &lab, "Newest.", Conversation::New)).await?)?;
        let mut elsewhere = request(agent, &lab, "Aside.", Conversation::New);
        elsewhere.cwd = Some(lab.directory("elsewhere")?);
        lab.run(elsewhere).await?;
        let more = lab.run(request(agent, &lab, "More.", Conversation::Continue)).await?;
        assert_eq!(session(&more)?, newest, "{}", agent.name);
        assert_eq!(prompts(&more.requests[0]), ["Newest.", "More."], "{}", agent.name);
    }
    Ok(())
}

#[tokio::test]
async fn a_session_that_does_not_exist_is_session_not_found() -> Result<()> {
    for agent in AGENTS {
        let lab = agent.lab(counts(agent)).await?;
        // Where a name is taken too, there is none of that name either.
        let ids: &[&str] = match agent.name {
            "claude" => &["00000000-0000-4000-8000-000000000000", "no such title"],
            "opencode" => &["ses_dff6f0bfeffeb0oxj5zKAoqDNm", "no such thing"],
            _ => &["00000000-0000-4000-8000-000000000000"],
        };
        for &id in ids {
            let recording = lab.run(request(agent, &lab, "First.", Conversation::Resume(id.into()))).await?;
            assert_eq!(recording.result.error_code, Some(ErrorCode::SessionNotFound), "{}: {id}", agent.name);
            assert_eq!(recording.failure()?.retryable, Some(false), "{}: {id}", agent.name);
            assert!(recording.requests.is_empty(), "{}: the model was asked", agent.name);
            assert_eq!(recording.result.session_id, None, "{}: nobody can resume it", agent.name);
        }
    }
    Ok(())
}

#[tokio::test]
async fn two_runs_at_once_in_one_home_do_not_disturb_each_other_on_every_agent() -> Result<()> {
    for agent in AGENTS {
        let reply = agent.reply();
        let answer = move |request: &ModelRequest| match prompts(request).last() {
            Some(&"First.") => reply.clone().text("Ready."),
            last => reply.clone().text(format!("You said {last:?}.")).gate_before("both"),
        };
        let lab = agent.lab(Reply::from_fn(answer)).await?;
        // The first run ever in a home must not be one of several at once (docs/agents.md).
        lab.run(request(agent, &lab, "First.", Conversation::New)).await?;
        let one = lab.start(request(agent, &lab, "Second.", Conversation::New))?;
        let two = lab.start(request(agent, &lab, "Third.", Conversation::New))?;
        lab.provider().wait_until(BOUND, |requests| requests.len() == 3).await?;
        lab.provider().gate("both").open();
        let (one, two) = tokio::join!(one.finish(), two.finish());
        let (one, two) = (one?, two?);
        assert_eq!(one.result.text, "You said Some(\"Second.\").", "{}", agent.name);
        assert_eq!(two.result.text, "You said Some(\"Third.\").", "{}", agent.name);
        assert_ne!(session(&one)?, session(&two)?, "{}", agent.name);
    }
    Ok(())
}
