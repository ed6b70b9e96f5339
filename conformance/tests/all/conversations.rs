//! Conversations of several runs.

use anyhow::{Context, Result};
use teamster::RunRequest;
use teamster::event::{ErrorCode, SessionId};
use teamster::request::Conversation;
use teamster_conformance::{Agent, Recording, TIMEOUT, TestEnv, agent_tests};
use teamster_testkit::provider::{Message, ModelRequest, Reply, Scenario};

const PROMPTS: [&str; 7] = ["First.", "Second.", "Third.", "Aside.", "Old.", "Newest.", "More."];

agent_tests! {
    a_conversation_is_resumed_and_forked_with_its_history_on_every_agent: all,
    continue_resumes_the_newest_conversation_of_the_directory_or_starts_one: all,
    fork_newest_copies_the_newest_conversation_of_the_directory_or_starts_one: all,
    a_session_that_does_not_exist_is_session_not_found: all,
    two_runs_at_once_in_one_home_do_not_disturb_each_other_on_every_agent: all,
}

/// Returns the caller's prompts of the conversation. Agents add texts of their own.
fn prompts(request: &ModelRequest) -> Vec<&str> {
    let prompts = request.messages.iter().filter(|message| message.is_prompt());
    prompts.flat_map(Message::texts).filter(|text| PROMPTS.contains(text)).collect()
}

/// A model that answers with the number of prompts in the conversation.
fn counts(agent: &Agent) -> Scenario {
    let reply = agent.reply();
    Reply::from_fn(move |request: &ModelRequest| reply.clone().text(format!("Answer {}.", prompts(request).len())))
        .into()
}

fn request(agent: &Agent, env: &TestEnv, prompt: &str, conversation: Conversation) -> RunRequest {
    let mut request = agent.request(env, prompt);
    request.conversation = conversation;
    request
}

fn session_id(recording: &Recording) -> Result<SessionId> {
    recording.result.session_id.clone().context("no session id")
}

async fn a_conversation_is_resumed_and_forked_with_its_history_on_every_agent(agent: &Agent) -> Result<()> {
    let env = agent.test_env(counts(agent)).await?;
    let id = session_id(&env.run(request(agent, &env, "First.", Conversation::New)).await?)?;
    let second = env.run(request(agent, &env, "Second.", Conversation::Resume(id.clone()))).await?;
    assert_eq!(session_id(&second)?, id);
    assert_eq!(second.init()?.session_id, id);
    assert_eq!(prompts(&second.requests[0]), ["First.", "Second."]);
    assert_eq!(second.result.text, "Answer 2.");
    let usage = second.result.usage.as_ref().context("no usage")?;
    assert_eq!((usage.input_tokens, usage.output_tokens), (25, 40), "of this run alone");
    let forking = request(agent, &env, "Aside.", Conversation::Fork(id.clone()));
    if agent.name == "gemini" {
        assert!(env.start(forking).is_err(), "Gemini CLI cannot fork");
    } else {
        let fork = env.run(forking).await?;
        assert_ne!(session_id(&fork)?, id);
        assert_eq!(prompts(&fork.requests[0]), ["First.", "Second.", "Aside."]);
    }
    let third = env.run(request(agent, &env, "Third.", Conversation::Resume(id))).await?;
    assert_eq!(prompts(&third.requests[0]), ["First.", "Second.", "Third."]);
    Ok(())
}

async fn continue_resumes_the_newest_conversation_of_the_directory_or_starts_one(agent: &Agent) -> Result<()> {
    let env = agent.test_env(counts(agent)).await?;
    let first = env.run(request(agent, &env, "Old.", Conversation::Continue)).await?;
    assert!(!first.result.is_error, "{:?}", first.result);
    assert_eq!(prompts(&first.requests[0]), ["Old."]);
    let newest = session_id(&env.run(request(agent, &env, "Newest.", Conversation::New)).await?)?;
    let mut elsewhere = request(agent, &env, "Aside.", Conversation::New);
    elsewhere.cwd = Some(env.create_directory("elsewhere")?);
    env.run(elsewhere).await?;
    let more = env.run(request(agent, &env, "More.", Conversation::Continue)).await?;
    assert_eq!(session_id(&more)?, newest);
    assert_eq!(prompts(&more.requests[0]), ["Newest.", "More."]);
    Ok(())
}

async fn fork_newest_copies_the_newest_conversation_of_the_directory_or_starts_one(agent: &Agent) -> Result<()> {
    let env = agent.test_env(counts(agent)).await?;
    let fork = |env: &TestEnv, prompt: &str| request(agent, env, prompt, Conversation::ForkNewest);
    if agent.name == "gemini" {
        assert!(env.start(fork(&env, "Aside.")).is_err(), "Gemini CLI cannot fork");
        return Ok(());
    }
    let first = env.run(fork(&env, "Old.")).await?;
    assert_eq!(prompts(&first.requests[0]), ["Old."]);
    let newest = session_id(&env.run(request(agent, &env, "Newest.", Conversation::New)).await?)?;
    let aside = env.run(fork(&env, "Aside.")).await?;
    assert_ne!(session_id(&aside)?, newest);
    assert_eq!(prompts(&aside.requests[0]), ["Newest.", "Aside."]);
    let more = env.run(request(agent, &env, "More.", Conversation::Resume(newest))).await?;
    assert_eq!(prompts(&more.requests[0]), ["Newest.", "More."], "the origin is unchanged");
    Ok(())
}

async fn a_session_that_does_not_exist_is_session_not_found(agent: &Agent) -> Result<()> {
    let env = agent.test_env(counts(agent)).await?;
    // Some agents also resume by name. There is no session with this name either.
    let ids: &[&str] = match agent.name {
        "claude" => &["00000000-0000-4000-8000-000000000000", "no such title"],
        "opencode" => &["ses_dff6f0bfeffeb0oxj5zKAoqDNm", "no such thing"],
        _ => &["00000000-0000-4000-8000-000000000000"],
    };
    for &id in ids {
        let recording = env.run(request(agent, &env, "First.", Conversation::Resume(id.into()))).await?;
        assert_eq!(recording.result.error_code, Some(ErrorCode::SessionNotFound), "{id}");
        assert_eq!(recording.failure()?.retryable, Some(false), "{id}");
        assert!(recording.requests.is_empty(), "a request reached the model");
        assert_eq!(recording.result.session_id, None, "there is nothing to resume");
    }
    Ok(())
}

async fn two_runs_at_once_in_one_home_do_not_disturb_each_other_on_every_agent(agent: &Agent) -> Result<()> {
    let reply = agent.reply();
    let answer = move |request: &ModelRequest| match prompts(request).last() {
        Some(&"First.") => reply.clone().text("Ready."),
        last => reply.clone().text(format!("It was {last:?}.")).gate_before("both"),
    };
    let env = agent.test_env(Reply::from_fn(answer)).await?;
    // The first run in a home must not be one of several at once (docs/agents.md).
    env.run(request(agent, &env, "First.", Conversation::New)).await?;
    let one = env.start(request(agent, &env, "Second.", Conversation::New))?;
    let two = env.start(request(agent, &env, "Third.", Conversation::New))?;
    env.provider().wait_until(TIMEOUT, |requests| requests.len() == 3).await?;
    env.provider().gate("both").open();
    let (one, two) = tokio::join!(one.finish(), two.finish());
    let (one, two) = (one?, two?);
    assert_eq!(one.result.text, "It was Some(\"Second.\").");
    assert_eq!(two.result.text, "It was Some(\"Third.\").");
    assert_ne!(session_id(&one)?, session_id(&two)?);
    Ok(())
}
