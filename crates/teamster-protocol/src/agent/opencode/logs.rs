//! What stands in OpenCode's log alone, which it prints to standard error: `level=WARN message="..." key=value`.

use crate::event::{Warning, WarningCode};

/// MCP servers that failed: the agent says so nowhere else (`mcp_nostart_exit1`), and the run goes on without their tools.
pub(super) fn failed_servers(stderr: &str) -> Vec<Warning> {
    let mut names = Vec::new();
    for line in stderr.lines().filter(|line| value(line, "message") == Some("server unavailable")) {
        let Some(name) = value(line, "key") else { continue };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let warning = |name: &str| {
        let text = format!("MCP server \"{name}\" did not start");
        Warning::new(WarningCode::McpServerFailed, text).with("server", name).with("status", "failed")
    };
    names.into_iter().map(warning).collect()
}

/// What the log says of the error that has this reference.
pub(super) fn error<'a>(stderr: &'a str, reference: &str) -> Option<&'a str> {
    let mut lines = stderr.lines().filter(|line| value(line, "level") == Some("ERROR"));
    let entry = lines.find(|line| value(line, "ref") == Some(reference))?;
    let cause = ["error", "cause", "stack"].into_iter().find_map(|field| value(entry, field))?;
    cause.split("\\n").next()
}

/// The value of a field of a line of the log, without its quotes.
pub(super) fn value<'a>(line: &'a str, field: &str) -> Option<&'a str> {
    let start = format!("{field}=");
    let at = line.match_indices(start.as_str()).map(|(at, _)| at);
    let at = at.into_iter().find(|at| *at == 0 || line.get(..*at).is_some_and(|before| before.ends_with(' ')))?;
    let rest = line.get(at + start.len()..)?;
    match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => rest.split_ascii_whitespace().next(),
    }
}
