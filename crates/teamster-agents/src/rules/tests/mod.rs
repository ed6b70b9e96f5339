use proptest::prelude::*;
use serde_json::json;

use serde_json::Value;

use super::*;

mod corpus;
mod properties;

fn rules(allow: &[&str], deny: &[&str]) -> ToolRules {
    let permissions = Permissions::default().with_allow(allow.iter().copied()).with_deny(deny.iter().copied());
    ToolRules::read(&permissions, Some(Path::new("/project"))).unwrap()
}

fn allows(rule: &str, tool: &str, input: &Value) -> bool {
    match rules(&[rule], &[]).verdict(PermissionMode::Ask, &ToolCall::new(tool, input), &TextOnly) {
        Some(Verdict::Allow) => true,
        None => false,
        other => panic!("{other:?}"),
    }
}

fn denies(rule: &str, tool: &str, input: &Value) -> bool {
    let denied = Some(Verdict::Deny { rule: rule.to_owned() });
    match rules(&["*"], &[rule]).verdict(PermissionMode::Full, &ToolCall::new(tool, input), &TextOnly) {
        verdict if verdict == denied => true,
        Some(Verdict::Allow) => false,
        other => panic!("{other:?}"),
    }
}

fn runs(command: &str) -> Value {
    json!({"command": command})
}

#[test]
fn a_rule_without_brackets_covers_all_calls_of_its_tool() {
    assert!(allows("Bash", "Bash", &runs("anything; at > all")));
    assert!(allows("Bash(*)", "Bash", &runs("anything")));
    assert!(!allows("Bash", "BashOutput", &json!({})));
    assert!(!allows("Bash", "bash", &runs("ls")), "names are case-sensitive");
    assert!(allows("web*", "webfetch", &json!({"anything": 1})));
}

#[test]
fn a_rule_names_all_tools_of_a_server_or_one_of_them() {
    assert!(allows("mcp__calc", "mcp__calc__add", &json!({"permissions": 1})));
    assert!(allows("mcp__calc__add", "mcp__calc__add", &json!({})));
    assert!(allows("mcp__calc__*", "mcp__calc__add", &json!({})));
    assert!(!allows("mcp__calc", "mcp__calculator__add", &json!({})));
    assert!(!allows("mcp__calc__add", "mcp__calc__add_all", &json!({})));
    assert!(!allows("calc", "calc__add", &json!({})));
}

#[test]
fn a_denied_path_or_host_is_denied_in_every_spelling() {
    for path in [".env", "/project/.env", "a/b/.env", "/elsewhere/.env"] {
        assert!(denies("Read(.env)", "Read", &json!({"file_path": path})), "{path}");
    }
    assert!(denies("Read(secrets/**)", "Read", &json!({"paths": ["/project/secrets/a/b"]})));
    assert!(!denies("Read(.env)", "Read", &json!({"file_path": ".environment"})));
    for url in ["https://evil.com/x", "http://user@EVIL.com:80/", "see https://evil.com"] {
        assert!(denies("WebFetch(domain:evil.com)", "WebFetch", &json!({"url": url})), "{url}");
    }
    assert!(!denies("WebFetch(domain:evil.com)", "WebFetch", &json!({"url": "https://good.com/evil.com"})));
    assert!(denies("mcp__calc", "mcp__calc__add", &json!({})));
}

#[test]
fn no_rule_allows_a_call_that_requests_further_permissions_or_any_call_in_read_only_mode() {
    for key in FURTHER_PERMISSIONS {
        assert!(!allows("command_execution", "command_execution", &json!({"command": "ls", key: {}})), "{key}");
    }
    let verdict =
        rules(&["Bash"], &[]).verdict(PermissionMode::ReadOnly, &ToolCall::new("Bash", &runs("ls")), &TextOnly);
    assert_eq!(verdict, None);
}

#[test]
fn an_invalid_rule_is_rejected_and_the_error_quotes_it() {
    for wrong in ["Bash(", "Bash(ls", "Bash()", "Bash( )", "(ls)", "Bash(:*)", " "] {
        let permissions = Permissions::default().with_deny([wrong]);
        let error = ToolRules::read(&permissions, None).unwrap_err();
        assert!(matches!(&error, RequestError::Rule { rule, .. } if rule == wrong), "{error}");
    }
}
