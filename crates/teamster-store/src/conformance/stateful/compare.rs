//! Compares the contents of the store and the model.

use std::collections::BTreeMap;

use super::driver::{Driver, both};
use crate::ids::{ConversationId, Cursor, Day, Seq};
use crate::records::{
    ConversationFilter, ConversationState, DeliveryFilter, FeedEvent, Page, PageRequest, PermissionFilter,
    ScheduleFilter, StoreStatus, TurnState, UsageQuery,
};
use crate::store::Store;

/// A page that is smaller than most lists, so that lists have several pages.
const PAGE: u32 = 3;

/// Compares a list on both sides, page by page.
macro_rules! both_lists {
    ($driver:expr, $list:expr) => {{
        let expected = pages(async |request| $list(super::driver::model(&$driver.model), request).await).await;
        let found = pages(async |request| $list($driver.instance.store(), request).await).await;
        assert_eq!(found, expected, "the model (right) has another list");
        expected
    }};
}

/// Reads all pages of a list.
async fn pages<T>(read: impl AsyncFn(PageRequest) -> Page<T>) -> Vec<T> {
    let (mut items, mut cursor): (Vec<T>, Option<Cursor>) = (Vec::new(), None);
    loop {
        let page = read(PageRequest { limit: PAGE, cursor }).await;
        items.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            return items;
        }
    }
}

impl Driver {
    /// Compares everything that can be read.
    pub(super) async fn compare_contents(&mut self) {
        let now = self.now;
        let filters = [
            ConversationFilter::default(),
            ConversationFilter { state: Some(ConversationState::Queued), ..Default::default() },
            ConversationFilter { agent: Some("codex".to_owned()), ..Default::default() },
        ];
        let mut conversations = Vec::new();
        for filter in filters {
            let listed = both_lists!(self, async |store: &dyn Store, request| {
                store.conversations(filter.clone(), request, now).await.unwrap()
            });
            conversations = if conversations.is_empty() { listed } else { conversations };
        }
        for conversation in conversations {
            self.compare_log(conversation.id, conversation.oldest_seq, conversation.last_seq).await;
        }
        self.compare_feed().await;
        both_lists!(self, async |store: &dyn Store, request| {
            store.permissions(PermissionFilter::default(), request).await.unwrap()
        });
        both_lists!(self, async |store: &dyn Store, request| {
            store.permissions(PermissionFilter { open: true, ..Default::default() }, request).await.unwrap()
        });
        both_lists!(self, async |store: &dyn Store, request| {
            store.deliveries(DeliveryFilter::default(), request).await.unwrap()
        });
        both_lists!(self, async |store: &dyn Store, request| {
            store.schedules(ScheduleFilter { due_by: Some(now), conversation: None }, request).await.unwrap()
        });
        let all_days = UsageQuery { from: Day::new(0), to: Day::new(9), conversation: None };
        both!(self, usage(all_days));
        for scope in ["scope-0", "scope-1"] {
            for day in [0, 1] {
                both!(self, budget(scope.to_owned(), Day::new(day)));
            }
        }
        let expected = super::driver::model(&self.model).status(now).await.unwrap();
        let found = self.instance.store().status(now).await.unwrap();
        assert_eq!(StoreStatus { bytes: 0, ..found }, expected, "the model (right) has other figures");
    }

    /// Compares the turns and the log of a conversation, and checks what holds for each store.
    async fn compare_log(&self, id: ConversationId, oldest: Seq, last: Seq) {
        let turns = both_lists!(self, async |store: &dyn Store, request| store.turns(id, request).await.unwrap());
        let running = turns.iter().filter(|turn| turn.state == TurnState::Running && turn.joined.is_none());
        assert!(running.count() <= 1, "two turns of a conversation run");

        both!(self, events(id, Seq::START, 5));
        both!(self, messages_before(id, last, 7));
        let before = Seq::new(oldest.get().saturating_sub(1));
        let page = both!(self, events(id, before, 1000)).unwrap();
        let numbers: Vec<_> = page.events.iter().map(|event| event.seq.get()).collect();
        let expected: Vec<_> = (oldest.get()..=last.get()).collect();
        assert_eq!(numbers, expected, "the log has a gap");
    }

    /// Compares the feed by conversation. Positions differ between stores, the order within a conversation does not.
    async fn compare_feed(&self) {
        let read = async |store: &dyn Store| {
            let (mut logs, mut cursor) = (BTreeMap::<_, Vec<_>>::new(), None);
            loop {
                let page = store.feed(cursor, PAGE).await.unwrap();
                let is_end = page.events.is_empty();
                for FeedEvent { conversation, event, .. } in page.events {
                    logs.entry(conversation).or_default().push(event);
                }
                cursor = Some(page.cursor);
                if is_end {
                    return logs;
                }
            }
        };
        let expected = read(super::driver::model(&self.model)).await;
        assert_eq!(read(self.instance.store()).await, expected, "the model (right) has another feed");
    }
}
