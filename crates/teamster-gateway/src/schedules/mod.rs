//! When schedules fire.
