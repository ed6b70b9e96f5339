//! Tests of due schedules.
