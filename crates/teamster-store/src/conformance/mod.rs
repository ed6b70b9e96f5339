//! The suite that each implementation of [`Store`](crate::Store) passes.
//!
//! An implementation provides a [`Subject`]. Its tests run every [`scenarios`] entry on it, and compare it with the model by
//! random operations ([`stateful`]).
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "the suite runs in tests only, where a failure is a panic"
)]

mod deliveries;
mod intake;
mod leases;
mod log;
mod permissions;
mod records;
pub mod stateful;
mod subject;
mod turns;
mod upkeep;
mod world;

use std::future::Future;
use std::pin::Pin;

pub use subject::{Instance, Subject};
pub use world::World;

/// A test that each implementation passes.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// The promise that it tests.
    pub name: &'static str,
    run: fn(World) -> Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Scenario {
    /// Runs the scenario on an empty store. It panics if the store breaks the promise.
    pub async fn run(self, subject: &dyn Subject) {
        (self.run)(World::new(subject.create().await)).await;
    }
}

/// Lists the scenarios of a file. A function that is not listed is an unused one, which the compiler reports.
macro_rules! suite {
    ($($name:ident),* $(,)?) => {
        pub(super) fn all() -> Vec<super::Scenario> {
            vec![$(super::Scenario {
                name: stringify!($name),
                run: |mut world| Box::pin(async move { $name(&mut world).await }),
            }),*]
        }
    };
}
use suite;

/// Returns all scenarios.
pub fn scenarios() -> Vec<Scenario> {
    [intake::all(), leases::all(), turns::all(), log::all(), permissions::all(), deliveries::all(), upkeep::all()]
        .concat()
}
