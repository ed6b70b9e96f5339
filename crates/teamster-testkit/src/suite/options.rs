//! Options of a request must be applied or rejected, and never ignored.
//!
//! An agent that applies an option starts its CLI differently, or writes something else to it. If
//! it does neither and does not reject the request, it ignores the option.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::json;
use teamster_agents::agent::{Feature, Support};
use teamster_types::request::{McpServer, PermissionMode, Prompt, RunRequest};

use super::cli_double::{Observation, observe};
use super::{BrokenPromise, Suite};

/// An option: the promise, and the request that uses it.
struct OptionCase {
    feature: Feature,
    promise: &'static str,
    /// Whether a session's protocol must apply it. The driver itself applies the rules of the
    /// request to permission requests in a session.
    in_sessions: bool,
    with: fn(&mut RunRequest),
}

const OPTIONS: [OptionCase; 5] = [
    OptionCase {
        feature: Feature::Schema,
        promise: "a schema is applied or rejected",
        in_sessions: true,
        with: |request| {
            request.schema = Some(json!({
                "type": "object", "properties": {"suite": {"type": "string"}}, "required": ["suite"],
                "additionalProperties": false,
            }));
        },
    },
    OptionCase {
        feature: Feature::DenyTools,
        promise: "a deny rule for one of the agent's tools is applied or rejected",
        in_sessions: false,
        with: |request| request.permissions.deny.push("Bash".to_owned()),
    },
    OptionCase {
        feature: Feature::DenyTools,
        promise: "a deny rule for an MCP server's tool is applied or rejected",
        in_sessions: false,
        with: |request| request.permissions.deny.push("mcp__base__erase".to_owned()),
    },
    OptionCase {
        feature: Feature::McpServers,
        promise: "an MCP server is applied or rejected",
        in_sessions: true,
        with: |request| {
            request.mcp_servers.insert("suite".to_owned(), McpServer::stdio("suite-mcp-server"));
        },
    },
    OptionCase {
        feature: Feature::ReadOnly,
        promise: "read-only is applied or rejected",
        in_sessions: true,
        with: |request| request.permissions.mode = PermissionMode::ReadOnly,
    },
];

impl Suite<'_> {
    /// Returns a broken promise for every option that the agent ignores.
    pub(super) fn options(&self) -> Vec<BrokenPromise> {
        let option_case =
            OPTIONS.iter().filter(|option_case| !(self.without_tools && option_case.feature == Feature::ReadOnly));
        option_case.filter_map(|option_case| self.option(option_case)).collect()
    }

    fn option(&self, option_case: &OptionCase) -> Option<BrokenPromise> {
        if let Some(capabilities) = self.agent.capabilities()
            && !matches!(capabilities.support(option_case.feature), Support::Yes(_))
        {
            // The agent declares that it does not support it.
            return None;
        }
        let mut without = self.request.clone();
        without.permissions.mode = PermissionMode::Full;
        if option_case.promise.contains("MCP server's tool") {
            without.mcp_servers.insert("base".to_owned(), McpServer::stdio("base-mcp-server"));
        }
        let mut with = without.clone();
        (option_case.with)(&mut with);
        let run = self.compare(&without, &with, |request| self.run_of(request));
        let session = self.compare(&without, &with, |request| self.session_of(request));
        let session = if option_case.in_sessions { session } else { Comparison::Different };
        let interface = match (run, session) {
            (Comparison::Same, _) => "a run",
            (_, Comparison::Same) => "a session",
            _ => return None,
        };
        let case =
            format!("{interface} with it starts the same CLI in the same way, with the same input, as one without it");
        Some(BrokenPromise { promise: option_case.promise, case })
    }

    fn compare(
        &self,
        without: &RunRequest,
        with: &RunRequest,
        observe_plan: impl Fn(&RunRequest) -> Option<Observation>,
    ) -> Comparison {
        let observation = |request: &RunRequest| {
            let capabilities = self.agent.capabilities();
            let rejected =
                capabilities.is_some_and(|capabilities| capabilities.check(self.agent.name(), request).is_err());
            // A panic breaks another promise.
            if rejected { None } else { catch_unwind(AssertUnwindSafe(|| observe_plan(request))).ok().flatten() }
        };
        match observation(with) {
            Some(with) if observation(without).is_some_and(|without| without == with) => Comparison::Same,
            _ => Comparison::Different,
        }
    }

    fn run_of(&self, request: &RunRequest) -> Option<Observation> {
        Some(observe(self.agent.plan(request).ok()?, None, &self.greetings))
    }

    fn session_of(&self, request: &RunRequest) -> Option<Observation> {
        let mut frame = request.clone();
        frame.prompt.clear();
        let prompt = Prompt::from("Say hello");
        Some(observe(self.agent.plan_session(&frame).ok()??, Some(&prompt), &self.greetings))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    /// The option has no effect.
    Same,
    /// The option has an effect, or is rejected, or the agent has no such interface.
    Different,
}
