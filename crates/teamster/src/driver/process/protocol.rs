//! The protocol of a process, with its panics caught.

use std::panic::{AssertUnwindSafe, catch_unwind};

use teamster_agents::protocol::{Action, Input, Protocol};

use crate::driver::log;
use crate::setup::path_resolver::DiskPathResolver;

/// The protocol of a process. After a panic it ignores every input: a bug in one agent must not crash the host.
pub(in crate::driver) struct GuardedProtocol {
    protocol: Box<dyn Protocol>,
    has_panicked: bool,
    /// Whether the agent has written anything in this turn.
    has_output: bool,
}

impl GuardedProtocol {
    pub(super) fn new(mut protocol: Box<dyn Protocol>) -> Self {
        protocol.set_path_resolver(Box::new(DiskPathResolver));
        Self { protocol, has_panicked: false, has_output: false }
    }

    /// Passes an input to the protocol, and appends its actions.
    pub(in crate::driver) fn handle(&mut self, input: Input<'_>, actions: &mut Vec<Action>) {
        if self.has_panicked {
            return;
        }
        if !self.has_output && matches!(input, Input::Line(_) | Input::Server(_)) {
            self.has_output = true;
            log::step("first output read");
            tracing::debug!("the agent has written its first output");
        }
        let protocol = &mut self.protocol;
        if catch_unwind(AssertUnwindSafe(|| protocol.handle(input, actions))).is_err() {
            self.has_panicked = true;
        }
    }

    /// Replaces stderr with the part of it that is not meant for the protocol alone.
    pub(super) fn hide_protocol_output(&mut self, stderr: &mut String) {
        if self.has_panicked {
            return;
        }
        match catch_unwind(AssertUnwindSafe(|| self.protocol.visible_stderr(stderr))) {
            Ok(Some(visible)) => *stderr = visible,
            Ok(None) => {}
            Err(_) => self.has_panicked = true,
        }
    }

    /// Starts a turn: from now on, [`has_output`](Self::has_output) counts only output of this turn.
    pub(in crate::driver) fn start_turn(&mut self) {
        self.has_output = false;
    }

    pub(in crate::driver) fn has_panicked(&self) -> bool {
        self.has_panicked
    }

    /// Whether the agent has written anything in this turn.
    pub(in crate::driver) fn has_output(&self) -> bool {
        self.has_output
    }

    /// Whether the agent, whose process has exited, may have worked on the last prompt.
    pub(in crate::driver) fn may_have_consumed_prompt(&self) -> bool {
        self.protocol.may_have_consumed_prompt(self.has_output)
    }

    pub(in crate::driver) fn supports_steering(&self) -> bool {
        self.protocol.supports_steering()
    }

    pub(in crate::driver) fn is_resumable(&self) -> bool {
        self.protocol.is_resumable()
    }
}
