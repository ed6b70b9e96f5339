//! The operations that are passed on. Writes are measured.

use async_trait::async_trait;
use teamster_store::{
    AccessStore, Answer, AnswerOutcome, AuditEntry, BudgetStatus, ChatAddress, Conversation, ConversationFilter,
    ConversationId, ConversationPatch, ConversationStore, Day, Effects, Event, EventPage, FeedCursor, FeedPage, Fork,
    Json, Lease, LogStore, MaintenanceStore, NewAuditEntry, NewConversation, NewPermission, Page, PageRequest,
    Permission, PermissionClosing, PermissionFilter, PermissionId, PermissionStore, Pruned, Result, RetentionPolicy,
    Seq, StoreStatus, Timestamp, Token, TokenId, Turn, TurnId, UsageQuery, UsageRow,
};

use super::MeasuredStore;

/// Implements a trait of the store: `read` passes an operation on, `write` measures it as well.
macro_rules! pass_on {
    ($trait:ident { $($kind:ident $name:ident($($argument:ident: $type:ty),*) -> $output:ty;)* }) => {
        #[async_trait]
        impl $trait for MeasuredStore {
            $(async fn $name(&self, $($argument: $type),*) -> Result<$output> {
                pass_on!(@$kind self, $name, self.inner.$name($($argument),*))
            })*
        }
    };
    (@read $self:ident, $name:ident, $call:expr) => { $call.await };
    (@write $self:ident, $name:ident, $call:expr) => { $self.timed(stringify!($name), $call).await };
}

pass_on!(ConversationStore {
    write create_conversation(new: NewConversation, fork: Option<Fork>, now: Timestamp) -> Conversation;
    write update_conversation(id: ConversationId, patch: ConversationPatch, effects: Effects, now: Timestamp)
        -> Conversation;
    write resume_conversation(id: ConversationId, effects: Effects, now: Timestamp) -> Conversation;
    write delete_conversation(id: ConversationId, now: Timestamp) -> ();
    read conversation(id: ConversationId, now: Timestamp) -> Option<Conversation>;
    read conversation_at(address: ChatAddress, now: Timestamp) -> Option<Conversation>;
    write forget_sessions(id: ConversationId, effects: Effects, now: Timestamp) -> Conversation;
    read conversations(filter: ConversationFilter, page: PageRequest, now: Timestamp) -> Page<Conversation>;
});

pass_on!(LogStore {
    read turn(id: TurnId) -> Option<Turn>;
    read turn_of_message(channel: String, channel_id: String) -> Option<Turn>;
    read turns(conversation: ConversationId, page: PageRequest) -> Page<Turn>;
    read open_turns(conversation: ConversationId) -> Vec<Turn>;
    read waiting_turns(channel: String, author: String, limit: u32) -> u32;
    read events(conversation: ConversationId, after: Seq, limit: u32) -> EventPage;
    read messages_before(conversation: ConversationId, before: Seq, limit: u32) -> Vec<Event>;
    read feed(after: Option<FeedCursor>, limit: u32) -> FeedPage;
    read feed_end() -> FeedCursor;
});

pass_on!(PermissionStore {
    write request_permission(lease: Lease, request: NewPermission, effects: Effects, now: Timestamp) -> Permission;
    write answer_permission(answer: Answer, now: Timestamp) -> AnswerOutcome;
    write close_permissions(lease: Lease, closings: Vec<PermissionClosing>, now: Timestamp) -> Vec<PermissionId>;
    read permissions(filter: PermissionFilter, page: PageRequest) -> Page<Permission>;
    read permission(id: PermissionId) -> Option<Permission>;
});

pass_on!(AccessStore {
    write add_token(token: Token) -> ();
    read token_by_hash(hash: [u8; 32]) -> Option<Token>;
    write revoke_token(id: TokenId, now: Timestamp) -> Token;
    write remove_token(id: TokenId) -> bool;
    read tokens(page: PageRequest) -> Page<Token>;
    write record_audit(entry: NewAuditEntry, now: Timestamp) -> ();
    read audit_log(page: PageRequest) -> Page<AuditEntry>;
});

pass_on!(MaintenanceStore {
    read usage(query: UsageQuery) -> Vec<UsageRow>;
    read budget(scope: String, day: Day) -> BudgetStatus;
    write prune(policy: RetentionPolicy, now: Timestamp) -> Pruned;
    read needed_files(hashes: Vec<String>) -> Vec<String>;
    write set_channel_state(key: String, state: Json) -> ();
    read channel_state(key: String) -> Option<Json>;
    read status(now: Timestamp) -> StoreStatus;
});
