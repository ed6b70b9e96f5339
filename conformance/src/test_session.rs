//! A session under way.

use anyhow::{Context, Result, ensure};
use teamster::request::Prompt;
use teamster::{Event, Run, Session};

use crate::live::Live;
use crate::recording::Recording;
use crate::test_env::TestEnv;
use crate::trace::Trace;

/// A session whose turns are checked like runs.
#[derive(Debug)]
pub struct TestSession<'lab> {
    lab: &'lab TestEnv,
    session: Session,
    trace: Trace,
}

impl<'lab> TestSession<'lab> {
    pub(crate) fn new(lab: &'lab TestEnv, session: Session, trace: Trace) -> Self {
        Self { lab, session, trace }
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The session's processes.
    pub fn trace(&self) -> Trace {
        self.trace.clone()
    }

    /// Sends a prompt, and gives its turn.
    pub fn send(&self, prompt: impl Into<Prompt>) -> Result<Live<'lab>> {
        Ok(self.watch(self.session.send(prompt)?))
    }

    fn watch(&self, run: Run) -> Live<'lab> {
        Live::of_session(self.lab, run, self.trace.clone())
    }

    /// Sends a prompt, and waits for the end of its turn.
    pub async fn say(&self, prompt: impl Into<Prompt>) -> Result<Recording> {
        self.send(prompt)?.finish().await
    }

    /// Closes the session. Nothing of it is left then.
    pub async fn close(self) -> Result<()> {
        tokio::time::timeout(crate::BOUND, self.session.close()).await.context("the session does not end")?;
        let left = self.trace.processes();
        ensure!(left.is_empty(), "processes outlive their session: {left:?}");
        Ok(())
    }

    /// Drops the session, whatever it is doing.
    pub fn abandon(self) -> Trace {
        self.trace
    }
}

/// The id of the request that an event makes of the caller.
pub fn request_of(event: &Event) -> Option<&teamster::event::RequestId> {
    match event {
        Event::PermissionRequest(request) => Some(&request.request_id),
        Event::Question(question) => Some(&question.request_id),
        _ => None,
    }
}
