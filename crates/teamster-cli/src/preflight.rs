//! Notices before an agent starts: parts of the request that cannot have an effect here, with the reason.

use std::path::Path;

use teamster::request::{McpServer, McpTransport, RunRequest};
use teamster_process::find_program;

use crate::printable::{Printable, printable};
use crate::render::write_notice;
use crate::vendor;

/// Writes the notices on a request.
pub(crate) fn report(agent: &str, request: &RunRequest) {
    let path = request.env.get("PATH").map(Into::into).or_else(|| std::env::var_os("PATH"));
    let current = std::env::current_dir().unwrap_or_default();
    let directory = request.cwd.clone().unwrap_or(current);
    let is_missing = |command: &str, cwd: &Path| find_program(command.as_ref(), path.as_deref(), cwd).is_err();
    for (name, server) in &request.mcp_servers {
        missing_program(name, server, &directory, is_missing).iter().for_each(write_notice);
    }
    request
        .permissions
        .allow
        .iter()
        .filter_map(|rule| other_name(agent, rule))
        .for_each(|notice| write_notice(&notice));
}

/// Returns why an MCP server will not start, if its program does not exist.
fn missing_program(
    name: &str,
    server: &McpServer,
    directory: &Path,
    is_missing: impl Fn(&str, &Path) -> bool,
) -> Option<Printable> {
    let McpTransport::Stdio { command, cwd, .. } = &server.transport else { return None };
    let directory = cwd.as_ref().map_or_else(|| directory.to_owned(), |cwd| directory.join(cwd));
    let place = if command.contains('/') { "" } else { " in PATH" };
    is_missing(command, &directory).then(|| {
        let (name, command) = (Printable::exact(name), Printable::exact(command));
        printable!("the MCP server {} cannot start: there is no program {}{}", name, command, place)
    })
}

/// Returns a notice on an allow rule that names no tool of the agent, but one that is called alike.
fn other_name(agent: &str, rule: &str) -> Option<Printable> {
    let name = rule.split('(').next().unwrap_or(rule).trim();
    let tools = vendor::tools(agent);
    if name.starts_with("mcp__") || name.contains('*') || tools.contains(&name) {
        return None;
    }
    let same = tools.iter().find(|tool| tool.eq_ignore_ascii_case(name));
    // The tool of other agents that runs commands.
    let is_shell = vendor::SHELL_TOOLS.iter().any(|tool| tool.eq_ignore_ascii_case(name));
    let meant = same.or_else(|| tools.iter().find(|tool| is_shell && vendor::SHELL_TOOLS.contains(tool)))?;
    let (rule, agent) = (Printable::exact(rule), Printable::exact(agent));
    Some(printable!("the rule {} allows nothing: the tool of {} is named {}", rule, agent, *meant))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_with_the_name_of_another_agents_tool_is_noted() {
        let notice = |agent: &str, rule: &str| other_name(agent, rule).map(|notice| notice.as_str().to_owned());
        for (agent, rule, tool) in [
            ("claude", "bash", Some("Bash")),
            ("claude", "BASH(git diff:*)", Some("Bash")),
            ("claude", "run_shell_command", Some("Bash")),
            ("gemini", "Bash(git diff)", Some("run_shell_command")),
            ("opencode", "Bash", Some("bash")),
            ("claude", "Bash", None),
            ("claude", "mcp__calc__add", None),
            ("claude", "NewTool", None),
            ("claude", "B*", None),
            ("goose", "bash", None),
        ] {
            let expected =
                tool.map(|tool| format!("the rule {rule} allows nothing: the tool of {agent} is named {tool}"));
            assert_eq!(notice(agent, rule), expected);
        }
    }

    #[test]
    fn the_reason_why_a_server_cannot_start_is_its_missing_program() {
        let server = |command: &str| McpServer::stdio(command);
        let notice = |command: &str, is_missing: bool| {
            missing_program("calc", &server(command), Path::new("/p"), |_, _| is_missing)
                .map(|notice| notice.as_str().to_owned())
        };
        let expected = "the MCP server calc cannot start: there is no program nope in PATH";
        assert_eq!(notice("nope", true).as_deref(), Some(expected));
        let expected = "the MCP server calc cannot start: there is no program ./nope";
        assert_eq!(notice("./nope", true).as_deref(), Some(expected));
        assert_eq!(notice("sh", false), None);
    }
}
