//! The traits of a store, one for each kind of caller.
//!
//! Methods are named after what the engine does. `now` is the caller's clock. A store whose workers run on several machines uses
//! the clock of its database for leases instead.

mod conversations;
mod deliveries;
mod intake;
mod maintenance;
mod permissions;
mod schedules;
mod work;

pub use conversations::{ConversationStore, LogStore};
pub use deliveries::DeliveryStore;
pub use intake::IntakeStore;
pub use maintenance::{AccessStore, MaintenanceStore};
pub use permissions::PermissionStore;
pub use schedules::ScheduleStore;
pub use work::WorkStore;

/// A store with all of its operations.
pub trait Store:
    ConversationStore
    + LogStore
    + IntakeStore
    + WorkStore
    + PermissionStore
    + DeliveryStore
    + ScheduleStore
    + AccessStore
    + MaintenanceStore
{
}

impl<T> Store for T where
    T: ConversationStore
        + LogStore
        + IntakeStore
        + WorkStore
        + PermissionStore
        + DeliveryStore
        + ScheduleStore
        + AccessStore
        + MaintenanceStore
{
}
