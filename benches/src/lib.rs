//! Nothing is here: the benchmarks stand in `benches/`, and `cargo xtask bench` runs them.
