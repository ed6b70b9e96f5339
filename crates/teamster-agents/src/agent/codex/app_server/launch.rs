//! How the app-server is started, and how its thread is configured.
//!
//! What decides whose configuration is read goes to the process, since it reads some before there is a thread; all the rest
//! goes to the thread.

use serde_json::{Map, Value};

use super::super::config::{self, Settings};
use super::super::mcp::{self, Asks, Told};
use super::super::{launch as exec, unsupported};
use super::opening::{Asker, Fence};
use crate::agent::mcp::Names;
use crate::launch::{Launch, Stdin};
use teamster_types::request::{RequestError, RunRequest};

pub(super) fn launch(
    request: &RunRequest,
    names: &Names,
    asker: Asker,
) -> Result<(Launch, Map<String, Value>), RequestError> {
    let program = request.cli_path.clone().unwrap_or_else(|| "codex".into());
    let mut launch = Launch::new(program);
    launch.cwd.clone_from(&request.cwd);
    launch.stdin = Stdin::Open;
    launch.arg("app-server");
    let mut process = Settings::default();
    exec::bounded(&mut process);
    exec::trust(&mut process, request)?;
    process.flags(&mut launch);
    let mut thread = Settings::default();
    if let Some(effort) = &request.effort {
        thread.set("model_reasoning_effort", config::string(effort));
    }
    Fence::of(request, asker).configure(request, &mut thread)?;
    let asks = match asker {
        Asker::Caller => Asks::ForLeave,
        Asker::Nobody => Asks::ForNothing,
    };
    mcp::servers(&mut launch, &mut thread, request, names, Told::ByProtocol, asks)?;
    for argument in &request.cli_args {
        launch.arg(argument.as_str());
    }
    for (name, value) in &request.env {
        launch.env(name.as_str(), value.as_str());
    }
    let config =
        thread.to_json().ok_or_else(|| unsupported("this request", "it holds what cannot be written as TOML"))?;
    Ok((launch, config))
}
