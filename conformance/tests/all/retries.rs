//! A run that is started again, on the real CLIs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use teamster::RunRequest;
use teamster::event::{ErrorCode, Event, Warning, WarningCode};
use teamster::request::{Conversation, EvenAfter};
use teamster_conformance::{AGENTS, Agent, Lab, Recording};
use teamster_testkit::provider::{HttpError, Reply, Turn};

/// The two that give up at once: the lab limits how often they ask their vendor. The others take minutes.
fn quick() -> impl Iterator<Item = &'static Agent> {
    AGENTS.iter().filter(|agent| ["claude", "codex"].contains(&agent.name))
}

/// A vendor that has too much to do from the moment when it is told so, until a run has failed of it.
struct Vendor {
    overloaded: Arc<AtomicBool>,
    lab: Lab,
}

impl Vendor {
    async fn of(agent: &Agent) -> Result<Self> {
        let overloaded = Arc::new(AtomicBool::new(false));
        let state = Arc::clone(&overloaded);
        let lab = agent.lab(Reply::from_fn(move |_| {
            let down = state.load(Ordering::Relaxed);
            if down { Turn::from(HttpError::overloaded()) } else { Turn::from(Reply::new().text("Now.")) }
        }));
        Ok(Self { overloaded, lab: lab.await? })
    }

    fn request(&self, agent: &Agent, prompt: &str) -> RunRequest {
        let mut request = agent.request(&self.lab, prompt);
        request.retries.max = 3;
        request.retries.base = Duration::from_millis(1);
        request
    }

    /// Runs while the vendor is overloaded, up to the first retry.
    async fn run(&self, request: RunRequest) -> Result<Recording> {
        self.overloaded.store(true, Ordering::Relaxed);
        let mut live = self.lab.start(request)?;
        let started_again = |event: &Event| match event {
            Event::Warning(warning) => is_ours(warning),
            event => matches!(event, Event::Done(_)),
        };
        let event = live.until("the retry", started_again).await?;
        self.overloaded.store(false, Ordering::Relaxed);
        ensure!(matches!(event, Event::Warning(_)), "it ended: {event:?}");
        live.finish().await
    }
}

/// An agent's own retries have no error code.
fn is_ours(warning: &Warning) -> bool {
    warning.code == WarningCode::Retrying && data(warning, "errorCode") == json!("OVERLOADED")
}

fn data(warning: &Warning, name: &str) -> Value {
    warning.data.as_ref().and_then(|data| data.get(name)).cloned().unwrap_or_default()
}

#[tokio::test]
async fn a_run_that_failed_of_an_overloaded_vendor_is_started_again_as_it_was() -> Result<()> {
    for agent in quick() {
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
    for agent in quick() {
        let vendor = Vendor::of(agent).await?;
        let first = vendor.lab.run(agent.request(&vendor.lab, "One.")).await?;
        let session = first.result.session_id.context("no session")?;
        let mut request = vendor.request(agent, "Two?");
        request.conversation = Conversation::Resume(session.clone());
        request.retries.even_after = EvenAfter::Prompt;
        let recording = vendor.run(request).await?;
        assert_eq!(recording.result.text, "Now.", "{}", agent.name);
        assert_eq!(recording.result.session_id, Some(session), "{}", agent.name);
        let last = recording.requests.last().context("no request")?.body.to_string();
        assert_eq!((last.matches("One.").count(), last.matches("Two?").count()), (1, 2), "{}", agent.name);
    }
    Ok(())
}

#[tokio::test]
async fn a_session_that_may_hold_the_prompt_is_not_gone_on_with_unasked() -> Result<()> {
    for agent in quick() {
        let vendor = Vendor::of(agent).await?;
        let first = vendor.lab.run(agent.request(&vendor.lab, "One.")).await?;
        let mut request = vendor.request(agent, "Two?");
        request.conversation = Conversation::Resume(first.result.session_id.context("no session")?);
        vendor.overloaded.store(true, Ordering::Relaxed);
        let recording = vendor.lab.run(request).await?;
        assert_eq!(recording.result.error_code, Some(ErrorCode::Overloaded), "{}", agent.name);
        let refused = recording.warnings(&WarningCode::NotRetried);
        let reasons: Vec<_> = refused.iter().map(|warning| data(warning, "reason")).collect();
        assert_eq!(reasons, ["prompt"], "{}", agent.name);
    }
    Ok(())
}
