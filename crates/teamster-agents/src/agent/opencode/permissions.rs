//! Permission modes and rules in OpenCode's configuration.
//!
//! Rules are an object whose order matters: the last matching rule decides. A run never uses `ask`. `opencode run` would end
//! the turn with exit code 0, and requests of subagents would get no answer. Instead the call is denied, the model is
//! informed, and the run continues. A session uses `ask`, also for its subagents.

use std::path::Path;

use super::config::{object, quote};
use super::error::unsupported;
use super::tools::permission_of;
use crate::agent::mcp::Names;
use teamster_types::request::{PermissionMode, RequestError, RunRequest};

/// Tools that change nothing and access nothing outside of the project.
const READING: &[&str] = &["read", "glob", "grep", "list", "lsp", "skill", "todowrite", "todoread"];

/// Files for which the agent itself would request permission to read (1.18.33).
const SECRETS: &[(&str, &str)] = &[("*.env", "deny"), ("*.env.*", "deny"), ("*.env.example", "allow")];

/// The tool with which 1.18.33 returns an answer that follows a schema.
pub(super) const STRUCTURED_OUTPUT: &str = "StructuredOutput";

type Rule = (String, Vec<(String, &'static str)>);

/// Where permission requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Approver {
    /// A run has no approver: calls that need approval are denied.
    None,
    /// The caller of a session.
    Caller,
}

/// Returns the rules as JSON text, in their order.
pub(super) fn rules(request: &RunRequest, names: &Names, approver: Approver) -> Result<String, RequestError> {
    let mode = request.permissions.mode;
    let can_ask = approver == Approver::Caller && mode != PermissionMode::ReadOnly;
    let default = if can_ask { "ask" } else { "deny" };
    let (mut rules, mut last) = (Rules::default(), Rules::default());
    if mode == PermissionMode::Full {
        rules.set("*", "*", "allow");
    } else {
        rules.set("*", "*", default);
        for tool in READING {
            rules.set(tool, "*", "allow");
        }
        for (pattern, action) in SECRETS {
            rules.set("read", pattern, if *action == "deny" { default } else { action });
        }
        if mode == PermissionMode::Edit {
            rules.set("edit", "*", "allow");
        }
        for dir in &request.add_dirs {
            rules.set("external_directory", &directory(dir, request.cwd.as_deref())?, "allow");
        }
    }
    // A question needs no permission. Without an approver the model does not get the tool.
    match (can_ask, mode) {
        (true, PermissionMode::Full) => {}
        (true, _) => rules.set("question", "*", "allow"),
        (false, PermissionMode::Full) => rules.set("question", "*", "deny"),
        (false, _) => {}
    }
    if request.schema.is_some() {
        // The tool that returns the answer.
        rules.set(STRUCTURED_OUTPUT, "*", "allow");
    }
    for rule in &request.permissions.allow {
        let translated = names.translated(rule);
        let (name, pattern) = parse_rule(rule, translated.as_deref(), "--allow-tool")?;
        rules.set(name, pattern, "allow");
    }
    for rule in &request.permissions.deny {
        let translated = names.translated(rule);
        let (name, pattern) = parse_rule(rule, translated.as_deref(), "--deny-tool")?;
        last.set(name, pattern, "deny");
    }
    if !request.permissions.deny.is_empty() && !rules.has("task") {
        // A subagent has its own rules, so it could do what this agent may not.
        last.set("task", "*", "deny");
    }
    if mode == PermissionMode::ReadOnly {
        last.set("edit", "*", "deny");
        // A rule for `*` does not include these tools. A rule that names them does.
        for tool in ["bash", "task"].into_iter().filter(|tool| !rules.has(tool)) {
            last.set(tool, "*", "deny");
        }
    }
    let mut rules = rules.then(last);
    filters(&mut rules, request, names);
    Ok(rules.json())
}

/// Removes tools of MCP servers. A server's other tools keep the action of the previous rules.
fn filters(rules: &mut Rules, request: &RunRequest, names: &Names) {
    for (name, server) in &request.mcp_servers {
        if let Some(enabled) = &server.enabled_tools {
            let enabled = enabled.iter().map(|tool| names.tool(name, tool));
            let enabled: Vec<_> = enabled.map(|tool| (rules.action(&tool), tool)).collect();
            rules.set_last(&names.all_tools(name), "deny");
            for (action, tool) in enabled {
                rules.set_last(&tool, action);
            }
        }
        for tool in &server.disabled_tools {
            rules.set_last(&names.tool(name, tool), "deny");
        }
    }
}

/// Rules by permission. Each key can occur once, so the last rule for a name is at the position of its key: first exact
/// names, then names with a wildcard, which may match any of them.
#[derive(Default)]
struct Rules(Vec<Rule>);

impl Rules {
    /// Sets the action for a pattern of a permission, after its other patterns.
    fn set(&mut self, name: &str, pattern: &str, action: &'static str) {
        let at = self.0.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            self.0.push((name.to_owned(), Vec::new()));
            self.0.len() - 1
        });
        if let Some((_, patterns)) = self.0.get_mut(at) {
            patterns.retain(|(known, _)| known != pattern);
            patterns.push((pattern.to_owned(), action));
        }
    }

    /// Returns the action for a tool that requests permission without a pattern.
    fn action(&self, tool: &str) -> &'static str {
        let fits = |(name, _): &&Rule| matches(name, tool);
        let rule = self.0.iter().rev().find(fits).and_then(|(_, patterns)| patterns.last());
        rule.map_or("deny", |(_, action)| *action)
    }

    /// Sets the action of a whole permission, after all other rules.
    fn set_last(&mut self, name: &str, action: &'static str) {
        self.0.retain(|(known, _)| known != name);
        self.set(name, "*", action);
    }

    /// Returns whether a rule has exactly this name.
    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    /// Adds rules that take precedence over all others. Those with a wildcard come last.
    fn then(mut self, last: Self) -> Self {
        let (any, exact): (Vec<Rule>, Vec<Rule>) = last.0.into_iter().partition(|(name, _)| name.contains(['*', '?']));
        for (name, patterns) in exact.into_iter().chain(any) {
            // A rule for the whole permission overrides those before it, and removes the tool from the model.
            let whole = patterns.iter().any(|(pattern, _)| pattern == "*");
            let earlier = self.0.iter().position(|(known, _)| *known == name).map(|at| self.0.remove(at));
            self.0.push((name.clone(), Vec::new()));
            let earlier = earlier.filter(|_| !whole).map(|(_, patterns)| patterns).unwrap_or_default();
            let patterns = if whole { vec![("*".to_owned(), "deny")] } else { patterns };
            for (pattern, action) in earlier.into_iter().chain(patterns) {
                self.set(&name, &pattern, action);
            }
        }
        self
    }

    /// Returns the rules as JSON text. Without a pattern the value is the action alone, because some permissions accept
    /// nothing else.
    fn json(self) -> String {
        object(self.0.into_iter().map(|(name, patterns)| {
            let value = match patterns.as_slice() {
                [(any, action)] if any == "*" => quote(action),
                _ => object(patterns.iter().map(|(pattern, action)| (quote(pattern), quote(action)))),
            };
            (quote(&name), value)
        }))
    }
}

