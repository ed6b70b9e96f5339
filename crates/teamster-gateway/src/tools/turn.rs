//! The running turn of a session, on whose behalf tools are called.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use sha2::{Digest as _, Sha256};
use teamster_store::{ChatAddress, ConversationId, Epoch, Lease, TurnId};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The turn that may use the tools.
#[derive(Clone, Debug)]
pub struct ToolTurn {
    /// The conversation.
    pub conversation: ConversationId,
    /// The turn.
    pub turn: TurnId,
    /// The claim in which it runs. A later claim makes the token useless.
    pub epoch: Epoch,
    /// Its address.
    pub address: ChatAddress,
    /// Who wrote its message.
    pub author: String,
    /// The working directory of the agent.
    pub directory: PathBuf,
}

/// The running turn of a session, and what it has done.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) turn: ToolTurn,
    /// Cancelled when the turn ends.
    pub(super) ended: CancellationToken,
    effects: Mutex<Effects>,
}

#[derive(Debug, Default)]
struct Effects {
    /// The number of each call among the calls with the same effect.
    calls: HashMap<(String, Digest), u32>,
    /// The number of calls of each effect.
    counts: HashMap<Digest, u32>,
    /// The effects that were not stored, so that a repeated call stores them.
    failed: HashSet<(Digest, u32)>,
    sends: u32,
}

type Digest = [u8; 16];

/// The identity of an effect of a turn. It is the same if the agent repeats the call, or a retried attempt does the same again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EffectId {
    turn: TurnId,
    kind: &'static str,
    digest: Digest,
    number: u32,
    /// Whether the agent has sent this very call before, and the gateway has stored its effect or is storing it.
    pub(super) is_repeated: bool,
}

impl ToolTurn {
    /// Returns the lease with which effects of the turn are stored.
    pub(super) const fn lease(&self) -> Lease {
        Lease { conversation: self.conversation, turn: self.turn, epoch: self.epoch }
    }
}

impl Current {
    pub(super) fn new(turn: ToolTurn) -> Self {
        Self { turn, ended: CancellationToken::new(), effects: Mutex::default() }
    }

    /// Returns the identity of an effect.
    ///
    /// It is made of the content, and of the number of calls with this content in the attempt. A retried attempt that sends the
    /// same again sends it once; what it words differently is another message, which must not be lost. A call that the agent's
    /// client repeats has the id of the first one.
    pub(super) fn effect(&self, kind: &'static str, parts: &[&[u8]], call: &str) -> EffectId {
        let digest = digest(kind, parts);
        let mut effects = self.effects.lock().unwrap_or_else(PoisonError::into_inner);
        let Effects { calls, counts, failed, .. } = &mut *effects;
        let known = calls.get(&(call.to_owned(), digest)).copied();
        let number = known.unwrap_or_else(|| {
            let count = counts.entry(digest).or_default();
            *count += 1;
            calls.insert((call.to_owned(), digest), *count);
            *count
        });
        let is_repeated = known.is_some() && !failed.remove(&(digest, number));
        EffectId { turn: self.turn.turn, kind, digest, number, is_repeated }
    }

    /// Records that an effect was not stored.
    pub(super) fn failed(&self, effect: &EffectId) {
        let mut effects = self.effects.lock().unwrap_or_else(PoisonError::into_inner);
        effects.failed.insert((effect.digest, effect.number));
    }

    fn has_effects(&self) -> bool {
        !self.effects.lock().unwrap_or_else(PoisonError::into_inner).calls.is_empty()
    }

    /// Takes back the count of a message or file that was not stored.
    pub(super) fn was_not_sent(&self) {
        let mut effects = self.effects.lock().unwrap_or_else(PoisonError::into_inner);
        effects.sends = effects.sends.saturating_sub(1);
    }

    /// Counts a message or file, and returns whether it is within the limit of a turn.
    pub(super) fn may_send(&self, limit: u32) -> bool {
        let mut effects = self.effects.lock().unwrap_or_else(PoisonError::into_inner);
        let may = effects.sends < limit;
        effects.sends += u32::from(may);
        may
    }
}

fn digest(kind: &str, parts: &[&[u8]]) -> Digest {
    let mut hash = Sha256::new();
    for part in std::iter::once(kind.as_bytes()).chain(parts.iter().copied()) {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    let mut digest = Digest::default();
    for (byte, from) in digest.iter_mut().zip(hash.finalize()) {
        *byte = from;
    }
    digest
}

impl EffectId {
    /// Returns the key of a delivery.
    pub(super) fn key(&self) -> String {
        let digest = Uuid::from_bytes(self.digest).simple();
        format!("{}:tool:{}:{digest}:{}", self.turn, self.kind, self.number)
    }

    /// Returns a UUID made of the identity.
    pub(super) fn uuid(&self) -> Uuid {
        uuid::Builder::from_custom_bytes(digest("uuid", &[self.key().as_bytes()])).into_uuid()
    }
}

/// A session to which the tools are offered. Its token is valid while a turn runs.
#[derive(Debug)]
pub(super) struct ToolSession {
    conversation: ConversationId,
    current: Mutex<Option<Arc<Current>>>,
}

impl ToolSession {
    pub(super) const fn new(conversation: ConversationId) -> Self {
        Self { conversation, current: Mutex::new(None) }
    }

    /// Starts a turn. A turn of another conversation is refused.
    pub(super) fn begin(&self, turn: ToolTurn) {
        let current = (turn.conversation == self.conversation).then(|| Arc::new(Current::new(turn)));
        self.replace(current);
    }

    /// Ends the turn, with its running calls. Returns whether it had an effect, or may have had one.
    pub(super) fn end(&self) -> bool {
        self.replace(None).is_some_and(|last| last.has_effects())
    }

    fn replace(&self, current: Option<Arc<Current>>) -> Option<Arc<Current>> {
        let mut place = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let last = std::mem::replace(&mut *place, current);
        if let Some(last) = &last {
            last.ended.cancel();
        }
        last
    }

    fn current(&self) -> Option<Arc<Current>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The sessions to which the tools are offered, by the labels of their offers.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolSessions(Arc<Mutex<HashMap<String, Weak<ToolSession>>>>);

impl ToolSessions {
    /// Adds a session.
    pub(super) fn add(&self, label: String, session: &Arc<ToolSession>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(label, Arc::downgrade(session));
    }

    /// Removes a session.
    pub(super) fn remove(&self, label: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(label);
    }

    /// Returns the running turn of a session.
    pub(super) fn current(&self, label: Option<&str>) -> Option<Arc<Current>> {
        let session = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(label?)?.upgrade();
        session?.current()
    }
}
