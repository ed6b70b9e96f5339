//! This crate contains only benchmarks, in `benches/`. `cargo xtask bench` runs them.
