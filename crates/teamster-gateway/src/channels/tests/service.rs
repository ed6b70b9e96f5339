//! A chat service in memory. It shows what people would see, and fails by script.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use teamster_channel::{
    Address, Capabilities, Channel, ChannelError, Content, Delivered, Inbox, Operation, Outgoing, SendError,
    SendOutcome, TextLimit, TextUnit,
};
use tokio_util::sync::CancellationToken;

/// What the service does with a call.
#[derive(Clone, Debug)]
pub(super) enum Reaction {
    /// It shows the message and confirms it.
    Show,
    /// It shows the message, and the answer is lost.
    ShowAndLose,
    /// It does not show the message, and the answer is lost.
    Lose,
    /// It refuses with this error.
    Refuse(SendError),
    /// It shows the message and never answers.
    ShowAndHang,
    /// The channel panics.
    Panic,
}

/// A message as people see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) key: String,
    pub(super) chat: String,
    pub(super) content: Content,
    pub(super) may_be_repeat: bool,
    pub(super) edits: u32,
}

/// A call.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) at: Instant,
    pub(super) chat: String,
    pub(super) outgoing: Outgoing,
}

pub(super) struct Service {
    pub(super) capabilities: Capabilities,
    /// Whether the service can be asked for a message.
    pub(super) can_find: bool,
    pub(super) script: Mutex<VecDeque<Reaction>>,
    pub(super) shown: Mutex<Vec<Shown>>,
    pub(super) calls: Mutex<Vec<Call>>,
    pub(super) overlaps: Mutex<u32>,
    pub(super) busy: Mutex<Vec<String>>,
    /// How long a call takes.
    pub(super) latency: Duration,
}

impl Service {
    pub(super) fn new(script: impl IntoIterator<Item = Reaction>) -> Self {
        let capabilities = Capabilities {
            buttons: true,
            text_limit: TextLimit { max: 200, unit: TextUnit::Chars },
            send_timeout: Duration::from_secs(5),
            ..Capabilities::default()
        };
        Self {
            capabilities,
            can_find: false,
            script: Mutex::new(script.into_iter().collect()),
            shown: Mutex::default(),
            calls: Mutex::default(),
            overlaps: Mutex::default(),
            busy: Mutex::default(),
            latency: Duration::ZERO,
        }
    }

    pub(super) fn shared(self) -> Arc<Self> {
        Arc::new(self)
    }

    /// Returns the texts that a chat shows.
    pub(super) fn texts(&self, chat: &str) -> Vec<String> {
        let shown = self.shown.lock().unwrap();
        shown.iter().filter(|shown| shown.chat == chat).map(|shown| shown.content.text().to_owned()).collect()
    }

    pub(super) fn shown(&self) -> Vec<Shown> {
        self.shown.lock().unwrap().clone()
    }

    pub(super) fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    /// Shows a message, once per key if repeats are recognized, and returns its id.
    fn show(&self, outgoing: &Outgoing) -> Result<String, SendError> {
        let mut shown = self.shown.lock().unwrap();
        if let Operation::Edit(id) = &outgoing.operation {
            let found = id.parse::<usize>().ok().and_then(|at| shown.get_mut(at));
            let found = found.ok_or_else(|| SendError::Gone("unknown message".to_owned()))?;
            found.content = outgoing.content.clone();
            found.edits += 1;
            return Ok(id.clone());
        }
        let known = shown.iter().position(|shown| shown.key == outgoing.key);
        if let (Some(at), Some(_)) = (known, self.capabilities.recognizes_repeats_for) {
            return Ok(at.to_string());
        }
        shown.push(Shown {
            key: outgoing.key.clone(),
            chat: outgoing.address.chat.clone(),
            content: outgoing.content.clone(),
            may_be_repeat: outgoing.may_be_repeat,
            edits: 0,
        });
        Ok((shown.len() - 1).to_string())
    }
}

#[async_trait]
impl Channel for Service {
    fn name(&self) -> &'static str {
        "double"
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    async fn check(&self) -> Result<(), ChannelError> {
        Ok(())
    }

    async fn receive(&self, _inbox: &dyn Inbox, stop: CancellationToken) -> Result<(), ChannelError> {
        stop.cancelled().await;
        Ok(())
    }

    async fn send(&self, outgoing: &Outgoing) -> SendOutcome {
        let chat = outgoing.address.chat.clone();
        let reaction = self.script.lock().unwrap().pop_front().unwrap_or(Reaction::Show);
        self.calls.lock().unwrap().push(Call { at: Instant::now(), chat: chat.clone(), outgoing: outgoing.clone() });
        if self.busy.lock().unwrap().contains(&chat) {
            *self.overlaps.lock().unwrap() += 1;
        }
        self.busy.lock().unwrap().push(chat.clone());
        tokio::time::sleep(self.latency).await;
        self.busy.lock().unwrap().retain(|busy| *busy != chat);
        let lost = || SendOutcome::Unknown("the connection was reset".to_owned());
        match reaction {
            Reaction::Show => match self.show(outgoing) {
                Ok(id) => SendOutcome::Sent(Delivered { message_id: Some(id) }),
                Err(error) => SendOutcome::NotSent(error),
            },
            Reaction::ShowAndLose => {
                _ = self.show(outgoing);
                lost()
            }
            Reaction::Lose => lost(),
            Reaction::Refuse(error) => SendOutcome::NotSent(error),
            Reaction::ShowAndHang => {
                _ = self.show(outgoing);
                std::future::pending().await
            }
            Reaction::Panic => panic!("a defect of the channel"),
        }
    }

    async fn find(&self, outgoing: &Outgoing) -> Option<SendOutcome> {
        if !self.can_find {
            return None;
        }
        let shown = self.shown.lock().unwrap();
        let found = shown.iter().position(|shown| shown.key == outgoing.key);
        Some(match found {
            Some(at) => SendOutcome::Sent(Delivered { message_id: Some(at.to_string()) }),
            None => SendOutcome::NotSent(SendError::Never("not in the history".to_owned())),
        })
    }

    async fn typing(&self, _address: &Address) {}
}
