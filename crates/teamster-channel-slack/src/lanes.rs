//! The order of envelopes. Pure.
//!
//! The envelopes of a chat are handled one after the other, those of different chats side by side: a slow download of one chat
//! delays no other one. An envelope that comes again while the first one is handled is acknowledged together with it.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::envelope::Envelope;
use crate::socket::SocketId;

/// The largest number of envelopes that wait in chats with several of them. One more is not taken: the service sends it again.
const MAX_WAITING: usize = 1_000;

/// The largest number of envelopes of one chat that wait.
const MAX_IN_LANE: usize = 200;

/// The number of handled envelopes that are remembered.
const MAX_RECENT: usize = 2_000;

/// The envelopes that are handled or wait.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    /// The envelopes behind the one that is handled, by chat.
    waiting: HashMap<String, VecDeque<Envelope>>,
    /// The deliveries of each envelope that is not handled: the connection, and the id to acknowledge.
    deliveries: HashMap<String, Vec<(SocketId, String)>>,
    recent: Recent,
    count: usize,
}

/// What follows the arrival of an envelope.
#[derive(Debug, PartialEq)]
pub(crate) enum Arrival {
    /// Handle it now.
    Start(Envelope),
    /// It waits, or it is handled already.
    Waits,
    /// It was handled before: acknowledge it.
    Repeated,
    /// Too many wait.
    Full,
}

/// The last keys.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    known: HashSet<String>,
    order: VecDeque<String>,
}

impl Lanes {
    /// An envelope has arrived.
    pub(crate) fn arrived(&mut self, socket: SocketId, envelope: Envelope) -> Arrival {
        let key = envelope.key();
        if self.recent.contains(&key) {
            return Arrival::Repeated;
        }
        let delivery = (socket, envelope.envelope_id.clone());
        if let Some(deliveries) = self.deliveries.get_mut(&key) {
            deliveries.push(delivery);
            return Arrival::Waits;
        }
        if self.is_full(&envelope) {
            return Arrival::Full;
        }
        self.deliveries.insert(key, vec![delivery]);
        let Some(lane) = envelope.lane().map(str::to_owned) else { return Arrival::Start(envelope) };
        if let Some(waiting) = self.waiting.get_mut(&lane) {
            // While one connection replaces another one, a later envelope may arrive first.
            let at = waiting.iter().rposition(|other| other.time() <= envelope.time()).map_or(0, |last| last + 1);
            waiting.insert(at, envelope);
            self.count += 1;
            return Arrival::Waits;
        }
        self.waiting.insert(lane, VecDeque::new());
        Arrival::Start(envelope)
    }

    /// Returns whether an envelope is not taken. A chat that is stuck does not stop another one, in which none waits.
    fn is_full(&self, envelope: &Envelope) -> bool {
        let waiting = envelope.lane().and_then(|lane| self.waiting.get(lane)).map_or(0, VecDeque::len);
        waiting >= MAX_IN_LANE || (waiting > 0 && self.count >= MAX_WAITING)
    }

    /// Returns the deliveries to acknowledge now. The envelope counts as handled from now on.
    pub(crate) fn acknowledged(&mut self, key: &str) -> Vec<(SocketId, String)> {
        self.recent.insert(key.to_owned());
        self.deliveries.remove(key).unwrap_or_default()
    }

    /// An envelope was not handled. The service sends it again.
    pub(crate) fn dropped(&mut self, key: &str) {
        self.deliveries.remove(key);
    }

    /// Returns the next envelope of a chat.
    pub(crate) fn next(&mut self, lane: &str) -> Option<Envelope> {
        let next = self.waiting.get_mut(lane)?.pop_front();
        match &next {
            Some(_) => self.count = self.count.saturating_sub(1),
            None => _ = self.waiting.remove(lane),
        }
        next
    }
}

impl Recent {
    pub(crate) fn contains(&self, key: &str) -> bool {
        self.known.contains(key)
    }

