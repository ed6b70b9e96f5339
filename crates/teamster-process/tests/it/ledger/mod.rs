//! The ledger: live runs are left alone, and what crashes left is ended and removed, and nothing else.

mod at_once;
mod entries;
mod live;
mod processes;
mod scene;
