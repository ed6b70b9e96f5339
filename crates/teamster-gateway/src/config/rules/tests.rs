use proptest::prelude::*;

use super::*;

const MODES: [PermissionMode; 4] =
    [PermissionMode::ReadOnly, PermissionMode::Ask, PermissionMode::Edit, PermissionMode::Full];

fn config(permission: PermissionMode, rules: Vec<Rule>) -> Config {
    let mut config = Config { rules, ..Config::default() };
    config.turn.permission = permission;
    config.turn.directory = "/work".into();
    config.turn.model = Some("default".to_owned());
    config
}

fn settings(permission: Option<PermissionMode>, directory: Option<&str>) -> ConversationSettings {
    ConversationSettings { permission, directory: directory.map(PathBuf::from), ..ConversationSettings::default() }
}

const DISCORD: Origin<'_> = Origin { channel: "discord", chat: "c", author: "ada" };
const HTTP: Origin<'_> = Origin { channel: "http", chat: "c", author: "ada" };

fn list(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

#[test]
fn the_first_rule_that_matches_counts() {
    let rule = |model: &str, rule: Rule| Rule { model: Some(model.to_owned()), ..rule };
    let rules = vec![
        rule("both", Rule { chats: Some(list(&["c"])), authors: Some(list(&["bob", "eve"])), ..Rule::default() }),
        rule("channel", Rule { channel: Some("slack".to_owned()), ..Rule::default() }),
        rule("author", Rule { authors: Some(list(&["eve"])), ..Rule::default() }),
        Rule { authors: Some(list(&["mallory"])), reject: true, ..Rule::default() },
    ];
    let config = config(PermissionMode::Ask, rules);
    let model = |channel, chat, author| {
        let found = resolve(&config, None, &ConversationSettings::default(), Origin { channel, chat, author });
        found.map(|turn| turn.model.unwrap())
    };
    for (channel, chat, author, expected) in [
        ("discord", "c", "eve", Some("both")),
        ("slack", "c", "bob", Some("both")),
        ("slack", "d", "eve", Some("channel")),
        ("discord", "d", "eve", Some("author")),
        ("discord", "d", "mallory", None),
        ("slack", "d", "mallory", Some("channel")),
        ("discord", "d", "ada", Some("default")),
    ] {
        assert_eq!(model(channel, chat, author).as_deref(), expected, "{channel} {chat} {author}");
    }
}

#[test]
fn the_model_of_another_agent_is_not_used() {
    let mut config = config(PermissionMode::Ask, Vec::new());
    config.turn.cli_path = Some("/bin/claude".into());
    let none = ConversationSettings::default();
    let other = resolve(&config, Some("codex"), &none, HTTP).unwrap();
    assert_eq!((other.model, other.cli_path), (None, None));
    config.rules = vec![Rule { agent: Some("codex".to_owned()), model: Some("large".to_owned()), ..Rule::default() }];
    assert_eq!(resolve(&config, None, &none, HTTP).unwrap().model.as_deref(), Some("large"));
    let chosen = resolve(&config, Some("claude"), &none, HTTP).unwrap();
    assert_eq!(chosen.model.as_deref(), Some("default"));
}

#[test]
fn a_conversation_cannot_leave_the_directory_of_its_rule() {
    let ruled = vec![Rule { directory: Some("/work/team".into()), ..Rule::default() }];
    for (origin, rules, selected, expected) in [
        (DISCORD, &ruled, "/work/team/a", "/work/team/a"),
        (DISCORD, &ruled, "/work/team", "/work/team"),
        (DISCORD, &ruled, "/work", "/work/team"),
        (DISCORD, &ruled, "/work/teams", "/work/team"),
        (DISCORD, &ruled, "/work/team/../x", "/work/team"),
        (HTTP, &ruled, "/other", "/work/team"),
        (DISCORD, &Vec::new(), "/other", "/work"),
        (DISCORD, &Vec::new(), "/work/a", "/work/a"),
        (HTTP, &Vec::new(), "/other", "/other"),
    ] {
        let config = config(PermissionMode::Ask, rules.clone());
        let turn = resolve(&config, None, &settings(None, Some(selected)), origin).unwrap();
        assert_eq!(turn.directory, Path::new(expected), "{} {selected}", origin.channel);
    }
}

#[test]
fn a_budget_and_approvers_belong_to_the_author() {
    let rules = vec![Rule { daily_budget_usd: Some(2.0), ..Rule::default() }];
    let turn = resolve(&config(PermissionMode::Ask, rules), None, &settings(None, None), DISCORD).unwrap();
    assert_eq!(turn.daily_budget, Some(("author:discord:ada".to_owned(), 2.0)));
    assert_eq!(turn.approvers, ["discord:ada"]);
}

proptest! {
    #[test]
    fn a_chat_never_raises_its_permission(
        default in 0_usize..4,
        ruled in proptest::option::of(0_usize..4),
        selected in proptest::option::of(0_usize..4),
        is_chat: bool,
    ) {
        let rules = ruled.map(|at| Rule { permission: Some(MODES[at]), ..Rule::default() }).into_iter().collect();
        let config = config(MODES[default], rules);
        let origin = if is_chat { DISCORD } else { HTTP };
        let selected_mode = selected.map(|at| MODES[at]);
        let found = resolve(&config, None, &settings(selected_mode, None), origin).unwrap().permission;
        let limit = ruled.unwrap_or(default);
        let found = MODES.iter().position(|mode| *mode == found).unwrap();
        if is_chat || ruled.is_some() {
            prop_assert!(found <= limit);
        }
        // A lower permission is always granted.
        match selected {
            None => prop_assert_eq!(found, limit),
            Some(selected) if selected <= limit => prop_assert_eq!(found, selected),
            Some(_) => {}
        }
    }

    #[test]
    fn a_chat_stays_below_its_directory(parts in proptest::collection::vec("[a-c]|\\.\\.|team|work", 0..6)) {
        let rules = vec![Rule { directory: Some("/work/team".into()), ..Rule::default() }];
        let selected = format!("/{}", parts.join("/"));
        let turn = resolve(&config(PermissionMode::Ask, rules), None, &settings(None, Some(&selected)), DISCORD).unwrap();
        prop_assert!(turn.directory.starts_with("/work/team"));
        prop_assert!(!turn.directory.components().any(|part| part == Component::ParentDir));
    }
}
