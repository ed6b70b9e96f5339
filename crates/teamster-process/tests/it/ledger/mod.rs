//! The ledger: live runs are not touched; crashed runs are killed and removed.

mod at_once;
mod entries;
mod live;
mod processes;
mod scene;
