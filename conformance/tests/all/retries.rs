//! Retries of a run by Teamster.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use teamster::RunRequest;
use teamster::event::{ErrorCode, Event, Warning, WarningCode};
use teamster::request::{Conversation, RetryPolicy};
use teamster_conformance::{Agent, Recording, TestEnv, agent_tests};
use teamster_testkit::provider::{HttpError, Reply, Turn};

/// OpenCode's time limit of an answer, in milliseconds.
const ANSWER_LIMIT_MS: u64 = 6000;

agent_tests! {
    a_run_that_fails_at_the_vendor_is_retried_unchanged: all,
    a_session_holds_the_prompt_of_a_turn_that_failed: all,
    a_session_that_may_hold_the_prompt_is_not_retried_by_default: all,
}

/// A vendor that can be switched off. The agent's configuration limits the CLI's own retries.
struct Vendor {
    down: Arc<AtomicBool>,
    env: TestEnv,
    /// The failure of a run while the vendor is down.
    failure: ErrorCode,
}

impl Vendor {
    async fn of(agent: &Agent) -> Result<Self> {
        let down = Arc::new(AtomicBool::new(false));
        let state = Arc::clone(&down);
        // OpenCode makes six attempts in more than a minute, with any settings, but none after its time limit of an answer.
        let stalls = agent.name == "opencode";
        let env = agent.test_env(Reply::from_fn(move |_| match (state.load(Ordering::Relaxed), stalls) {
            (false, _) => Turn::from(Reply::new().text("Now.")),
            (true, false) => Turn::from(HttpError::overloaded()),
            (true, true) => Turn::from(Reply::new().text("Never.").gate_before("never")),
        }));
        let env = env.await?;
        match agent.name {
            "gemini" => write_settings(&env, ".gemini/settings.json", &json!({"general": {"maxAttempts": 1}}))?,
            "opencode" => {
                let provider = json!({"provider": {"test": {"options": {"timeout": ANSWER_LIMIT_MS}}}});
                write_settings(&env, ".config/opencode/opencode.json", &provider)?;
            }
            // The test environment limits their attempts.
            _ => {}
        }
        let failure = if stalls { ErrorCode::Connection } else { ErrorCode::Overloaded };
        Ok(Self { down, env, failure })
    }

    fn request(&self, agent: &Agent, prompt: &str) -> RunRequest {
        let mut request = agent.request(&self.env, prompt);
        request.retries.max = 3;
        request.retries.base = Duration::from_millis(1);
        request
    }

    /// Runs with the vendor down until the first retry.
    async fn run(&self, request: RunRequest) -> Result<Recording> {
        self.down.store(true, Ordering::Relaxed);
        let mut run = self.env.start(request)?;
        let is_retry_or_end = |event: &Event| match event {
            Event::Warning(warning) => self.is_our_retry(warning),
            event => matches!(event, Event::Done(_)),
        };
        let event = run.until("the retry", is_retry_or_end).await?;
        self.down.store(false, Ordering::Relaxed);
        ensure!(matches!(event, Event::Warning(_)), "the run ended: {event:?}");
        run.finish().await
    }

    /// The CLI's own retries have no error code.
    fn is_our_retry(&self, warning: &Warning) -> bool {
        warning.code == WarningCode::Retrying && data(warning, "errorCode") == json!(self.failure.as_str())
    }
}

/// Writes a file of the user's settings.
fn write_settings(env: &TestEnv, name: &str, content: &Value) -> Result<()> {
    let path = env.home().join(name);
    fs::create_dir_all(path.parent().context("no directory")?)?;
    Ok(fs::write(path, content.to_string())?)
}

fn data(warning: &Warning, name: &str) -> Value {
    warning.data.as_ref().and_then(|data| data.get(name)).cloned().unwrap_or_default()
}

async fn a_run_that_fails_at_the_vendor_is_retried_unchanged(agent: &Agent) -> Result<()> {
    let vendor = Vendor::of(agent).await?;
    let recording = vendor.run(vendor.request(agent, "Hello?")).await?;
    assert!(!recording.result.is_error, "{:?}", recording.failure());
    assert_eq!(recording.result.text, "Now.");
    let last = recording.requests.last().context("no request")?;
    assert_eq!(last.body.to_string().matches("Hello?").count(), 1);
    let session = recording.result.session_id.as_ref().context("no session")?;
    let changed = recording.warnings(&WarningCode::SessionChanged);
    let reported = changed.last().map(|warning| data(warning, "sessionId"));
    assert_eq!(reported, Some(json!(session.as_str())));
    assert_ne!(&recording.init()?.session_id, session);
    Ok(())
}

/// Why a session is not retried by default: see `docs/retries.md`.
async fn a_session_holds_the_prompt_of_a_turn_that_failed(agent: &Agent) -> Result<()> {
    let vendor = Vendor::of(agent).await?;
    let first = vendor.env.run(agent.request(&vendor.env, "One.")).await?;
    let session = first.result.session_id.context("no session")?;
    let mut request = vendor.request(agent, "Two?");
    request.conversation = Conversation::Resume(session.clone());
    request.retries.policy = RetryPolicy::MayRepeatPrompt;
    let recording = vendor.run(request).await?;
    assert_eq!(recording.result.text, "Now.");
    assert_eq!(recording.result.session_id, Some(session));
    let last = recording.requests.last().context("no request")?.body.to_string();
    // Gemini CLI removes a prompt that was not answered.
    let times = if agent.name == "gemini" { 1 } else { 2 };
    assert_eq!((last.matches("One.").count(), last.matches("Two?").count()), (1, times));
    Ok(())
}

async fn a_session_that_may_hold_the_prompt_is_not_retried_by_default(agent: &Agent) -> Result<()> {
    let vendor = Vendor::of(agent).await?;
    let first = vendor.env.run(agent.request(&vendor.env, "One.")).await?;
    let mut request = vendor.request(agent, "Two?");
    request.conversation = Conversation::Resume(first.result.session_id.context("no session")?);
    vendor.down.store(true, Ordering::Relaxed);
    let recording = vendor.env.run(request).await?;
    assert_eq!(recording.result.error_code, Some(vendor.failure.clone()));
    let refused = recording.warnings(&WarningCode::NotRetried);
    let reasons: Vec<_> = refused.iter().map(|warning| data(warning, "reason")).collect();
    assert_eq!(reasons, ["prompt"]);
    Ok(())
}
