//! The order of the messages of a chat.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use teamster_channel::Address;
use tokio::sync::OwnedMutexGuard;

/// Admits the messages of a chat one after the other, in the order of their arrival. The files and hooks of a message
/// may take long.
#[derive(Debug, Default)]
pub(super) struct ChatOrder(Mutex<HashMap<Address, Weak<tokio::sync::Mutex<()>>>>);

impl ChatOrder {
    /// Waits for the earlier messages of a chat. The next one waits until the returned value is dropped.
    pub(super) async fn enter(&self, address: &Address) -> OwnedMutexGuard<()> {
        let own = self.of(address);
        own.lock_owned().await
    }

    fn of(&self, address: &Address) -> Arc<tokio::sync::Mutex<()>> {
        let mut chats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = chats.get(address).and_then(Weak::upgrade) {
            return own;
        }
        // Only chats whose messages are being accepted now remain.
        chats.retain(|_, other| other.strong_count() > 0);
        let own = Arc::default();
        chats.insert(address.clone(), Arc::downgrade(&own));
        own
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn messages_of_a_chat_enter_in_their_order_and_those_of_others_do_not_wait() {
        let order = ChatOrder::default();
        let address = |chat: &str| Address { chat: chat.to_owned(), thread: String::new() };
        let (garden, kitchen) = (address("garden"), address("kitchen"));
        let first = order.enter(&garden).await;
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(order.enter(&garden))).collect();
        assert!(waiting.iter_mut().all(|next| next.now_or_never().is_none()));
        drop(order.enter(&kitchen).await);
        drop(first);
        for next in 0..3 {
            let later = waiting.iter_mut().skip(next + 1).all(|later| later.now_or_never().is_none());
            assert!(later, "they wait for the message {next}");
            drop(waiting.get_mut(next).unwrap().await);
        }
        drop(waiting);
        drop(order.enter(&kitchen).await);
        assert_eq!(order.0.lock().unwrap().len(), 1, "chats without messages are forgotten");
    }
}
