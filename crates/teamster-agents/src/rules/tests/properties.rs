//! Properties of rules.

use super::*;

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

/// The starts and ends of nested constructs.
const NESTED: [(&str, &str); 14] = [
    ("$(", ")"),
    ("\"$(", ")\""),
    ("`", "`"),
    ("${a:-", "}"),
    ("<(", ")"),
    ("(", ")"),
    ("{ ", "; }"),
    ("((", "))"),
    ("$((", "))"),
    ("if a; then ", "; fi"),
    ("case a in a) ", ";; esac"),
    ("f() { ", "; }"),
    ("[[ ( ", " ) ]]"),
    ("bash -c '", "'"),
];

#[test]
fn nested_and_long_commands_neither_overflow_the_stack_nor_take_long() {
    let check = || {
        for (open, close) in NESTED {
            for depth in [8, 31, 100, 5000] {
                for closed in [depth, 0] {
                    let command = format!("{}rm x{}", open.repeat(depth), close.repeat(closed));
                    assert!(!allows("Bash(git:*)", "Bash", &runs(&command)));
                    let verdict = rules(&["*"], &["Bash(rmdir:*)"]).verdict(
                        PermissionMode::Full,
                        &ToolCall::new("Bash", &runs(&command)),
                        &TextOnly,
                    );
                    let is_asked = matches!(verdict, Some(Verdict::Ask { .. }));
                    assert!(
                        depth < 100 || open.starts_with("bash") || is_asked,
                        "{open} {depth} {closed}: {verdict:?}"
                    );
                }
            }
        }
        for long in [
            "sudo ",
            "sudo -u ",
            "a=1 ",
            "x;",
            "x|",
            "x&&",
            "eval ",
            "'",
            "\\\n",
            "<<a ",
            "xargs ",
            "sudo rm ",
            "find -exec ",
            "sh -c x ",
            "* ",
        ] {
            let command = long.repeat(20_000 / long.len());
            _ = denies_or_asks("Bash(rm:*)", &command);
            _ = allows("Bash(git:*)", "Bash", &runs(&command));
        }
    };
    // The stack of a worker thread of Tokio is 2 MiB, and some of it is in use.
    std::thread::Builder::new().stack_size(1536 << 10).spawn(check).unwrap().join().unwrap();
}

fn denies_or_asks(rule: &str, command: &str) -> bool {
    let verdict =
        rules(&["*"], &[rule]).verdict(PermissionMode::Full, &ToolCall::new("Bash", &runs(command)), &TextOnly);
    verdict != Some(Verdict::Allow)
}

proptest! {
    #[test]
    fn a_prefix_rule_never_allows_chains_substitutions_or_redirections(
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
    fn an_allow_rule_never_overrides_a_deny_rule(
        allow in prop::collection::vec(any_rule(), 0..4),
        deny in prop::collection::vec(any_rule(), 1..4),
        tool in prop::sample::select(vec!["Bash", "Read", "mcp__a__b"]),
        input in any_input(),
    ) {
        let read = |allow: &[String]| {
            let permissions = Permissions::default().with_allow(allow).with_deny(&deny);
            ToolRules::read(&permissions, Some(Path::new("/project"))).unwrap()
        };
        let alone = read(&[]).verdict(PermissionMode::Ask, &ToolCall::new(tool, &input), &TextOnly);
        prop_assert!(alone != Some(Verdict::Allow));
        let with = read(&allow).verdict(PermissionMode::Ask, &ToolCall::new(tool, &input), &TextOnly);
        if alone.is_some() {
            prop_assert_eq!(with, alone);
        } else {
            prop_assert!(matches!(with, None | Some(Verdict::Allow)), "nothing else denies");
        }
    }

    #[test]
    fn a_call_that_a_rule_allows_is_denied_by_the_same_rule_as_a_deny_rule(rule in any_rule(), input in any_input()) {
        for tool in ["Bash", "Read", "mcp__a__b"] {
            prop_assert!(!allows(&rule, tool, &input) || denies(&rule, tool, &input));
        }
    }

    #[test]
    fn a_path_with_a_parent_component_is_never_allowed(before in "[a-z/]{0,8}", after in "[a-z/]{0,8}") {
        let path = format!("src/{before}/../{after}");
        let allowed = allows("Write(src/**)", "Write", &json!({"file_path": path}));
        prop_assert!(!allowed, "{path}");
    }

    #[test]
    fn a_denied_command_is_not_allowed_in_any_context(
        before in prop::sample::select(vec!["", "ls; ", "ls && ", "if ", "X=1 ", "sudo -u a ", "timeout 5 ", "$(", "`", "(", "{ ", "bash -c '", "eval ", "\n", "ls | xargs ", "! "]),
        program in prop::sample::select(vec!["rm", "'rm'", "r\"\"m", "\\rm", "/bin/rm", "$'rm'", "r\\\nm", "$x", "RM", "./rm"]),
        after in "[ -~]{0,12}",
    ) {
        let command = format!("{before}{program} {after}");
        prop_assert!(denies_or_asks("Bash(rm:*)", &command), "{command}");
    }

    #[test]
    fn any_text_gets_a_verdict(command in prop_oneof![any::<String>(), "[ -~\n]{0,60}"]) {
        _ = denies_or_asks("Bash(rm:*)", &command);
        _ = allows("Bash(git:*)", "Bash", &runs(&command));
        _ = allows("Read(src/**)", "Read", &json!({"file_path": command}));
        _ = denies_or_asks("Bash(a/*)", &command);
    }
}
