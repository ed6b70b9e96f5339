//! A run that is started again, on the real CLIs.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use teamster::RunRequest;
use teamster::event::{ErrorCode, Event, Warning, WarningCode};
use teamster::request::{Conversation, RetryPolicy};
use teamster_conformance::{AGENTS, Agent, Recording, TestEnv};
use teamster_testkit::provider::{HttpError, Reply, Turn};

/// What OpenCode's user lets its vendor take for a whole answer, in milliseconds.
const ANSWER_MS: u64 = 6000;

/// A vendor that does not answer as it should from the moment when it is told so, until a run has failed of it.
struct Vendor {
    down: Arc<AtomicBool>,
    lab: TestEnv,
    /// What the run fails of.
    failure: ErrorCode,
}

impl Vendor {
    /// The CLI's user wants it to give up soon, so that a test need not wait for the CLI's own retries.
    async fn of(agent: &Agent) -> Result<Self> {
        let down = Arc::new(AtomicBool::new(false));
        let state = Arc::clone(&down);
        // OpenCode asks six times in more than a minute, whatever is set, but not when it has waited too long for an answer.
        let stalls = agent.name == "opencode";
        let lab = agent.lab(Reply::from_fn(move |_| match (state.load(Ordering::Relaxed), stalls) {
            (false, _) => Turn::from(Reply::new().text("Now.")),
            (true, false) => Turn::from(HttpError::overloaded()),
            (true, true) => Turn::from(Reply::new().text("Never.").gate_before("never")),
        }));
        let lab = lab.await?;
        match agent.name {
            "gemini" => settings(&lab, ".gemini/settings.json", &json!({"general": {"maxAttempts": 1}}))?,
            "opencode" => {
                let provider = json!({"provider": {"lab": {"options": {"timeout": ANSWER_MS}}}});
                settings(&lab, ".config/opencode/opencode.json", &provider)?;
            }
            // The lab limits how often they ask.
            _ => {}
        }
        let failure = if stalls { ErrorCode::Connection } else { ErrorCode::Overloaded };
        Ok(Self { down, lab, failure })
    }

    fn request(&self, agent: &Agent, prompt: &str) -> RunRequest {
        let mut request = agent.request(&self.lab, prompt);
        request.retries.max = 3;
        request.retries.base = Duration::from_millis(1);
        request
    }

    /// Runs while the vendor is down, up to the first retry.
    async fn run(&self, request: RunRequest) -> Result<Recording> {
        self.down.store(true, Ordering::Relaxed);
        let mut live = self.lab.start(request)?;
        let started_again = |event: &Event| match event {
            Event::Warning(warning) => self.is_ours(warning),
            event => matches!(event, Event::Done(_)),
        };
        let event = live.until("the retry", started_again).await?;
        self.down.store(false, Ordering::Relaxed);
        ensure!(matches!(event, Event::Warning(_)), "it ended: {event:?}");
        live.finish().await
    }

    /// An agent's own retries have no error code.
    fn is_ours(&self, warning: &Warning) -> bool {
        warning.code == WarningCode::Retrying && data(warning, "errorCode") == json!(self.failure.as_str())
    }
}

/// Writes a file of the user's settings.
fn settings(lab: &TestEnv, name: &str, content: &Value) -> Result<()> {
    let path = lab.home().join(name);
    fs::create_dir_all(path.parent().context("no directory")?)?;
    Ok(fs::write(path, content.to_string())?)
}

fn data(warning: &Warning, name: &str) -> Value {
    warning.data.as_ref().and_then(|data| data.get(name)).cloned().unwrap_or_default()
}

#[tokio::test]
async fn a_run_that_fails_at_the_vendor_is_retried_unchanged() -> Result<()> {
    for agent in AGENTS {
        let vendor = Vendor::of(agent).await?;
        let recording = vendor.run(vendor.request(agent, "Hello?")).await?;
        assert!(!recording.result.is_error, "{}: {:?}", agent.name, recording.failure());
        assert_eq!(recording.result.text, "Now.", "{}", agent.name);
        let last = recording.requests.last().context("no request")?;
        assert_eq!(last.body.to_string().matches("Hello?").count(), 1, "{}", agent.name);
        let session = recording.result.session_id.as_ref().context("no session")?;
        let changed = recording.warnings(&WarningCode::SessionChanged);
        let told = changed.last().map(|warning| data(warning, "sessionId"));
        assert_eq!(told, Some(json!(session.as_str())), "{}", agent.name);
        assert_ne!(&recording.init()?.session_id, session, "{}", agent.name);
    }
    Ok(())
}

/// Why a session is not gone on with unasked: see `docs/retries.md`.
#[tokio::test]
async fn a_session_holds_the_prompt_of_a_turn_that_failed() -> Result<()> {
    for agent in AGENTS {
        let vendor = Vendor::of(agent).await?;
        let first = vendor.lab.run(agent.request(&vendor.lab, "One.")).await?;
        let session = first.result.session_id.context("no session")?;
        let mut request = vendor.request(agent, "Two?");
        request.conversation = Conversation::Resume(session.clone());
        request.retries.policy = RetryPolicy::MayRepeatPrompt;
        let recording = vendor.run(request).await?;
        assert_eq!(recording.result.text, "Now.", "{}", agent.name);
        assert_eq!(recording.result.session_id, Some(session), "{}", agent.name);
        let last = recording.requests.last().context("no request")?.body.to_string();
        // Gemini CLI goes on without a prompt that was not answered.
        let times = if agent.name == "gemini" { 1 } else { 2 };
        assert_eq!((last.matches("One.").count(), last.matches("Two?").count()), (1, times), "{}", agent.name);
    }
    Ok(())
}

#[tokio::test]
async fn a_session_that_may_hold_the_prompt_is_not_retried_by_default() -> Result<()> {
    for agent in AGENTS {
        let vendor = Vendor::of(agent).await?;
        let first = vendor.lab.run(agent.request(&vendor.lab, "One.")).await?;
        let mut request = vendor.request(agent, "Two?");
        request.conversation = Conversation::Resume(first.result.session_id.context("no session")?);
        vendor.down.store(true, Ordering::Relaxed);
        let recording = vendor.lab.run(request).await?;
        assert_eq!(recording.result.error_code, Some(vendor.failure.clone()), "{}", agent.name);
        let refused = recording.warnings(&WarningCode::NotRetried);
        let reasons: Vec<_> = refused.iter().map(|warning| data(warning, "reason")).collect();
        assert_eq!(reasons, ["prompt"], "{}", agent.name);
    }
    Ok(())
}
