//! What only OpenCode's log reports. The log is standard error: `level=WARN message="..." key=value`.

/// Returns the name, status and reason of an MCP server that failed, if a line reports one. Only the log reports it
/// (`mcp_nostart_exit1`), and the run continues without the server's tools.
pub(super) fn failed_server(line: &str) -> Option<(&str, &str, &'static str)> {
    if value(line, "message")? != "server unavailable" {
        return None;
    }
    let status = value(line, "status").unwrap_or("failed");
    Some((value(line, "key")?, status, reason(status)))
}

/// Returns why the model cannot use a server, by the agent's status for it.
pub(super) fn reason(status: &str) -> &'static str {
    match status {
        "needs_auth" => "needs a login",
        "needs_client_registration" => "needs a login, for which the agent must be registered with it",
        _ => "did not start",
    }
}

/// Returns the first line of the cause that the log reports for the error with this reference.
pub(super) fn error(stderr: &str, reference: &str) -> Option<String> {
    let mut lines = stderr.lines().filter(|line| value(line, "level") == Some("ERROR"));
    let entry = lines.find(|line| value(line, "ref") == Some(reference))?;
    let cause = ["error", "cause", "stack"].into_iter().find_map(|field| value(entry, field))?;
    Some(cause.split("\\n").next()?.replace("\\\"", "\""))
}

/// Returns the value of a field in a log line, without its quotes. Escape sequences are not decoded.
pub(super) fn value<'a>(line: &'a str, field: &str) -> Option<&'a str> {
    let start = format!("{field}=");
    let at = line.match_indices(start.as_str()).map(|(at, _)| at);
    let at = at.into_iter().find(|at| *at == 0 || line.get(..*at).is_some_and(|before| before.ends_with(' ')))?;
    let rest = line.get(at + start.len()..)?;
    match rest.strip_prefix('"') {
        Some(quoted) => {
            let is_end = |at: usize| {
                let before = quoted.get(..at).unwrap_or_default();
                (before.len() - before.trim_end_matches('\\').len()) % 2 == 0
            };
            let end = quoted.match_indices('"').map(|(at, _)| at).find(|at| is_end(*at)).unwrap_or(quoted.len());
            quoted.get(..end)
        }
        None => rest.split_ascii_whitespace().next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_message_is_not_cut_at_an_escaped_quote() {
        let line = r#"level=ERROR message=failed error="Invalid \"sessionID\": not \"x\\\nat y" ref=err_1"#;
        let stderr = line.replace(r"\\\n", r"\n");
        assert_eq!(error(&stderr, "err_1").as_deref(), Some(r#"Invalid "sessionID": not "x"#));
        assert_eq!(value(r#"a="x\\" b="y""#, "b"), Some("y"));
        assert_eq!(value(r#"a="unfinished"#, "a"), Some("unfinished"));
    }
}
