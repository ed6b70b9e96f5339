//! Tests of hooks.
