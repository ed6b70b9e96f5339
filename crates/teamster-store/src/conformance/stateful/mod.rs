//! Random operations of several workers, on a store and on the model at the same time.
//!
//! Each operation has the same input on both sides and must have the same result, even if it is an error. The ids, leases and
//! numbers of earlier results are used again, so that old leases, late answers and duplicates are common. The contents of both
//! sides are compared at intervals and at the end.

mod compare;
mod driver;
mod operation;
mod work;

use proptest::prelude::{Just, Strategy, any, prop_oneof};

use super::subject::Subject;
use crate::memory::MemoryStore;
use driver::Driver;
use operation::Kind;
pub use operation::Operation;

/// Generates sequences of operations.
pub fn operations(largest: usize) -> impl Strategy<Value = Vec<Operation>> {
    let kind = prop_oneof![
        6 => Just(Kind::Advance),
        12 => Just(Kind::Accept),
        2 => Just(Kind::Edit),
        3 => Just(Kind::Cancel),
        3 => Just(Kind::Requeue),
        12 => Just(Kind::Claim),
        4 => Just(Kind::Renew),
        5 => Just(Kind::StartAttempt),
        6 => Just(Kind::Append),
        6 => Just(Kind::Join),
        4 => Just(Kind::ResolveJoined),
        4 => Just(Kind::Reserve),
        8 => Just(Kind::Finish),
        6 => Just(Kind::HandBack),
        1 => Just(Kind::ExpireLeases),
        5 => Just(Kind::RequestPermission),
        5 => Just(Kind::Answer),
        3 => Just(Kind::ClosePermissions),
        4 => Just(Kind::Enqueue),
        6 => Just(Kind::ClaimDeliveries),
        10 => Just(Kind::AdvanceDelivery),
        2 => Just(Kind::RetryDelivery),
        3 => Just(Kind::PutSchedule),
        3 => Just(Kind::FireSchedule),
        2 => Just(Kind::Update),
        2 => Just(Kind::Resume),
        2 => Just(Kind::Fork),
        1 => Just(Kind::Delete),
        2 => Just(Kind::Prune),
        1 => Just(Kind::Reopen),
    ];
    let operation = (kind, any::<u8>(), any::<u8>(), any::<u8>());
    let operation = operation.prop_map(|(kind, first, second, third)| Operation { kind, first, second, third });
    proptest::collection::vec(operation, 1..=largest)
}

/// Runs operations on a new store and on the model. It panics at the first difference.
pub async fn run(subject: &dyn Subject, operations: &[Operation]) {
    let mut driver = Driver::new(MemoryStore::new(), subject.create().await);
    for (number, operation) in operations.iter().enumerate() {
        driver.run(*operation).await;
        if number % 16 == 15 {
            driver.compare_contents().await;
        }
    }
    driver.compare_contents().await;
}
