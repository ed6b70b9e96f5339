use std::fs;
use std::path::Path;
use std::time::Duration;

use teamster::Registry;
use teamster::request::{PermissionMode, ProjectTrust};
use tempfile::TempDir;
use toml::de::DeTable;

use super::*;
use crate::config::Interrupted;

/// Reads a file's text.
fn parse(text: &str) -> Parsed {
    let document = DeTable::parse(text).unwrap().into_inner();
    let (_, value) = document.into_iter().find(|(key, _)| key.get_ref() == "serve").expect("a table serve");
    read(value)
}

/// Returns the problems, each with its line.
fn problems(text: &str) -> String {
    let line = |at: usize| text.get(..at).unwrap().matches('\n').count() + 1;
    let problems = parse(text).problems.into_iter();
    problems.map(|problem| format!("{}: {}", line(problem.at.unwrap()), problem.problem)).collect::<Vec<_>>().join("\n")
}

fn built(text: &str, directory: &Path) -> Result<Serve, Vec<KeyProblem>> {
    let Parsed { mut table, problems, .. } = parse(text);
    assert!(problems.is_empty(), "{problems:?}");
    fs::create_dir_all(directory.join("work")).unwrap();
    table.directory.get_or_insert_with(|| "work".into());
    table.resolve_paths(directory, Some(Path::new("/home/ada")));
    build(&table, &directory.join("data"), &Registry::default())
}

