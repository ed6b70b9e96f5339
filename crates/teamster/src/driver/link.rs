//! The channels to an agent: its standard input and, where its protocol uses one, its server.

use bytes::Bytes;
use teamster_agents::protocol::Action;
use teamster_process::StdinWriter;

use crate::agent_server::Server;
use crate::recording::Recorder;

/// Sends to one agent process, and records what both sides send.
#[derive(Debug)]
pub(crate) struct Link {
    pub(super) stdin: StdinWriter,
    /// Present if the agent's protocol uses a server of the CLI.
    pub(super) server: Option<Server>,
    pub(super) recorder: Recorder,
}

impl Link {
    /// Carries out an action that sends to the agent. Ignores other actions.
    pub(super) fn pass_on(&mut self, action: Action) {
        match (action, &mut self.server) {
            (Action::Write(bytes), _) => {
                self.recorder.input(&bytes);
                self.stdin.push(Bytes::from(bytes));
            }
            (Action::CloseStdin, _) => {
                self.recorder.input_end();
                self.stdin.close_when_written();
            }
            (Action::Connect { address }, Some(server)) => server.connect(&address),
            (Action::Call(call), Some(server)) => {
                self.recorder.call(&call);
                server.call(call);
            }
            (Action::Subscribe { path }, Some(server)) => server.subscribe(&path),
            _ => {}
        }
    }
}
