use proptest::prelude::*;

use super::*;

const MODES: [PermissionMode; 4] =
    [PermissionMode::ReadOnly, PermissionMode::Ask, PermissionMode::Edit, PermissionMode::Full];

fn config(permission: PermissionMode, rules: Vec<Rule>) -> Config {
    let mut config = Config { rules, ..Config::default() };
    config.turn.permission = permission;
    config.turn.directory = "/srv".into();
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
fn the_first_rule_that_matches_applies() {
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
}

#[test]
fn a_conversation_cannot_select_another_agent_or_model_than_its_rule() {
    let large = ConversationSettings { model: Some("large".to_owned()), ..ConversationSettings::default() };
    let rule = |agent: Option<&str>, model: Option<&str>| Rule {
        agent: agent.map(str::to_owned),
        model: model.map(str::to_owned),
        ..Rule::default()
    };
    for (rule, selected, expected) in [
        (rule(Some("claude"), Some("haiku")), "codex", ("claude", Some("haiku"))),
        (rule(Some("claude"), Some("haiku")), "claude", ("claude", Some("haiku"))),
        // The selected model is that of the selected agent.
        (rule(Some("claude"), None), "codex", ("claude", Some("default"))),
        (rule(Some("claude"), None), "claude", ("claude", Some("large"))),
        (rule(None, Some("haiku")), "codex", ("codex", Some("haiku"))),
        (rule(None, None), "codex", ("codex", Some("large"))),
    ] {
        let config = config(PermissionMode::Ask, vec![rule]);
        for origin in [HTTP, DISCORD] {
            let turn = resolve(&config, Some(selected), &large, origin).unwrap();
            assert_eq!((turn.agent.as_str(), turn.model.as_deref()), expected, "{} {selected}", origin.channel);
        }
    }
}

#[test]
fn rules_of_tools_belong_to_their_agent_and_no_change_of_the_agent_permits_more() {
    let mut config = config(PermissionMode::Ask, Vec::new());
    config.turn.allow_tools = vec!["Bash(git *)".to_owned()];
    let none = ConversationSettings::default();
    let tools = |config: &Config, agent| resolve(config, Some(agent), &none, HTTP).unwrap().allow_tools;
    assert_eq!(tools(&config, "claude"), ["Bash(git *)"]);
    assert_eq!(tools(&config, "codex"), [""; 0]);
    config.rules =
        vec![Rule { agent: Some("codex".to_owned()), allow_tools: Some(list(&["git diff"])), ..Rule::default() }];
    assert_eq!(tools(&config, "codex"), ["git diff"]);
    config.rules = vec![Rule { allow_tools: Some(list(&["Read"])), ..Rule::default() }];
    assert_eq!((tools(&config, "codex"), tools(&config, "claude")), (vec!["Read".into()], vec!["Read".into()]));
}

#[test]
fn a_conversation_cannot_leave_the_directory_of_its_rule() {
    let ruled = vec![Rule { directory: Some("/srv/team".into()), ..Rule::default() }];
    for (origin, rules, selected, expected) in [
        (DISCORD, &ruled, "/srv/team/a", "/srv/team/a"),
        (DISCORD, &ruled, "/srv/team", "/srv/team"),
        (DISCORD, &ruled, "/srv", "/srv/team"),
        (DISCORD, &ruled, "/srv/teams", "/srv/team"),
        (DISCORD, &ruled, "/srv/team/../x", "/srv/team"),
        (HTTP, &ruled, "/other", "/srv/team"),
        (DISCORD, &Vec::new(), "/other", "/srv"),
        (DISCORD, &Vec::new(), "/srv/a", "/srv/a"),
        (HTTP, &Vec::new(), "/other", "/other"),
    ] {
        let config = config(PermissionMode::Ask, rules.clone());
        let turn = resolve(&config, None, &settings(None, Some(selected)), origin).unwrap();
        assert_eq!(turn.directory, Path::new(expected), "{} {selected}", origin.channel);
    }
}

#[test]
fn a_budget_belongs_to_the_author() {
    let rules = vec![Rule { daily_budget_usd: Some(2.0), ..Rule::default() }];
    let turn = resolve(&config(PermissionMode::Ask, rules), None, &settings(None, None), DISCORD).unwrap();
    assert_eq!(turn.daily_budget, Some(("author:discord:ada".to_owned(), 2.0)));
}

#[test]
fn a_member_of_a_chat_approves_only_if_a_rule_permits_it() {
    for (origin, approvers, expected) in [
        (DISCORD, None, Vec::new()),
        (HTTP, None, vec!["http:ada"]),
        (DISCORD, Some(list(&["author"])), vec!["discord:ada"]),
        (DISCORD, Some(list(&["discord:7", "author", "token:1"])), vec!["discord:7", "discord:ada", "token:1"]),
        (DISCORD, Some(list(&["*"])), vec!["*"]),
        (HTTP, Some(list(&["discord:7"])), vec!["discord:7"]),
    ] {
        let rules = vec![Rule { approvers, ..Rule::default() }];
        let turn = resolve(&config(PermissionMode::Ask, rules), None, &settings(None, None), origin).unwrap();
        assert_eq!(turn.approvers, expected, "{}", origin.channel);
    }
}

#[test]
fn the_owner_of_a_token_gets_no_rights_of_an_author_of_a_chat() {
    let full = Rule {
        channel: Some("discord".to_owned()),
        authors: Some(list(&["ada"])),
        permission: Some(PermissionMode::Full),
        allow_tools: Some(list(&["Bash"])),
        approvers: Some(list(&["author"])),
        ..Rule::default()
    };
    let config = config(PermissionMode::Ask, vec![full]);
    let resolved = |by_api| resolve_message(&config, None, &settings(None, None), DISCORD, by_api).unwrap();
    let author = resolved(false);
    assert_eq!((author.permission, author.approvers), (PermissionMode::Full, vec!["discord:ada".to_owned()]));
    let owner = resolved(true);
    assert_eq!((owner.permission, owner.allow_tools), (PermissionMode::Ask, Vec::new()));
    assert_eq!(owner.approvers, ["http:ada"]);
}

#[test]
fn a_message_through_the_api_has_the_lower_right_of_the_chat_and_its_sender() {
    let rule = |channel: &str, permission, tools: &[&str]| Rule {
        channel: Some(channel.to_owned()),
        permission: Some(permission),
        allow_tools: Some(list(tools)),
        ..Rule::default()
    };
    for (chat, sender, expected) in [
        (PermissionMode::Full, PermissionMode::ReadOnly, PermissionMode::ReadOnly),
        (PermissionMode::ReadOnly, PermissionMode::Full, PermissionMode::ReadOnly),
        (PermissionMode::Edit, PermissionMode::Edit, PermissionMode::Edit),
    ] {
        let rules = vec![rule("discord", chat, &["Read", "Bash"]), rule("http", sender, &["Bash", "Edit"])];
        let turn = resolve_message(&config(PermissionMode::Ask, rules), None, &settings(None, None), DISCORD, true);
        let turn = turn.unwrap();
        assert_eq!((turn.permission, turn.allow_tools), (expected, vec!["Bash".to_owned()]), "{chat:?} {sender:?}");
    }
    let reject = Rule { reject: true, ..rule("http", PermissionMode::Ask, &[]) };
    let config = config(PermissionMode::Ask, vec![reject]);
    assert!(resolve_message(&config, None, &settings(None, None), DISCORD, true).is_none());
}

#[test]
fn a_session_is_used_for_equal_settings_only() {
    let turn = resolve(&config(PermissionMode::Ask, Vec::new()), None, &settings(None, None), HTTP).unwrap();
    let changes: [fn(&mut TurnSettings); 9] = [
        |turn| turn.agent = "codex".to_owned(),
        |turn| turn.cli_path = Some("/bin/other".into()),
        |turn| turn.model = None,
        |turn| turn.permission = PermissionMode::Full,
        |turn| turn.allow_tools = vec!["Bash".to_owned()],
        |turn| turn.directory = "/srv/a".into(),
        |turn| turn.instructions = vec!["Be brief.".to_owned()],
        |turn| turn.approvers = vec!["http:bob".to_owned()],
        |turn| turn.daily_budget = Some(("author:http:ada".to_owned(), 1.0)),
    ];
    for (index, change) in changes.iter().enumerate() {
        let mut other = turn.clone();
        change(&mut other);
        assert!(!turn.shares_session_with(&other) && !other.shares_session_with(&turn), "{index}");
    }
    let of = |name: &str| TurnSettings { daily_budget: Some((name.to_owned(), 1.0)), ..turn.clone() };
    assert!(of("author:http:ada").shares_session_with(&of("chat:http:1")), "a session knows the limit only");
}

proptest! {
    #[test]
    fn only_the_author_that_selected_a_higher_permission_has_it_and_a_chat_never(
        default in 0_usize..4,
        ruled in proptest::option::of(0_usize..4),
        selected in proptest::option::of(0_usize..4),
        is_chat: bool,
        selected_by in proptest::option::of("ada|bob"),
    ) {
        let rules = ruled.map(|at| Rule { permission: Some(MODES[at]), ..Rule::default() }).into_iter().collect();
        let config = config(MODES[default], rules);
        let origin = if is_chat { DISCORD } else { HTTP };
        let may_raise = !is_chat && ruled.is_none() && selected_by.as_deref() == Some("ada");
        let permission = selected.map(|at| MODES[at]);
        let conversation = ConversationSettings { permission_by: selected_by, ..settings(permission, None) };
        let found = resolve(&config, None, &conversation, origin).unwrap().permission;
        let limit = ruled.unwrap_or(default);
        let found = MODES.iter().position(|mode| *mode == found).unwrap();
        // A lower permission is always granted.
        match selected {
            Some(selected) if selected <= limit || may_raise => prop_assert_eq!(found, selected),
            _ => prop_assert_eq!(found, limit),
        }
    }

    #[test]
    fn a_chat_stays_below_its_directory(parts in proptest::collection::vec("[a-c]|\\.\\.|team|work", 0..6)) {
        let rules = vec![Rule { directory: Some("/srv/team".into()), ..Rule::default() }];
        let selected = format!("/{}", parts.join("/"));
        let turn = resolve(&config(PermissionMode::Ask, rules), None, &settings(None, Some(&selected)), DISCORD).unwrap();
        prop_assert!(turn.directory.starts_with("/srv/team"));
        prop_assert!(!turn.directory.components().any(|part| part == Component::ParentDir));
    }
}
