use proptest::prelude::*;
use serde_json::json;

use super::*;

fn rules(allow: &[&str], deny: &[&str]) -> ToolRules {
    let owned = |rules: &[&str]| rules.iter().map(|&rule| rule.to_owned()).collect();
    let permissions = Permissions { allow: owned(allow), deny: owned(deny), ..Permissions::default() };
    ToolRules::read(&permissions, Some(Path::new("/project"))).unwrap()
}

fn allows(rule: &str, tool: &str, input: &Value) -> bool {
    match rules(&[rule], &[]).verdict(PermissionMode::Ask, tool, input) {
        Some(Verdict::Allow) => true,
        None => false,
        other => panic!("{other:?}"),
    }
}

fn denies(rule: &str, tool: &str, input: &Value) -> bool {
    let denied = Some(Verdict::Deny { rule: rule.to_owned() });
    match rules(&["*"], &[rule]).verdict(PermissionMode::Full, tool, input) {
        verdict if verdict == denied => true,
        Some(Verdict::Allow) => false,
        other => panic!("{other:?}"),
    }
}

fn runs(command: &str) -> Value {
    json!({"command": command})
}

#[test]
fn a_rule_without_brackets_is_for_all_calls_of_its_tool() {
    assert!(allows("Bash", "Bash", &runs("anything; at > all")));
    assert!(allows("Bash(*)", "Bash", &runs("anything")));
    assert!(!allows("Bash", "BashOutput", &json!({})));
    assert!(!allows("Bash", "bash", &runs("ls")), "names are the agent's own");
    assert!(allows("web*", "webfetch", &json!({"anything": 1})));
}

#[test]
fn a_prefix_allows_one_command_that_begins_with_its_words() {
    let rule = "Bash(git diff:*)";
    for good in ["git diff", "git diff HEAD~1 -- src", "  git diff", "git diff\tHEAD", "git diff \"a b\""] {
        assert!(allows(rule, "Bash", &runs(good)), "{good}");
    }
    for bad in [
        "git difftool",
        "git  diff",
        "git push",
        "echo git diff",
        "X=1 git diff",
        "git diff; rm -r .",
        "git diff && rm -r .",
        "git diff & rm -r .",
        "git diff | sh",
        "git diff `rm -r .`",
        "git diff $(rm -r .)",
        "git diff\nrm -r .",
        "git diff\rrm -r .",
        "git diff > x",
        "git diff <(rm -r .)",
        "git diff \"a;b\"",
        "bash -lc 'git diff; rm -r .'",
        "bash -lc 'git diff' 'x'",
        "",
    ] {
        assert!(!allows(rule, "Bash", &runs(bad)), "{bad}");
    }
    assert!(allows(rule, "Bash", &json!({"command": ["git", "diff", "HEAD"]})));
    assert!(!allows(rule, "Bash", &json!({"command": ["git", "diff;rm"]})));
    assert!(!allows(rule, "Bash", &json!({"command": 7})));
    assert!(!allows(rule, "Bash", &json!({"path": "git diff"})));
    assert!(!allows(rule, "Bash", &json!("git diff")));
}

#[test]
fn the_shell_that_an_agent_puts_around_a_command_is_seen_through() {
    for shell in ["/bin/bash -lc 'git diff HEAD'", "bash -c \"git diff HEAD\"", "/usr/bin/zsh -lc 'git diff HEAD'"] {
        assert!(allows("command_execution(git diff:*)", "command_execution", &runs(shell)), "{shell}");
    }
    assert!(allows("shell(ls)", "shell", &runs("sh -c ls")));
    for odd in ["bash -lc \"git diff $X\"", "bash -lc 'git diff'\\''x'", "bash -lic 'git diff'", "fish -c 'git diff'"] {
        assert!(!allows("command_execution(git diff:*)", "command_execution", &runs(odd)), "{odd}");
    }
}

#[test]
fn a_pattern_of_a_command_is_exact_but_for_its_wildcards() {
    assert!(allows("bash(make *)", "bash", &runs("make test")));
    assert!(!allows("bash(make *)", "bash", &runs("make test; rm -r .")));
    assert!(!allows("bash(make)", "bash", &runs("make test")));
    assert!(allows("bash(make && make test)", "bash", &runs("make && make test")), "it is what was written");
    assert!(!allows("bash(make && *)", "bash", &runs("make && rm -r .")));
}

