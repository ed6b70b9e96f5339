//! Live sessions between turns: the session of a conversation stays open for a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use teamster::Session;
use teamster_store::{ConversationId, Epoch};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::config::TurnSettings;
use crate::tools::SessionTools;

/// An open session, with the settings and instructions for which it was opened.
#[derive(Debug)]
pub(super) struct OpenSession {
    pub(super) session: Arc<Session>,
    pub(super) tools: SessionTools,
    /// The settings, and the instructions without the time. They cannot change within a session.
    pub(super) settings: TurnSettings,
    pub(super) instructions: String,
}

#[derive(Debug)]
struct IdleSession {
    open: OpenSession,
    /// The claim in which it worked last. After a claim by another worker its history is incomplete.
    epoch: Epoch,
    since: Instant,
}

/// The sessions that wait for a turn.
#[derive(Debug, Default)]
pub(super) struct IdleSessions {
    idle: Mutex<HashMap<ConversationId, IdleSession>>,
    /// Sessions that are closing.
    closing: TaskTracker,
}

impl IdleSessions {
    /// Takes the session of a conversation if it fits the next turn. Another one is closed.
    pub(super) fn take(
        &self,
        conversation: ConversationId,
        epoch: Epoch,
        settings: &TurnSettings,
        instructions: &str,
    ) -> Option<OpenSession> {
        let found = self.idle.lock().unwrap_or_else(PoisonError::into_inner).remove(&conversation)?;
        let fits = found.epoch.next() == epoch
            && found.open.settings.shares_session_with(settings)
            && found.open.instructions == instructions;
        if fits {
            // The budget may be that of another author.
            return Some(OpenSession { settings: settings.clone(), ..found.open });
        }
        self.close(found.open);
        None
    }

    /// Keeps a session for the next turn. If there are more than `limit`, the one that was idle longest is closed.
    pub(super) fn keep(&self, conversation: ConversationId, epoch: Epoch, open: OpenSession, limit: usize) {
        let kept = IdleSession { open, epoch, since: Instant::now() };
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let mut surplus: Vec<_> = idle.insert(conversation, kept).into_iter().collect();
        while idle.len() > limit {
            let oldest = idle.iter().min_by_key(|(_, session)| session.since).map(|(id, _)| *id);
            surplus.extend(oldest.and_then(|id| idle.remove(&id)));
        }
        drop(idle);
        for session in surplus {
            self.close(session.open);
        }
    }

    /// Closes sessions that were idle for longer than `timeout`.
    pub(super) fn close_idle(&self, timeout: Duration) {
        let now = Instant::now();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let expired: Vec<_> = idle.extract_if(|_, session| now.duration_since(session.since) >= timeout).collect();
        drop(idle);
        for (_, session) in expired {
            self.close(session.open);
        }
    }

    /// Closes the session of a conversation, for example because the conversation was deleted.
    pub(super) fn discard(&self, conversation: ConversationId) {
        let found = self.idle.lock().unwrap_or_else(PoisonError::into_inner).remove(&conversation);
        if let Some(session) = found {
            self.close(session.open);
        }
    }

    /// Closes a session without waiting for it.
    pub(super) fn close(&self, open: OpenSession) {
        self.closing.spawn(async move { open.session.close().await });
    }

    /// Returns the number of idle sessions.
    pub(super) fn len(&self) -> usize {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Closes all sessions, and waits for them.
    pub(super) async fn close_all(&self) {
        self.close_idle(Duration::ZERO);
        self.closing.close();
        self.closing.wait().await;
        self.closing.reopen();
    }
}
