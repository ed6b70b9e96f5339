//! The channels to an agent: its standard input and, if its protocol uses one, its server; and the timer of its protocol.

use bytes::Bytes;
use teamster_agents::protocol::ServerAction;
use teamster_process::StdinWriter;

use super::timer::ProtocolTimer;
use crate::agent_server::Server;
use crate::recording::Recorder;

/// Sends to one agent process, and records what both sides send.
#[derive(Debug)]
pub(in crate::driver) struct Link {
    pub(in crate::driver) stdin: StdinWriter,
    /// The CLI's server; `None` if the protocol uses none.
    pub(in crate::driver) server: Option<Server>,
    pub(in crate::driver) recorder: Recorder,
    pub(in crate::driver) timer: ProtocolTimer,
}

impl Link {
    pub(in crate::driver) fn write(&mut self, bytes: Vec<u8>) {
        self.recorder.input(&bytes);
        self.stdin.push(Bytes::from(bytes));
    }

    pub(in crate::driver) fn close_stdin(&mut self) {
        self.recorder.input_end();
        self.stdin.close_when_written();
    }

    /// Carries out an action on the CLI's server. A protocol without a server has no such actions.
    pub(in crate::driver) fn server_action(&mut self, action: ServerAction) {
        let Some(server) = &mut self.server else {
            tracing::warn!("the protocol uses a server that its launch does not declare");
            return;
        };
        match action {
            ServerAction::Connect { address } => server.connect(&address),
            ServerAction::Call(call) => {
                self.recorder.call(&call);
                server.call(call);
            }
            ServerAction::Subscribe { path } => server.subscribe(&path),
        }
    }
}
