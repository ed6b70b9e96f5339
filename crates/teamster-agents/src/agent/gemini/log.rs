//! Gemini CLI's debug log, which 0.61.0 writes to a file of any name: to standard error, that is. Nothing else tells which
//! MCP server failed, and why.

/// What switches it on.
pub(super) const VARIABLE: (&str, &str) = ("GEMINI_DEBUG_LOG_FILE", "/dev/stderr");

/// What a line says of a server that failed: its name, and why.
pub(super) fn failed_server(line: &str) -> Option<(&str, String)> {
    let entry = entry(line)?;
    let (_, rest) = entry.split_once("MCP server '").filter(|(before, _)| before.contains("rror"))?;
    let (server, rest) = rest.split_once('\'')?;
    let reason = rest.trim_start_matches([' ', ':']);
    // The error stands there twice: as a text, and as itself.
    let once = reason.match_indices(": ").find_map(|(at, _)| {
        let (before, after) = (reason.get(..at)?, reason.get(at + 2..)?);
        before.starts_with(after).then_some(after)
    });
    Some((server, once.unwrap_or(reason).to_owned()))
}

/// What the CLI says beside its log.
pub(super) fn without(stderr: &str) -> String {
    let mut inside = false;
    let lines = stderr.lines().filter(|line| {
        // An entry may have many lines: an error with its stack, an object.
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
    fn a_server_that_failed_is_told_with_its_reason() {
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
        assert_eq!(failed_server("Error during discovery for MCP server 'calc': said by a tool"), None);
    }

    #[test]
    fn what_is_beside_the_log_stays() {
        let stderr =
            "one\n[2026-11-22T07:58:15.692Z] [DEBUG] Loaded {\n  ids: [],\n\tmore\n}\ntwo\n\n  three\n[x] four\n";
        assert_eq!(without(stderr), "one\ntwo\n\n  three\n[x] four\n");
    }
}
