//! What a request asks for is done or refused, and never ignored.
//!
//! An agent that does something about an option starts its CLI in another way, or tells it something else. One that does
//! neither, and does not refuse, ignores the option.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::json;
use teamster_protocol::agent::{Feature, Support};
use teamster_protocol::request::{McpServer, PermissionMode, Prompt, RunRequest};

use super::peer::{Seen, watch};
use super::{Broken, Suite};

/// An option: what must hold of it, how a request asks for it, and how one does that does not.
struct Asked {
    feature: Feature,
    promise: &'static str,
    /// Whether a session's protocol has to do something about it. What the agent asks in a session, the driver holds against
    /// the rules of the request by itself.
    in_sessions: bool,
    with: fn(&mut RunRequest),
}

const OPTIONS: [Asked; 5] = [
    Asked {
        feature: Feature::Schema,
        promise: "a schema is honoured or refused",
        in_sessions: true,
        with: |request| {
            request.schema = Some(json!({
                "type": "object", "properties": {"suite": {"type": "string"}}, "required": ["suite"],
                "additionalProperties": false,
            }));
        },
    },
    Asked {
        feature: Feature::DenyTools,
        promise: "a deny rule for one of the agent's tools is honoured or refused",
        in_sessions: false,
        with: |request| request.permissions.deny.push("Bash".to_owned()),
    },
    Asked {
        feature: Feature::DenyTools,
        promise: "a deny rule for an MCP server's tool is honoured or refused",
        in_sessions: false,
        with: |request| request.permissions.deny.push("mcp__base__erase".to_owned()),
    },
    Asked {
        feature: Feature::McpServers,
        promise: "an MCP server is honoured or refused",
        in_sessions: true,
        with: |request| {
            request.mcp_servers.insert("suite".to_owned(), McpServer::stdio("suite-mcp-server"));
        },
    },
    Asked {
        feature: Feature::ReadOnly,
        promise: "read-only is honoured or refused",
        in_sessions: true,
        with: |request| request.permissions.mode = PermissionMode::ReadOnly,
    },
];

impl Suite<'_> {
    /// Every option that the agent ignores.
    pub(super) fn options(&self) -> Vec<Broken> {
        let asked = OPTIONS.iter().filter(|asked| !(self.without_tools && asked.feature == Feature::ReadOnly));
        asked.filter_map(|asked| self.option(asked)).collect()
    }

    fn option(&self, asked: &Asked) -> Option<Broken> {
        if let Some(abilities) = self.agent.abilities()
            && !matches!(abilities.support(asked.feature), Support::Yes(_))
        {
            // It says that it does not.
            return None;
        }
        let mut without = self.request.clone();
        without.permissions.mode = PermissionMode::Full;
        if asked.promise.contains("MCP server's tool") {
            without.mcp_servers.insert("base".to_owned(), McpServer::stdio("base-mcp-server"));
        }
        let mut with = without.clone();
        (asked.with)(&mut with);
        let run = self.compared(&without, &with, |request| self.run_of(request));
        let session = self.compared(&without, &with, |request| self.session_of(request));
        let session = if asked.in_sessions { session } else { Compared::Other };
        let form = match (run, session) {
            (Compared::Same, _) => "a run",
            (_, Compared::Same) => "a session",
            _ => return None,
        };
        let case = format!(
            "{form} that asks for it starts the same CLI in the same way, and tells it the same, as one that does not"
        );
        Some(Broken { promise: asked.promise, case })
    }

    fn compared(
        &self,
        without: &RunRequest,
        with: &RunRequest,
        seen: impl Fn(&RunRequest) -> Option<Seen>,
    ) -> Compared {
        let seen = |request: &RunRequest| {
            let abilities = self.agent.abilities();
            let refused = abilities.is_some_and(|abilities| abilities.check(self.agent.name(), request).is_err());
            // A panic is another promise's case.
            if refused { None } else { catch_unwind(AssertUnwindSafe(|| seen(request))).ok().flatten() }
        };
        match seen(with) {
            Some(with) if seen(without).is_some_and(|without| without == with) => Compared::Same,
            _ => Compared::Other,
        }
    }

    fn run_of(&self, request: &RunRequest) -> Option<Seen> {
        Some(watch(self.agent.plan(request).ok()?, None, &self.greetings))
    }

    fn session_of(&self, request: &RunRequest) -> Option<Seen> {
        let mut frame = request.clone();
        frame.prompt.clear();
        let prompt = Prompt::from("Say hello");
        Some(watch(self.agent.plan_session(&frame).ok()??, Some(&prompt), &self.greetings))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Compared {
    /// Nothing is done about the option.
    Same,
    /// Something is done, or it is refused, or there is no such form.
    Other,
}
