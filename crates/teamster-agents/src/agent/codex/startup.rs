//! Settings of a Codex process that both interfaces need before a thread exists.

use std::path::Path;

use super::config::{Settings, Table};
use super::error::unsupported;
use teamster_types::request::{ProjectTrust, RequestError, RunRequest};

/// Disables endless retries of a refused connection. This is a key and not `--disable`, because a version without the feature
/// accepts an unknown key.
pub(super) fn limit_connection_retries(settings: &mut Settings) {
    settings.set("features.unbounded_connection_retries", "false");
}

/// Marks an untrusted project, and disables its AGENTS.md and skills.
///
/// The `.codex` folder of a trusted directory can start MCP servers and redirect the key to another host. AGENTS.md and skills are
/// read in any directory.
pub(super) fn distrust_project(settings: &mut Settings, request: &RunRequest) -> Result<(), RequestError> {
    if request.project_trust == ProjectTrust::Trusted {
        return Ok(());
    }
    let cwd = request.cwd.as_deref().filter(|cwd| cwd.is_absolute());
    let cwd =
        cwd.ok_or_else(|| unsupported("project_trust=untrusted", "the working directory must be an absolute path"))?;
    // The user may have trusted any parent directory, and the configuration of each is a layer.
    let mut projects = Table::default();
    for dir in cwd.ancestors() {
        let dir = dir.to_str().ok_or_else(|| not_utf8(cwd))?;
        projects = projects.entry(dir, Table::default().entry("trust_level", "\"untrusted\""));
    }
    settings.set("projects", projects);
    settings.set("project_doc_max_bytes", 0);
    // The CLI offers skills of an untrusted directory like all others.
    settings.set("skills.include_instructions", "false");
    Ok(())
}

fn not_utf8(path: &Path) -> RequestError {
    RequestError::NotUtf8 { field: "cwd", value: path.display().to_string() }
}
