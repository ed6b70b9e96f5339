//! The data that goes into the store and comes out of it. It has no behavior.

mod access;
mod conversation;
mod delivery;
mod message;
mod page;
mod permission;
mod schedule;
mod turn;
mod usage;
mod work;

pub use access::{AuditEntry, NewAuditEntry, Token};
pub use conversation::{
    ChatAddress, Conversation, ConversationFilter, ConversationPatch, ConversationState, Fork, MAX_FORK_BYTES,
    MAX_FORK_EVENTS, NewConversation, Session,
};
pub use delivery::{
    ClaimedDelivery, Delivery, DeliveryClaim, DeliveryFilter, DeliveryLease, DeliveryPart, DeliveryState, DeliveryStep,
    LONGEST_DELIVERY_DELAY, NewDelivery, PartState,
};
pub use message::{
    Accepted, AcceptedTurn, EditOutcome, IdempotencyKey, Message, MessageEdit, MessageMode, NewMessage, QueueLimits,
    Target,
};
pub use page::{Effects, Event, EventPage, FeedEvent, FeedPage, MESSAGE_EVENTS, NewEvent, Page, PageRequest};
pub use permission::{
    Answer, AnswerOutcome, Closing, Decision, NewPermission, Permission, PermissionClosing, PermissionFilter,
    PermissionOutcome,
};
pub use schedule::{FireOutcome, NewSchedule, Schedule, ScheduleFilter, ScheduleFiring};
pub use turn::{CancelOutcome, CancelScope, EndState, Progress, Turn, TurnState};
pub(crate) use usage::ABANDONED_CHANNEL;
pub use usage::{
    BudgetDecision, BudgetLimit, BudgetStatus, Pruned, RetentionPolicy, StoreStatus, Usage, UsageEntry, UsageQuery,
    UsageRow,
};
pub use work::{
    AttemptEnd, Claim, ClaimRequest, FAIR_SHARE, Finish, HandBack, HandBackKind, JoinedOutcome, LONGEST_RETRY_DELAY,
    Lease, Renewal, SessionChange,
};