#[test]
fn a_pattern_of_a_path_does_not_leave_its_folder() {
    let file = |path: &str| json!({"file_path": path, "content": "x"});
    for good in ["src/a/b.rs", "/project/src/b.rs"] {
        assert!(allows("Write(src/**)", "Write", &file(good)), "{good}");
    }
    for bad in ["src/../x", "/project/src/../../etc/passwd", "/etc/src/x", "~/src/x", "srcs/x", "/project"] {
        assert!(!allows("Write(src/**)", "Write", &file(bad)), "{bad}");
    }
    assert!(!allows("Write(src/*)", "Write", &file("src/a/b.rs")));
    assert!(allows("Write(/etc/*.conf)", "Write", &file("/etc/a.conf")));
    assert!(
        !allows("Move(src/**)", "Move", &json!({"path": "src/a", "destination": "/etc/a"})),
        "it reaches elsewhere"
    );
    assert!(!allows("Read(src/**)", "Read", &json!({"path": ["src/a", "/etc/a"]})));
}

#[test]
fn a_host_is_the_host_that_is_asked() {
    let fetch = |url: &str| json!({"url": url, "prompt": "x"});
    assert!(allows("WebFetch(domain:docs.rs)", "WebFetch", &fetch("https://Docs.rs/serde?x#y")));
    assert!(allows("WebFetch(domain:*.example.com)", "WebFetch", &fetch("http://a.example.com:80")));
    assert!(allows("WebFetch(https://docs.rs/**)", "WebFetch", &fetch("https://docs.rs/serde/latest")));
    for bad in [
        "https://docs.rs.evil.com/",
        "https://docs.rs@evil.com/",
        "https://evil.com/docs.rs",
        "https://docs.rs\\@evil.com",
        "ftp://docs.rs/",
        "docs.rs",
        "https://docs.rs:/",
        "https://docs.rs/../x",
        "https://docs.rs /",
    ] {
        assert!(!allows("WebFetch(domain:docs.rs)", "WebFetch", &fetch(bad)), "{bad}");
        assert!(!allows("WebFetch(https://docs.rs/**)", "WebFetch", &fetch(bad)), "{bad}");
    }
}

#[test]
fn tools_of_a_server_go_by_the_server_or_by_name() {
    assert!(allows("mcp__calc", "mcp__calc__add", &json!({"permissions": 1})));
    assert!(allows("mcp__calc__add", "mcp__calc__add", &json!({})));
    assert!(allows("mcp__calc__*", "mcp__calc__add", &json!({})));
    assert!(!allows("mcp__calc", "mcp__calculator__add", &json!({})));
    assert!(!allows("mcp__calc__add", "mcp__calc__add_all", &json!({})));
    assert!(!allows("calc", "calc__add", &json!({})));
}

#[test]
fn a_denied_command_is_denied_wherever_it_stands() {
    let rule = "Bash(rm:*)";
    for command in [
        "rm x",
        "rm",
        " rm x",
        "ls; rm x",
        "ls && rm x",
        "ls || rm x",
        "ls | rm",
        "ls\nrm x",
        "$(rm x)",
        "`rm x`",
        "(rm x)",
        "{ rm x; }",
        "X=1 Y=2 rm x",
        "sudo rm x",
        "sudo -n rm x",
        "/bin/rm x",
        "sudo /bin/rm x",
        "'rm' x",
        "\\rm x",
        "bash -lc 'rm x'",
        "bash -c rm",
    ] {
        assert!(denies(rule, "Bash", &runs(command)), "{command}");
    }
    for other in ["rmdir x", "ls rm", "echo farm"] {
        assert!(!denies(rule, "Bash", &runs(other)), "{other}");
    }
    assert!(denies(rule, "bash", &runs("rm x")), "whatever the letters");
    assert!(denies(rule, "Bash", &json!({"command": ["rm", "x"]})));
    assert!(denies(rule, "Bash", &json!({"deep": {"list": ["ls; rm x"]}})));
}