fn refusals(text: &str) -> String {
    let directory = TempDir::new().unwrap();
    let problems = built(text, directory.path()).expect_err("problems");
    let place = directory.path().to_string_lossy().into_owned();
    let lines = problems.iter().map(|problem| format!("{}: {}", problem.key, problem.problem.replace(&place, "DIR")));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_problem_is_reported_with_its_line_and_the_nearest_key() {
    insta::assert_snapshot!(problems(r#"
[serve]
listn = "127.0.0.1:1"
permission = "everything"
max_turns = 0
hosts = ["a", 1]
[serve.limits]
max_runing = 1
max_running = -3
queue_total = 5
[serve.timing]
lease = "soon"
batch = 30
[[serve.rules]]
chanel = "discord"
permission = "ask"
[[serve.rules]]
reject = "yes"
daily_budget_usd = true
"#), @r#"
    3: unknown key "serve.listn"; did you mean "listen"?
    4: serve.permission: "everything" is not valid; use read-only, ask, edit, full
    5: serve.max_turns: 0 is not a whole number from 1
    6: serve.hosts.1: 1 is not a text
    8: unknown key "serve.limits.max_runing"; did you mean "max_running"?
    9: serve.limits.max_running: -3 is not a whole number from 1
    12: serve.timing.lease: invalid duration "soon": expected number at 0; write it like "90s"
    13: serve.timing.batch: 30 is not a duration, such as "90s"
    15: unknown key "serve.rules.0.chanel"; did you mean "channel"?
    18: serve.rules.1.reject: "yes" is not true or false
    19: serve.rules.1.daily_budget_usd: true is not a number
    "#);
    assert_eq!(problems("serve = 1"), "1: serve must be a table, as in [serve]");
    assert_eq!(problems("[serve]\nlimits = 1"), "2: serve.limits: 1 is not a table");
}

#[test]
fn a_problem_does_not_hide_the_other_values() {
    let parsed = parse("[serve]\nlisten = 1\nmodel = \"m\"\n[[serve.rules]]\nagent = 1\nmodel = \"n\"\n");
    assert_eq!(parsed.problems.len(), 2);
    assert_eq!(parsed.table.model.as_deref(), Some("m"));
    assert_eq!(parsed.table.rules[0].model.as_deref(), Some("n"));
}

#[test]
fn the_offset_of_each_key_is_known() {
    let text = "[serve]\nmodel = \"m\"\n[serve.limits]\nqueue_total = 5\n[[serve.rules]]\nagent = \"codex\"\n";
    let offsets = parse(text).offsets;
    for (key, word) in
        [("model", "model"), ("limits.queue_total", "queue_total"), ("rules.0.agent", "agent"), ("rules", "rules")]
    {
        assert!(text.get(offsets[key]..).unwrap().starts_with(word), "{key}");
    }
}

const EVERY_PART: &str = r#"
        [serve]
        listen = "localhost:0"
        hosts = ["agents.example.org"]
        data_dir = "~/gateway"
        store = "sqlite:store.db"
        agent = "codex"
        cli_path = "bin/codex"
        model = "large"
        permission = "edit"
        allow_tools = ["Read"]
        directory = "work"
        max_turns = 7
        deadline = "20m"
        roots = ["other"]
        interrupted = "resume"
        instructions = { files = ["house.md"], text = "You are in {chat}." }
        limits = { max_running = 2, idle_sessions = 0 }
        timing = { lease = "10s", idle_timeout = "1h" }
        retries = { max = 1, after_tools = true }
        retention = { events = "30days", events_per_conversation = 1000 }
        [[serve.rules]]
        channel = "discord"
        chats = ["1"]
        directory = "work/sub"
        agent = "claude"
        permission = "read-only"
        approvers = ["discord:7", "author", "*"]
        daily_budget_usd = 2
        [[serve.rules]]
        reject = true
"#;

#[test]
fn a_table_sets_every_part_of_the_configuration() {
    let directory = TempDir::new().unwrap();
    for name in ["work/sub", "other"] {
        fs::create_dir_all(directory.path().join(name)).unwrap();
    }
    fs::write(directory.path().join("house.md"), "Be brief.").unwrap();
    let Serve { config, role, store } = built(EVERY_PART, directory.path()).unwrap();
    let real = directory.path().canonicalize().unwrap();
    assert_eq!((config.listen.to_string().as_str(), role), ("127.0.0.1:0", Role::All));
    assert_eq!((config.data_dir.as_path(), store), (Path::new("/home/ada/gateway"), directory.path().join("store.db")));
    assert_eq!(config.turn.cli_path, Some(directory.path().join("bin/codex")));
    assert_eq!((config.turn.permission, config.turn.deadline), (PermissionMode::Edit, Some(Duration::from_mins(20))));
    assert_eq!((&config.turn.directory, &config.roots), (&real.join("work"), &vec![real.join("other")]));
    assert_eq!(
        (config.interrupted, config.limits.max_running, config.limits.idle_sessions),
        (Interrupted::Resume, 2, 0)
    );
    assert_eq!((config.timing.lease, config.retries.max), (Duration::from_secs(10), 1));
    assert_eq!(config.retention.events_per_conversation, Some(1000));
    assert_eq!(config.rules[0].directory, Some(real.join("work/sub")));
    assert_eq!(config.rules[0].daily_budget_usd, Some(2.0));
    assert!(config.rules[1].reject);
}

#[test]
fn a_directory_is_trusted_and_a_key_is_kept_only_as_the_table_states() {
    let directory = TempDir::new().unwrap();
    let turn = |text: &str| built(&format!("[serve]\n{text}"), directory.path()).unwrap().config.turn;
    let default = turn("");
    assert_eq!((default.project_trust, default.keep_keys.len()), (ProjectTrust::Untrusted, 0));
    let given = turn("project_trust = \"trusted\"\nkeep_keys = [\"ACME_API_KEY\"]");
    assert_eq!((given.project_trust, given.keep_keys), (ProjectTrust::Trusted, vec!["ACME_API_KEY".to_owned()]));
}

#[test]
fn every_invalid_value_is_reported_with_its_key() {
    insta::assert_snapshot!(refusals(r#"
        [serve]
        listen = "here"
        role = "worker"
        store = "postgres://db/teamster"
        agent = "claud"
        behind_proxy = true
        tls = { certificate = "cert.pem", key = "work" }
        hosts = ["https://a"]
        directory = "work"
        roots = ["gone"]
        instructions = { files = ["gone.md"] }
        timing = { lease = "1s", heartbeat = "0s", batch = "2s" }
        [[serve.rules]]
        chats = []
        authors = ["ada"]
        agent = "codexx"
        approvers = ["me"]
        daily_budget_usd = -1.0
        [[serve.rules]]
        directory = "."
        [[serve.rules]]
        channel = "discord"
        reject = true
        model = "m"
    "#), @r#"
    listen: invalid address "here": write an IP address and a port, such as "127.0.0.1:4780" or "[::1]:4780"
    role: the role worker needs a store that several machines share; with SQLite, use the role all
    store: PostgreSQL is not supported yet: use the path of an SQLite file
    behind_proxy: either the proxy or the gateway terminates TLS: remove tls or behind_proxy
    hosts.0: "https://a" must be a host name, such as "agents.example.org"
    timing.lease: it must be at least 3s
    timing.batch: it must be at most 1s
    timing.heartbeat: it must be at least 1s
    agent: unknown agent "claud"; did you mean "claude"?; valid are: acp, claude, codex, gemini, opencode
    roots.0: cannot use DIR/gone: No such file or directory (os error 2)
    tls.certificate: cannot read DIR/cert.pem: No such file or directory (os error 2)
    tls.key: cannot read DIR/work: it is not a file
    instructions.files.0: cannot read DIR/gone.md: No such file or directory (os error 2)
    rules.0.agent: unknown agent "codexx"; did you mean "codex"?; valid are: acp, claude, codex, gemini, opencode
    rules.0.chats: the list is empty, so it matches nothing: remove it or fill it
    rules.0.authors: set channel too: another channel may have an author with the same id
    rules.0.approvers.0: "me" must be CHANNEL:AUTHOR, token:ID, author or *
    rules.0.daily_budget_usd: it must be 0 or more
    rules.1.directory: DIR must be below serve.directory or one of serve.roots
    rules.2.reject: a rule that rejects messages can select nothing else
    rules.2: a rule before this one matches every message: put that one at the end
    rules.1.directory: agents would work in DIR, which contains the data directory DIR/data, and could read the operator's token and every conversation: name another directory; or move the data with --data-dir
    tls.key: DIR/work is below DIR, where agents work: move it out of their reach
    "#);
}

#[test]
fn a_daily_budget_needs_an_agent_that_reports_its_cost() {
    let rule = |agent: &str| format!("[serve]\nagent = \"codex\"\n[[serve.rules]]\ndaily_budget_usd = 2\n{agent}");
    for agent in ["", "agent = \"gemini\""] {
        let refused = refusals(&rule(agent));
        assert!(refused.starts_with("rules.0.daily_budget_usd: the agent"), "{refused}");
        assert!(refused.contains("does not report its cost"), "{refused}");
    }
    let directory = TempDir::new().unwrap();
    assert!(built(&rule("agent = \"claude\""), directory.path()).is_ok());
}

#[test]
fn other_machines_need_tls_or_a_proxy() {
    let directory = TempDir::new().unwrap();
    let open = |text: &str| built(&format!("[serve]\n{text}"), directory.path());
    for listen in ["0.0.0.0:1", "[::]:1", "192.168.1.2:1"] {
        let listen = format!("listen = {listen:?}\n");
        assert_eq!(open(&listen).unwrap_err()[0].key, "listen");
        assert!(open(&format!("{listen}behind_proxy = true")).is_ok());
    }
    for listen in ["127.0.0.1:1", "[::1]:1", "localhost:1"] {
        assert!(open(&format!("listen = {listen:?}")).is_ok(), "{listen}");
    }
}

#[test]
fn the_built_in_values_are_those_of_the_configuration() {
    let directory = TempDir::new().unwrap();
    let table = ServeTable { directory: Some(directory.path().to_owned()), ..ServeTable::built_in() };
    let built = build(&table, Path::new("/var/lib/teamster/data"), &Registry::default()).unwrap().config;
    let defaults = crate::config::Config::default();
    assert_eq!((built.limits, built.timing, built.retries), (defaults.limits, defaults.timing, defaults.retries));
    assert_eq!((built.listen, built.turn.permission), (defaults.listen, PermissionMode::Ask));
    assert_eq!(built.turn.max_turns, defaults.turn.max_turns);
}

#[test]
fn an_invalid_rule_for_tools_is_reported_with_its_entry() {
    let text = "[serve]\nallow_tools = [\"Read\", \"not (a rule\", \"\"]\n[[serve.rules]]\nallow_tools = [\"()\"]\n";
    insta::assert_snapshot!(refusals(text), @r#"
    allow_tools.1: "not (a rule" is not a valid tool rule: the closing bracket is missing; use TOOL, TOOL(WORDS:*), TOOL(PATTERN) or mcp__SERVER__TOOL
    allow_tools.2: "" is not a valid tool rule: it names no tool; use TOOL, TOOL(WORDS:*), TOOL(PATTERN) or mcp__SERVER__TOOL
    rules.0.allow_tools.0: "()" is not a valid tool rule: its brackets are empty; use TOOL, TOOL(WORDS:*), TOOL(PATTERN) or mcp__SERVER__TOOL
    "#);
}

#[test]
fn a_channel_that_does_not_exist_is_refused_with_the_known_ones() {
    insta::assert_snapshot!(refusals(r#"
        [serve]
        tools = { other_chats = ["webhook-tickets:7", "discrod:*"] }
        [[serve.rules]]
        channel = "htpp"
        [[serve.rules]]
        channel = "tickets"
        approvers = ["slakc:7", "token:1", "telegram:5", "schedule:x"]
        [[serve.webhooks]]
        name = "tickets"
        url = "https://example.org/"
        secrets = ["0123456789abcdef"]
    "#), @r#"
    rules.0.channel: unknown channel "htpp"; did you mean "http"?; known are: http, schedule, discord, slack, telegram, webhook-tickets
    rules.1.channel: unknown channel "tickets"; did you mean "webhook-tickets"?; known are: http, schedule, discord, slack, telegram, webhook-tickets
    rules.1.approvers.0: unknown channel "slakc"; did you mean "slack"?; known are: http, schedule, discord, slack, telegram, webhook-tickets
    tools.other_chats.1: unknown channel "discrod"; did you mean "discord"?; known are: http, schedule, discord, slack, telegram, webhook-tickets
    "#);
}
