//! The kinds of operations.

/// An operation and the numbers from which its input is generated.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    pub(super) kind: Kind,
    pub(super) first: u8,
    pub(super) second: u8,
    pub(super) third: u8,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Advance,
    Accept,
    Edit,
    Cancel,
    Requeue,
    Claim,
    Renew,
    StartAttempt,
    Append,
    Join,
    ResolveJoined,
    Reserve,
    Finish,
    HandBack,
    ExpireLeases,
    RequestPermission,
    Answer,
    ClosePermissions,
    Enqueue,
    ClaimDeliveries,
    AdvanceDelivery,
    RetryDelivery,
    PutSchedule,
    FireSchedule,
    Update,
    Resume,
    Fork,
    Delete,
    Prune,
    Reopen,
}