/// Returns whether a name with `*` and `?` matches a tool.
fn matches(pattern: &str, tool: &str) -> bool {
    let (pattern, tool) = (pattern.as_bytes(), tool.as_bytes());
    let (mut at, mut from) = (0, 0);
    // The position of the last `*`, and the end of what it has matched so far.
    let mut wildcard: Option<(usize, usize)> = None;
    loop {
        match (pattern.get(at), tool.get(from)) {
            (None, None) => return true,
            (Some(b'*'), _) => {
                wildcard = Some((at, from));
                at += 1;
                continue;
            }
            (Some(wanted), Some(found)) if *wanted == b'?' || wanted == found => {
                (at, from) = (at + 1, from + 1);
                continue;
            }
            _ => {}
        }
        match wildcard {
            Some((position, taken)) if taken < tool.len() => {
                wildcard = Some((position, taken + 1));
                (at, from) = (position + 1, taken + 1);
            }
            _ => return false,
        }
    }
}

/// Parses a rule: `NAME`, `NAME(PATTERN)`, or the translated name of MCP tools.
fn parse_rule<'a>(
    rule: &'a str,
    translated: Option<&'a str>,
    option: &'static str,
) -> Result<(&'a str, &'a str), RequestError> {
    if let Some(tools) = translated {
        return Ok((tools, "*"));
    }
    let wrong = |why: String| unsupported(option, why);
    let rule = rule.trim();
    let (name, pattern) = match rule.split_once('(') {
        Some((name, rest)) => {
            let pattern = rest.strip_suffix(')').filter(|pattern| !pattern.is_empty());
            (name, pattern.ok_or_else(|| wrong(format!("{rule:?} is not a rule: write NAME or NAME(PATTERN)")))?)
        }
        None => (rule, "*"),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-*?".contains(c);
    // JavaScript moves a key of digits to the front of the object.
    if name.is_empty() || !name.chars().all(plain) || name.chars().all(|c| c.is_ascii_digit()) {
        return Err(wrong(format!("{name:?} is not the name of a tool")));
    }
    match permission_of(&name.to_lowercase()) {
        // No tool requests this permission, so the rule would have no effect.
        Some(permission) if permission != name => {
            Err(wrong(format!("the permission of {name:?} is called {permission:?}")))
        }
        _ if pattern.chars().all(|c| c.is_ascii_digit()) => Err(wrong(format!("{pattern:?} is not a pattern"))),
        _ => Ok((name, pattern)),
    }
}

/// Returns the pattern for everything in a directory.
fn directory(dir: &Path, cwd: Option<&Path>) -> Result<String, RequestError> {
    let whole = cwd.map_or_else(|| dir.to_owned(), |cwd| cwd.join(dir));
    let path = whole.display().to_string();
    let wrong = |why: &str| unsupported("add_dirs", why);
    if !whole.is_absolute() {
        return Err(wrong("its rules need absolute paths: make the directory, or the working directory, absolute"));
    }
    if path.contains(['*', '?']) {
        return Err(wrong("`*` and `?` in its rules would also match other directories"));
    }
    Ok(format!("{}/*", path.trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_servers() -> Names {
        Names::new(&super::super::mcp::STYLE, &std::collections::BTreeMap::new()).unwrap()
    }

    fn check(mode: PermissionMode, allow: &[&str], deny: &[&str]) -> Result<String, String> {
        let mut request = RunRequest::new("x");
        request.permissions.mode = mode;
        request.permissions.allow = allow.iter().map(|&rule| rule.to_owned()).collect();
        request.permissions.deny = deny.iter().map(|&rule| rule.to_owned()).collect();
        rules(&request, &no_servers(), Approver::None).map_err(|error| error.to_string())
    }

    fn end(text: Result<String, String>) -> String {
        let text = text.unwrap();
        text.split_once(r#""todoread":"allow""#).map_or(text.clone(), |(_, end)| end.to_owned())
    }

    #[test]
    fn rules_that_deny_by_name_are_last() {
        use PermissionMode::{Ask, Edit, Full, ReadOnly};
        assert_eq!(end(check(Ask, &["bash(git *)"], &[])), r#","bash":{"git *":"allow"}}"#);
        assert_eq!(end(check(ReadOnly, &["edit", "bash"], &[])), r#","bash":"allow","edit":"deny","task":"deny"}"#);
        let all = check(ReadOnly, &["*"], &[]);
        assert_eq!(end(all), r#","edit":"deny","bash":"deny","task":"deny"}"#);
        assert_eq!(end(check(Full, &[], &[])), r#"{"*":"allow","question":"deny"}"#);
        assert_eq!(
            end(check(Edit, &["bash"], &["b*", "bash(rm *)"])),
            r#","edit":"allow","bash":{"*":"allow","rm *":"deny"},"task":"deny","b*":"deny"}"#
        );
        assert_eq!(
            end(check(Full, &["task"], &["bash"])),
            r#"{"*":"allow","question":"deny","task":"allow","bash":"deny"}"#
        );
    }

    #[test]
    fn a_session_requests_permission_for_what_a_run_denies_except_in_read_only_mode() {
        let session = |mode| {
            let mut request = RunRequest::new("x");
            request.permissions.mode = mode;
            request.permissions.deny = vec!["webfetch".to_owned()];
            let text = rules(&request, &no_servers(), Approver::Caller).unwrap();
            serde_json::from_str::<serde_json::Value>(&text).unwrap()
        };
        for (mode, rest, edit, secret) in [
            (PermissionMode::ReadOnly, "deny", "deny", "deny"),
            (PermissionMode::Ask, "ask", "ask", "ask"),
            (PermissionMode::Edit, "ask", "allow", "ask"),
        ] {
            let rules = session(mode);
            let of = |name: &str| rules.get(name).unwrap_or(&rules["*"]).clone();
            assert_eq!((of("*"), of("bash"), of("edit")), (rest.into(), rest.into(), edit.into()), "{mode:?}");
            assert_eq!(rules["read"]["*.env"], secret, "{mode:?}");
            assert_eq!((of("webfetch"), of("task")), ("deny".into(), "deny".into()), "{mode:?}");
            assert_eq!(of("question") == "allow", mode != PermissionMode::ReadOnly, "{mode:?}");
        }
        assert_eq!(session(PermissionMode::Full).get("question"), None);
        let mut request = RunRequest::new("x");
        request.schema = Some(serde_json::json!({}));
        let text = rules(&request, &no_servers(), Approver::None).unwrap();
        assert!(text.ends_with(r#""StructuredOutput":"allow"}"#), "{text}");
    }

    #[test]
    fn a_rule_for_a_permission_that_no_tool_requests_is_rejected() {
        for rule in ["write", "Bash", "apply_patch", "bash(", "bash()", "a b", "12", "bash(12)", "{env:HOME}"] {
            assert!(check(PermissionMode::Full, &[], &[rule]).is_err(), "{rule}");
        }
        assert!(check(PermissionMode::Full, &[], &["calc_*", "my_own_tool", "external_directory(/etc/*)"]).is_ok());
    }

    #[test]
    fn an_added_directory_is_absolute_and_matches_no_other() {
        let with = |dir: &str, cwd: Option<&str>| {
            let mut request = RunRequest::new("x");
            request.add_dirs = vec![dir.into()];
            request.cwd = cwd.map(Into::into);
            rules(&request, &no_servers(), Approver::None)
        };
        assert!(with("/a/b/", None).unwrap().contains(r#""external_directory":{"/a/b/*":"allow"}"#));
        assert!(with("b", Some("/a")).unwrap().contains(r#""external_directory":{"/a/b/*":"allow"}"#));
        assert!(with("b", None).is_err());
        assert!(with("/a*", None).is_err());
    }
}