    pub(crate) fn insert(&mut self, key: String) {
        if !self.known.insert(key.clone()) {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > MAX_RECENT
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn envelope(id: &str, event: &str, channel: &str) -> Envelope {
        Envelope {
            envelope_id: id.to_owned(),
            r#type: "events_api".to_owned(),
            payload: json!({"event_id": event, "event": {"channel": channel}}),
            ..Envelope::default()
        }
    }

    #[test]
    fn the_envelopes_of_a_chat_are_handled_in_order_and_those_of_others_side_by_side() {
        let mut lanes = Lanes::default();
        assert!(matches!(lanes.arrived(1, envelope("a", "1", "C1")), Arrival::Start(_)));
        assert_eq!(lanes.arrived(1, envelope("b", "2", "C1")), Arrival::Waits);
        assert!(matches!(lanes.arrived(1, envelope("c", "3", "C2")), Arrival::Start(_)));
        assert_eq!(lanes.acknowledged("1"), [(1, "a".to_owned())]);
        assert_eq!(lanes.next("C1").unwrap().envelope_id, "b");
        assert_eq!(lanes.next("C1"), None);
        assert!(matches!(lanes.arrived(1, envelope("d", "4", "C1")), Arrival::Start(_)));
    }

    #[test]
    fn envelopes_that_wait_are_in_the_order_of_their_times() {
        let at = |id: &str, time: &str| {
            let mut envelope = envelope(id, id, "C1");
            envelope.payload["event"]["ts"] = time.into();
            envelope
        };
        let mut lanes = Lanes::default();
        for (id, time) in [("a", "1.0"), ("d", "1.3"), ("b", "1.1"), ("c", "1.2"), ("e", "1.3")] {
            lanes.arrived(1, at(id, time));
        }
        let order: Vec<_> = std::iter::from_fn(|| lanes.next("C1")).map(|envelope| envelope.envelope_id).collect();
        assert_eq!(order, ["b", "c", "d", "e"]);
    }

    #[test]
    fn an_envelope_that_comes_again_is_handled_once_and_each_delivery_is_acknowledged() {
        let mut lanes = Lanes::default();
        assert!(matches!(lanes.arrived(1, envelope("a", "1", "C1")), Arrival::Start(_)));
        assert_eq!(lanes.arrived(2, envelope("b", "1", "C1")), Arrival::Waits);
        assert_eq!(lanes.acknowledged("1"), [(1, "a".to_owned()), (2, "b".to_owned())]);
        assert_eq!(lanes.arrived(2, envelope("c", "1", "C1")), Arrival::Repeated);
        assert!(matches!(lanes.arrived(2, envelope("d", "2", "C2")), Arrival::Start(_)));
        lanes.dropped("2");
        assert_eq!(lanes.next("C2"), None);
        assert!(matches!(lanes.arrived(2, envelope("e", "2", "C2")), Arrival::Start(_)), "it was not handled");
    }

    #[test]
    fn what_waits_and_what_is_remembered_is_bounded() {
        let mut lanes = Lanes::default();
        let mut full = 0;
        for number in 0..MAX_IN_LANE + 10 {
            full += usize::from(lanes.arrived(1, envelope("x", &number.to_string(), "C1")) == Arrival::Full);
        }
        assert_eq!(full, 9, "one is handled");
        assert!(
            matches!(lanes.arrived(1, envelope("x", "other", "C0")), Arrival::Start(_)),
            "another chat is not stuck"
        );
        for number in MAX_IN_LANE + 10..MAX_WAITING * 2 {
            let channel = format!("C{}", number % 10);
            lanes.arrived(1, envelope("x", &number.to_string(), &channel));
        }
        assert_eq!(lanes.count, MAX_WAITING);
        assert_eq!(lanes.arrived(1, envelope("x", "more", "C5")), Arrival::Full);
        assert!(matches!(lanes.arrived(1, envelope("x", "idle", "C11")), Arrival::Start(_)));
        let mut recent = Recent::default();
        for number in 0..MAX_RECENT * 2 {
            recent.insert(number.to_string());
        }
        assert_eq!((recent.known.len(), recent.order.len()), (MAX_RECENT, MAX_RECENT));
    }
}
