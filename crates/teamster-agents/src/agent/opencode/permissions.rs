//! Permission modes and rules in OpenCode's words.
//!
//! Rules are an object whose order counts: the last one that matches decides. In a run nothing is ever `ask`: `opencode run`
//! answers that by ending the turn with exit code 0 (trap 4), and for subagents nobody answers at all. What would be asked
//! for is denied, the model is told so, and the run goes on. In a session it is asked for, subagents' calls too.

use std::path::Path;

use super::NAME;
use super::config::{object, quote};
use super::tools::permission_of;
use crate::agent::mcp::Names;
use teamster_types::request::{PermissionMode, RequestError, RunRequest};

/// Tools that change nothing and reach nothing outside of the project.
const READING: &[&str] = &["read", "glob", "grep", "list", "lsp", "skill", "todowrite", "todoread"];

/// Files that the agent itself would ask before it reads them (1.18.33).
const SECRETS: &[(&str, &str)] = &[("*.env", "deny"), ("*.env.*", "deny"), ("*.env.example", "allow")];

/// The tool by which 1.18.33 gets an answer that follows a schema.
pub(super) const STRUCTURED: &str = "StructuredOutput";

type Rule = (String, Vec<(String, &'static str)>);

/// Who can be asked for leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asking {
    /// In a run: what would be asked for is denied.
    Nobody,
    /// In a session: its caller.
    Caller,
}

/// The rules as JSON text, in their order.
pub(super) fn rules(request: &RunRequest, names: &Names, asking: Asking) -> Result<String, RequestError> {
    let mode = request.permissions.mode;
    let asks = asking == Asking::Caller && mode != PermissionMode::ReadOnly;
    let else_ = if asks { "ask" } else { "deny" };
    let (mut rules, mut last) = (Rules::default(), Rules::default());
    if mode == PermissionMode::Full {
        rules.set("*", "*", "allow");
    } else {
        rules.set("*", "*", else_);
        for tool in READING {
            rules.set(tool, "*", "allow");
        }
        for (pattern, action) in SECRETS {
            rules.set("read", pattern, if *action == "deny" { else_ } else { action });
        }
        if mode == PermissionMode::Edit {
            rules.set("edit", "*", "allow");
        }
        for dir in &request.add_dirs {
            rules.set("external_directory", &directory(dir, request.cwd.as_deref())?, "allow");
        }
    }
    // A question is no deed; where nobody can answer it, the model does not get the tool.
    match (asks, mode) {
        (true, PermissionMode::Full) => {}
        (true, _) => rules.set("question", "*", "allow"),
        (false, PermissionMode::Full) => rules.set("question", "*", "deny"),
        (false, _) => {}
    }
    if request.schema.is_some() {
        // The tool by which the answer comes: no deed either.
        rules.set(STRUCTURED, "*", "allow");
    }
    for rule in &request.permissions.allow {
        let translated = names.translated(rule);
        let (name, pattern) = read(rule, translated.as_deref(), "--allow-tool")?;
        rules.set(name, pattern, "allow");
    }
    for rule in &request.permissions.deny {
        let translated = names.translated(rule);
        let (name, pattern) = read(rule, translated.as_deref(), "--deny-tool")?;
        last.set(name, pattern, "deny");
    }
    if !request.permissions.deny.is_empty() && !rules.has("task") {
        // A subagent has rules of its own: it would do what this one may not.
        last.set("task", "*", "deny");
    }
    if mode == PermissionMode::ReadOnly {
        last.set("edit", "*", "deny");
        // Who allows `*` does not mean these; who means them names them.
        for tool in ["bash", "task"].into_iter().filter(|tool| !rules.has(tool)) {
            last.set(tool, "*", "deny");
        }
    }
    let mut rules = rules.then(last);
    filters(&mut rules, request, names);
    Ok(rules.json())
}

/// Takes tools of MCP servers away. What is left of a server may be used as far as the rules before say so.
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

/// Rules by permission. A key may stand once only, so what is said last of a name is said where the name stands last:
/// plain names first, then those with a wildcard, which may mean any of them.
#[derive(Default)]
struct Rules(Vec<Rule>);

impl Rules {
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

    /// What they say of a tool that asks without a pattern.
    fn action(&self, tool: &str) -> &'static str {
        let fits = |(name, _): &&Rule| matches(name, tool);
        let rule = self.0.iter().rev().find(fits).and_then(|(_, patterns)| patterns.last());
        rule.map_or("deny", |(_, action)| *action)
    }

    /// Says it of the whole permission, after everything else.
    fn set_last(&mut self, name: &str, action: &'static str) {
        self.0.retain(|(known, _)| known != name);
        self.set(name, "*", action);
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    fn then(mut self, last: Self) -> Self {
        let (any, exact): (Vec<Rule>, Vec<Rule>) = last.0.into_iter().partition(|(name, _)| name.contains(['*', '?']));
        for (name, patterns) in exact.into_iter().chain(any) {
            // A rule for all of it makes those before it idle, and takes the tool away from the model.
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

    /// An action alone where there is no pattern: some permissions take nothing else.
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

/// Whether a name with `*` and `?` in it means this tool.
fn matches(pattern: &str, tool: &str) -> bool {
    let (pattern, tool) = (pattern.as_bytes(), tool.as_bytes());
    let (mut at, mut from) = (0, 0);
    // Where the last `*` stands, and what it has taken so far.
    let mut star: Option<(usize, usize)> = None;
    loop {
        match (pattern.get(at), tool.get(from)) {
            (None, None) => return true,
            (Some(b'*'), _) => {
                star = Some((at, from));
                at += 1;
                continue;
            }
            (Some(wanted), Some(found)) if *wanted == b'?' || wanted == found => {
                (at, from) = (at + 1, from + 1);
                continue;
            }
            _ => {}
        }
        match star {
            Some((place, taken)) if taken < tool.len() => {
                star = Some((place, taken + 1));
                (at, from) = (place + 1, taken + 1);
            }
            _ => return false,
        }
    }
}

/// `NAME` or `NAME(PATTERN)`, or tools of an MCP server, translated.
fn read<'a>(
    rule: &'a str,
    translated: Option<&'a str>,
    option: &'static str,
) -> Result<(&'a str, &'a str), RequestError> {
    if let Some(tools) = translated {
        return Ok((tools, "*"));
    }
    let wrong = |why: String| RequestError::Unsupported { agent: NAME.to_owned(), option, why };
    let rule = rule.trim();
    let (name, pattern) = match rule.split_once('(') {
        Some((name, rest)) => {
            let pattern = rest.strip_suffix(')').filter(|pattern| !pattern.is_empty());
            (name, pattern.ok_or_else(|| wrong(format!("{rule:?} is no rule: write NAME or NAME(PATTERN)")))?)
        }
        None => (rule, "*"),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-*?".contains(c);
    // A name of digits would move to the front of the object: JavaScript puts such keys first.
    if name.is_empty() || !name.chars().all(plain) || name.chars().all(|c| c.is_ascii_digit()) {
        return Err(wrong(format!("{name:?} can name no tool")));
    }
    match permission_of(&name.to_lowercase()) {
        // A rule for a name that nothing asks for would be a rule that nobody keeps.
        Some(permission) if permission != name => {
            Err(wrong(format!("the permission of {name:?} is called {permission:?}")))
        }
        _ if pattern.chars().all(|c| c.is_ascii_digit()) => Err(wrong(format!("{pattern:?} is no pattern"))),
        _ => Ok((name, pattern)),
    }
}

/// Everything in a directory.
fn directory(dir: &Path, cwd: Option<&Path>) -> Result<String, RequestError> {
    let whole = cwd.map_or_else(|| dir.to_owned(), |cwd| cwd.join(dir));
    let path = whole.display().to_string();
    let wrong =
        |why: &str| RequestError::Unsupported { agent: NAME.to_owned(), option: "--add-dir", why: why.to_owned() };
    if !whole.is_absolute() {
        return Err(wrong("its rules need whole paths: name the directory, or the working directory, from the root"));
    }
    if path.contains(['*', '?']) {
        return Err(wrong("in its rules `*` and `?` mean other directories too"));
    }
    Ok(format!("{}/*", path.trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nobody() -> Names {
        Names::new(&super::super::mcp::STYLE, &std::collections::BTreeMap::new()).unwrap()
    }

    fn check(mode: PermissionMode, allow: &[&str], deny: &[&str]) -> Result<String, String> {
        let mut request = RunRequest::new("x");
        request.permissions.mode = mode;
        request.permissions.allow = allow.iter().map(|&rule| rule.to_owned()).collect();
        request.permissions.deny = deny.iter().map(|&rule| rule.to_owned()).collect();
        rules(&request, &nobody(), Asking::Nobody).map_err(|error| error.to_string())
    }

    fn end(text: Result<String, String>) -> String {
        let text = text.unwrap();
        text.split_once(r#""todoread":"allow""#).map_or(text.clone(), |(_, end)| end.to_owned())
    }

    #[test]
    fn what_is_denied_by_name_comes_last() {
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
    fn in_a_session_what_a_run_denies_is_asked_for_and_reading_only_denies_it_still() {
        let session = |mode| {
            let mut request = RunRequest::new("x");
            request.permissions.mode = mode;
            request.permissions.deny = vec!["webfetch".to_owned()];
            let text = rules(&request, &nobody(), Asking::Caller).unwrap();
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
        let text = rules(&request, &nobody(), Asking::Nobody).unwrap();
        assert!(text.ends_with(r#""StructuredOutput":"allow"}"#), "{text}");
    }

    #[test]
    fn a_rule_that_nothing_would_ask_for_is_refused() {
        for rule in ["write", "Bash", "apply_patch", "bash(", "bash()", "a b", "12", "bash(12)", "{env:HOME}"] {
            assert!(check(PermissionMode::Full, &[], &[rule]).is_err(), "{rule}");
        }
        assert!(check(PermissionMode::Full, &[], &["calc_*", "my_own_tool", "external_directory(/etc/*)"]).is_ok());
    }

    #[test]
    fn a_further_directory_is_named_from_the_root_and_means_no_other() {
        let with = |dir: &str, cwd: Option<&str>| {
            let mut request = RunRequest::new("x");
            request.add_dirs = vec![dir.into()];
            request.cwd = cwd.map(Into::into);
            rules(&request, &nobody(), Asking::Nobody)
        };
        assert!(with("/a/b/", None).unwrap().contains(r#""external_directory":{"/a/b/*":"allow"}"#));
        assert!(with("b", Some("/a")).unwrap().contains(r#""external_directory":{"/a/b/*":"allow"}"#));
        assert!(with("b", None).is_err());
        assert!(with("/a*", None).is_err());
    }
}