#[test]
fn a_denied_path_or_host_is_denied_however_it_is_named() {
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
fn what_asks_for_more_than_its_call_and_what_may_only_read_is_never_allowed_by_a_rule() {
    for key in MORE {
        assert!(!allows("command_execution", "command_execution", &json!({"command": "ls", key: {}})), "{key}");
    }
    let verdict = rules(&["Bash"], &[]).verdict(PermissionMode::ReadOnly, "Bash", &runs("ls"));
    assert_eq!(verdict, None);
}

#[test]
fn what_is_no_rule_is_refused_by_name() {
    for wrong in ["Bash(", "Bash(ls", "Bash()", "Bash( )", "(ls)", "Bash(:*)", " "] {
        let permissions = Permissions { deny: vec![wrong.to_owned()], ..Permissions::default() };
        let error = ToolRules::read(&permissions, None).unwrap_err();
        assert!(matches!(&error, RequestError::Rule { rule, .. } if rule == wrong), "{error}");
    }
}

fn any_rule() -> impl Strategy<Value = String> {
    let tool = prop::sample::select(vec!["Bash", "B*", "Read", "mcp__a", "*"]);
    let what = prop::sample::select(vec!["", "(git:*)", "(*)", "(git *)", "(src/**)", "(a)", "(domain:a.b)"]);
    (tool, what).prop_map(|(tool, what)| format!("{tool}{what}"))
}

fn any_input() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[ -~]{0,20}",
        prop::collection::vec(
            prop::sample::select(vec![
                "git", " ", ";", "&&", "$(", ")", "`", "\n", "src/", "..", "/", "a", "https://", "'"
            ]),
            0..8
        )
        .prop_map(|parts| parts.concat()),
        any::<String>(),
    ];
    let key = prop::sample::select(vec!["command", "file_path", "url", "other", "path"]);
    prop_oneof![
        prop::collection::btree_map(key, text.clone(), 0..3).prop_map(|fields| json!(fields)),
        text.prop_map(|text| json!({"command": [text]})),
        Just(json!(null)),
        Just(json!([1, {"a": "b"}])),
    ]
}

proptest! {
    #[test]
    fn a_prefix_never_allows_what_chains_substitutes_or_redirects(
        before in "[a-z ]{0,8}",
        bad in prop::sample::select(vec![";", "&", "&&", "|", "`", "$(", "\n", "\r", ">", "<", "(", ")"]),
        after in "[!-~]{1,12}",
    ) {
        for command in [format!("git {before}{bad}{after}"), format!("bash -lc 'git {before}{bad}{after}'")] {
            prop_assert!(!allows("Bash(git:*)", "Bash", &runs(&command)));
            prop_assert!(!allows("Bash(git *)", "Bash", &runs(&command)));
            prop_assert!(!allows("Bash(*git*)", "Bash", &runs(&command)));
        }
    }

    #[test]
    fn what_is_denied_stays_denied_whatever_is_allowed(
        allow in prop::collection::vec(any_rule(), 0..4),
        deny in prop::collection::vec(any_rule(), 1..4),
        tool in prop::sample::select(vec!["Bash", "Read", "mcp__a__b"]),
        input in any_input(),
    ) {
        let read = |allow: &[String]| {
            let permissions = Permissions { allow: allow.to_vec(), deny: deny.clone(), ..Permissions::default() };
            ToolRules::read(&permissions, Some(Path::new("/project"))).unwrap()
        };
        let alone = read(&[]).verdict(PermissionMode::Ask, tool, &input);
        prop_assert!(alone != Some(Verdict::Allow));
        let with = read(&allow).verdict(PermissionMode::Ask, tool, &input);
        if alone.is_some() {
            prop_assert_eq!(with, alone);
        } else {
            prop_assert!(!matches!(with, Some(Verdict::Deny { .. })), "nothing else denies");
        }
    }

    #[test]
    fn what_a_rule_allows_the_same_rule_would_deny(rule in any_rule(), input in any_input()) {
        for tool in ["Bash", "Read", "mcp__a__b"] {
            prop_assert!(!allows(&rule, tool, &input) || denies(&rule, tool, &input));
        }
    }

    #[test]
    fn a_path_that_climbs_is_never_allowed(before in "[a-z/]{0,8}", after in "[a-z/]{0,8}") {
        let path = format!("src/{before}/../{after}");
        let allowed = allows("Write(src/**)", "Write", &json!({"file_path": path}));
        prop_assert!(!allowed, "{path}");
    }
}
