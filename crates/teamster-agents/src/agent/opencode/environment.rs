//! The environment of OpenCode 1.18.33, which both interfaces share.
//!
//! Options without a flag are in `OPENCODE_CONFIG_CONTENT`. It overrides every configuration file of the user and the project,
//! and is merged with the user's value of this variable. Texts are in private files, never in arguments.

use super::config::{object, path_of, quote, secret};
use super::error::NAME;
use super::permissions::Approver;
use super::{mcp, permissions};
use crate::agent::mcp::Names;
use crate::launch::{ForbiddenFiles, Launch};
use teamster_types::request::{McpDelivery, ProjectTrust, RequestError, RunRequest};

/// The name of the agent configuration of a run. It is not the name of a user's agent: the user's rules for `build`, for
/// example, would come after ours.
pub(super) const AGENT: &str = "teamster";

/// The files that an untrusted project must not have.
///
/// 1.18.33 reads its configuration twice. The second reader ("location services") informs the model of other directories, and
/// no setting disables it. Before a process's first model call, it reads these files in the working directory and above. It
/// sends what they refer to, and loads the plugins that both readers found.
const FORBIDDEN_FILES: ForbiddenFiles = ForbiddenFiles {
    names: &[".opencode", "opencode.json", "opencode.jsonc"],
    why: "opencode 1.18.33 reads it and loads its plugins, and no setting prevents that",
};

/// Returns a launch of the program in the request's directory. The driver also sets `PWD`, from which the CLI takes it.
pub(super) fn program(request: &RunRequest) -> Launch {
    let mut launch = Launch::new(request.cli_path.clone().unwrap_or_else(|| NAME.into()));
    launch.cwd.clone_from(&request.cwd);
    launch
}

/// Adds the variables, the configuration and the rules of a request.
pub(super) fn add(
    launch: &mut Launch,
    request: &RunRequest,
    names: &Names,
    approver: Approver,
) -> Result<(), RequestError> {
    for (name, value) in &request.env {
        launch.env(name.as_str(), value.as_str());
    }
    let rules = permissions::rules(request, names, approver)?;
    let config = config(launch, request, names, &rules)?;
    launch.json_env.insert("OPENCODE_CONFIG_CONTENT".to_owned(), config);
    // For subagents, which do not have the rules of our agent configuration.
    launch.env("OPENCODE_PERMISSION", rules);
    // A run must not replace the CLI.
    launch.env("OPENCODE_DISABLE_AUTOUPDATE", "1");
    if request.project_trust == ProjectTrust::Untrusted {
        launch.env("OPENCODE_DISABLE_PROJECT_CONFIG", "1");
        launch.env("OPENCODE_DISABLE_CLAUDE_CODE", "1");
        launch.env("OPENCODE_DISABLE_EXTERNAL_SKILLS", "1");
        // Otherwise plugins in `.opencode` run.
        launch.env("OPENCODE_PURE", "1");
        launch.forbidden_files = Some(FORBIDDEN_FILES);
    }
    Ok(())
}

/// Returns the configuration as JSON text.
fn config(launch: &mut Launch, request: &RunRequest, names: &Names, rules: &str) -> Result<String, RequestError> {
    let mut agent = vec![
        (quote("mode"), quote("primary")),
        (quote("description"), quote("The options of this run")),
        (quote("permission"), rules.to_owned()),
    ];
    if let Some(text) = &request.system_prompt {
        agent.push((quote("prompt"), secret(launch, text)));
    }
    let mut fields = vec![(quote("agent"), object([(quote(AGENT), object(agent))]))];
    if let Some(text) = &request.append_system_prompt {
        fields.push((quote("instructions"), format!("[{}]", path_of(launch, text))));
    }
    if request.mcp_delivery == McpDelivery::Auto {
        fields.extend(mcp::servers(launch, request, names)?.map(|servers| (quote("mcp"), servers)));
    } else if !request.mcp_servers.is_empty() {
        mcp::merge(launch, request, names)?;
    }
    Ok(object(fields))
}
