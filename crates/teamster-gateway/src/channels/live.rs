//! Shows an answer while the agent writes it: a typing indicator, and edits of the message that the answer replaces.
//!
//! Nothing here is durable. The progress message is a delivery of the outbox, so that its id is stored before its first edit.
//! The task has ended before the end of the attempt is recorded. If the outcome of an edit is unknown, the answer waits until
//! the service can no longer apply it: no late edit replaces the answer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use teamster::event::Event;
use teamster_channel::{
    Address, Capabilities, Channel, Content, EditStep, LiveEdit, Operation, Outgoing, Pace, Part, RateScope, SendError,
    SendOutcome,
};
use teamster_store::{Delivery, DeliveryFilter, DeliveryState, StoreError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::attempt::sent_id;
use super::deliveries::{Recipient, progress_key};
use super::live_text::LiveText;
use crate::engine::Gateway;

/// The longest time of an edit. The end of an attempt waits for it.
const EDIT_TIMEOUT: Duration = Duration::from_secs(5);

/// The time within which a service applies an edit, or never does.
const APPLIED_WITHIN: Duration = Duration::from_secs(30);

/// The display of one attempt in its chat. Dropping it ends the display at once.
#[derive(Debug)]
pub(crate) struct LiveAnswer {
    text: watch::Sender<LiveText>,
    has_edits: bool,
    is_shown: bool,
    stop: CancellationToken,
    task: AbortOnDropHandle<Option<Instant>>,
}

impl LiveAnswer {
    /// Starts the display of an attempt. `None`: the channel of the chat supports neither edits nor a typing indicator.
    pub(crate) fn start(gateway: &Gateway, to: &Recipient<'_>) -> Option<Self> {
        let name = &to.address.channel;
        let channel = gateway.channels().iter().find(|channel| channel.name() == name)?;
        let capabilities = channel.capabilities();
        if !capabilities.edits && capabilities.typing_lasts.is_none() {
            return None;
        }
        let (sender, text) = watch::channel(LiveText::default());
        let display = Display {
            gateway: gateway.clone(),
            channel: Arc::clone(channel),
            pace: gateway.pace(name)?,
            capabilities,
            address: Address { chat: to.address.chat.clone(), thread: to.address.thread.clone() },
            conversation: to.conversation.to_string(),
            turn: to.turn.map(|(turn, _)| turn)?,
            key: progress_key(to),
        };
        let stop = CancellationToken::new();
        let task = AbortOnDropHandle::new(tokio::spawn(display.run(text, stop.clone())));
        Some(Self { text: sender, has_edits: capabilities.edits, is_shown: false, stop, task })
    }

    /// Takes an event of the run. Returns `true` once, when the progress message must be added to the outbox.
    pub(crate) fn push(&mut self, event: &Event) -> bool {
        let has_changed = self.text.send_if_modified(|text| text.push(event));
        let is_first = has_changed && self.has_edits && !self.is_shown;
        self.is_shown |= has_changed;
        is_first
    }

    /// Ends the display, after the end of a call in progress. Returns how long the service may still apply an edit whose outcome
    /// is unknown.
    pub(crate) async fn finish(self) -> Duration {
        self.stop.cancel();
        match self.task.await {
            Ok(late_until) => {
                late_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
            }
            Err(error) => {
                tracing::error!(%error, "a channel has panicked while an answer was shown");
                APPLIED_WITHIN
            }
        }
    }
}

/// What the task of a display needs.
struct Display {
    gateway: Gateway,
    channel: Arc<dyn Channel>,
    pace: Arc<Mutex<Pace>>,
    capabilities: Capabilities,
    address: Address,
    conversation: String,
    turn: teamster_store::TurnId,
    key: String,
}

/// The progress message in the service.
struct Shown {
    id: String,
    created_at_ms: i64,
    since: Instant,
}

/// Returns whether the service may apply an edit later. Channels report an edit without a known outcome as one to repeat.
fn may_be_applied_later(outcome: &SendOutcome) -> bool {
    matches!(outcome, SendOutcome::Unknown(_) | SendOutcome::NotSent(SendError::Later { after: None, .. }))
}

/// What follows an edit.
enum AfterEdit {
    Continue,
    End,
}

impl Display {
    /// Shows the answer until `stop`. Returns until when the service may apply an edit whose outcome is unknown.
    async fn run(self, text: watch::Receiver<LiveText>, stop: CancellationToken) -> Option<Instant> {
        let mut late_until = None;
        tokio::join!(self.show_typing(&stop), self.show_text(text, &stop, &mut late_until));
        late_until
    }

    async fn show_typing(&self, stop: &CancellationToken) {
        let Some(lasts) = self.capabilities.typing_lasts else { return };
        while !stop.is_cancelled() {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.channel.typing(&self.address) => {}
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(lasts * 4 / 5) => {}
            }
        }
    }

    async fn show_text(
        &self,
        mut text: watch::Receiver<LiveText>,
        stop: &CancellationToken,
        late_until: &mut Option<Instant>,
    ) {
        if !self.capabilities.edits {
            return;
        }
        let mut edit =
            LiveEdit::new(self.capabilities.edit_interval, LiveText::default().shown(self.capabilities.text_limit));
        let mut message = None;
        while !stop.is_cancelled() {
            let wait = match edit.next(Instant::now()) {
                EditStep::Show(shown) => match self.show(&mut edit, &mut message, shown, late_until).await {
                    AfterEdit::Continue => continue,
                    AfterEdit::End => return,
                },
                EditStep::Wait(wait) => Some(wait),
                EditStep::Idle | EditStep::Done => None,
            };
            tokio::select! {
                () = stop.cancelled() => return,
                changed = text.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    edit.update(text.borrow_and_update().shown(self.capabilities.text_limit));
                }
                () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => {}
            }
        }
    }

    /// Makes one edit, if the message exists and the service permits a call now.
    async fn show(
        &self,
        edit: &mut LiveEdit,
        message: &mut Option<Shown>,
        text: String,
        late_until: &mut Option<Instant>,
    ) -> AfterEdit {
        if message.is_none() {
            *message = match self.progress_message().await {
                Ok(found) => found,
                Err(error) => {
                    tracing::warn!(%error, "cannot read the deliveries of a turn; its answer is shown only at its end");
                    return AfterEdit::End;
                }
            };
        }
        let now = Instant::now();
        let Some(shown) = message else {
            edit.failed(Some(self.capabilities.edit_interval), now);
            return AfterEdit::Continue;
        };
        if self.capabilities.edit_window.is_some_and(|window| shown.since.elapsed() >= window) {
            return AfterEdit::End;
        }
        if let Err(wait) = self.pace().reserve(&self.address.chat, now) {
            edit.failed(Some(wait), now);
            return AfterEdit::Continue;
        }
        let limit = self.capabilities.send_timeout.min(EDIT_TIMEOUT);
        let outgoing = self.outgoing(shown, text);
        let outcome = tokio::time::timeout(limit, self.channel.send(&outgoing)).await;
        let outcome = outcome.unwrap_or_else(|_| SendOutcome::Unknown("no answer in time".to_owned()));
        if may_be_applied_later(&outcome) {
            *late_until = Some(now + APPLIED_WITHIN);
        }
        self.settle(edit, &outcome)
    }

    fn settle(&self, edit: &mut LiveEdit, outcome: &SendOutcome) -> AfterEdit {
        let now = Instant::now();
        match outcome {
            SendOutcome::Sent(_) => edit.shown(now),
            SendOutcome::Unknown(_) => edit.failed(None, now),
            SendOutcome::NotSent(SendError::Later { after, scope, .. }) => {
                if let Some(after) = *after {
                    self.pace().hold(&self.address.chat, *scope, after, now);
                }
                edit.failed(*after, now);
            }
            SendOutcome::NotSent(SendError::Unavailable { after, .. }) => {
                if let Some(after) = *after {
                    self.pace().hold(&self.address.chat, RateScope::Channel, after, now);
                }
                edit.failed(*after, now);
            }
            SendOutcome::NotSent(SendError::Gone(_) | SendError::Never(_)) => return AfterEdit::End,
        }
        AfterEdit::Continue
    }

    fn pace(&self) -> std::sync::MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the progress message, if the service has it.
    async fn progress_message(&self) -> Result<Option<Shown>, StoreError> {
        let filter = DeliveryFilter { turn: Some(self.turn), ..DeliveryFilter::default() };
        let deliveries = super::pages::all_deliveries(self.gateway.store(), filter).await?;
        let sent = |delivery: &Delivery| delivery.key == self.key && delivery.state == DeliveryState::Sent;
        let Some(delivery) = deliveries.iter().find(|delivery| sent(delivery)) else { return Ok(None) };
        let Some(id) = sent_id(delivery.parts.first()) else { return Ok(None) };
        // The end of an earlier attempt may have replaced the progress message.
        if deliveries.iter().any(|other| other.id != delivery.id && sent_id(other.parts.first()).as_ref() == Some(&id))
        {
            return Ok(None);
        }
        Ok(Some(Shown { id, created_at_ms: delivery.created_at.as_millis(), since: Instant::now() }))
    }

    fn outgoing(&self, shown: &Shown, text: String) -> Outgoing {
        Outgoing {
            key: format!("{}:live", self.key),
            address: self.address.clone(),
            conversation: Some(self.conversation.clone()),
            turn: Some(self.turn.to_string()),
            operation: Operation::Edit(shown.id.clone()),
            content: Content::Progress { text },
            part: Part::ONLY,
            bytes: Arc::from([]),
            may_be_repeat: false,
            created_at_ms: shown.created_at_ms,
        }
    }
}
