//! The debug log of Gemini CLI 0.61.0. It is written to standard error, because the log file may have any name. Only the log reports
//! which MCP server failed, and why.

/// The variable that enables the log.
pub(super) const VARIABLE: (&str, &str) = ("GEMINI_DEBUG_LOG_FILE", "/dev/stderr");

/// Returns the server and the reason, if a line reports that a server failed.
pub(super) fn failed_server(line: &str) -> Option<(&str, String)> {
    let entry = entry(line)?;
    let (_, rest) = entry.split_once("MCP server '").filter(|(before, _)| before.contains("rror"))?;
    let (server, rest) = rest.split_once('\'')?;
    let reason = rest.trim_start_matches([' ', ':']);
    // The line contains the error twice.
    let once = reason.match_indices(": ").find_map(|(at, _)| {
        let (before, after) = (reason.get(..at)?, reason.get(at + 2..)?);
        before.starts_with(after).then_some(after)
    });
    Some((server, once.unwrap_or(reason).to_owned()))
}

/// Returns standard error without the log.
pub(super) fn without(stderr: &str) -> String {
    let mut inside = false;
    let lines = stderr.lines().filter(|line| {
        // An entry may have several lines, for example an error with its stack.
        inside = entry(line).is_some() || (inside && line.starts_with([' ', '\t', '}', ']']));
        !inside
    });
    lines.fold(String::new(), |text, line| text + line + "\n")
}

/// `[2026-11-22T07:58:16.032Z] [LOG] ...`
fn entry(line: &str) -> Option<&str> {
    let (time, rest) = line.strip_prefix('[')?.split_once("Z] [")?;
    let (level, text) = rest.split_once("] ")?;
    let is_time = time.len() == "2026-11-22T07:58:16.032".len() && time.starts_with(|c: char| c.is_ascii_digit());
    (is_time && ["LOG", "WARN", "ERROR", "DEBUG"].contains(&level)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_server_is_returned_with_its_reason() {
        for (text, reason) in [
            ("spawn /none ENOENT Error: spawn /none ENOENT", "spawn /none ENOENT"),
            ("MCP error -1: Closed McpError: MCP error -1: Closed", "MCP error -1: Closed"),
            ("Timed out", "Timed out"),
        ] {
            let line = format!(
                "[2026-11-22T07:58:16.032Z] [LOG] [MCP error] Error during discovery for MCP server 'calc': {text}"
            );
            assert_eq!(failed_server(&line), Some(("calc", reason.to_owned())));
        }
        assert_eq!(failed_server("Error during discovery for MCP server 'calc': printed by a tool"), None);
    }

    #[test]
    fn output_that_is_not_part_of_the_log_is_kept() {
        let stderr =
            "one\n[2026-11-22T07:58:15.692Z] [DEBUG] Loaded {\n  ids: [],\n\tmore\n}\ntwo\n\n  three\n[x] four\n";
        assert_eq!(without(stderr), "one\ntwo\n\n  three\n[x] four\n");
    }
}
