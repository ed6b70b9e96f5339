//! What the benchmarks share. `cargo xtask bench` runs those in `benches/`; `cargo xtask bench compare` runs the programs in
//! `examples/` beside the peers in `peers/`.

pub mod forms;
pub mod report;
pub mod scenario;
pub mod stamps;
pub mod usage;
