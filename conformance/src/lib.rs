//! Test environments for real agent CLIs: each CLI runs in a HOME of its own, in a clean environment, against a model
//! provider that plays a scenario.
//!
//! - [`Agent`]: one of the four agents, and the agent's names for the parts of a scenario.
//! - [`TestEnv`]: the home, the project, the provider, and a runtime that drives the agent.
//! - [`TestRun`]: a running run. [`Recording`]: the events of a finished run, and the requests to the model.
//! - [`TestSession`]: an open session. Its turns are checked like runs.
//! - [`TestGateway`]: a gateway (`teamster serve`) that drives the agent, and the calls of its API.
//! - [`PagePerson`]: a person at the gateway's web page.
//! - [`PythonProgram`]: a Python program of a test, such as the official OpenAI client.
//! - [`RunProcesses`]: the processes of a run, found by a variable in their environment.
//!
//! Each run that ends is checked here: its stream follows the rules, in memory and as NDJSON, and no process outlives
//! it. The events are printed; test runners show them if the test fails.

mod agents;
mod gateway;
mod json_lines;
mod output;
mod page;
mod python;
mod recording;
mod run_processes;
mod test_env;

pub use agents::{AGENTS, Agent};
pub use gateway::{Events, TOKEN, TestGateway, teamster};
pub use output::{print, silence};
pub use page::{PagePerson, WITHOUT_BROWSER};
pub use python::{PythonProgram, WITHOUT_PYTHON};
pub use recording::Recording;
pub use run_processes::{Process, RunProcesses};
pub use test_env::TestEnv;
pub use test_env::run::{TestRun, request_id};
pub use test_env::session::TestSession;

use std::time::Duration;

/// The time limit of a wait for something that should happen at once, on a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// The deadline of each run.
pub const DEADLINE: Duration = Duration::from_secs(90);

/// Makes a test of each function for each agent: `FUNCTION::AGENT`. A function takes `&Agent`.
///
/// ```ignore
/// agent_tests! {
///     an_answer_is_the_same_stream: all,
///     a_tool_can_be_allowed_with_other_arguments: [claude],
/// }
/// ```
#[macro_export]
macro_rules! agent_tests {
    (@test $test:ident all) => {
        $crate::agent_tests!(@test $test [claude, codex, gemini, opencode]);
    };
    (@test $test:ident [$($agent:ident),+]) => {
        mod $test {
            $(
                #[tokio::test]
                async fn $agent() -> anyhow::Result<()> {
                    super::$test($crate::Agent::named(stringify!($agent))?).await
                }
            )+
        }
    };
    ($($test:ident: $agents:tt),+ $(,)?) => {
        $($crate::agent_tests!(@test $test $agents);)+
    };
}
