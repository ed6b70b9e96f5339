use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

use insta::assert_snapshot;

use super::project_rule::ProjectRule;
use super::*;
use crate::args::{self, Command, CommonArgs, Invocation};
use crate::plan::tests::TestInputs;

const CONFIG: &str = "/home/.config/teamster/config.toml";

/// Returns inputs with a configuration file, a project's file, and the project trusted.
fn inputs(user: &'static str, project: &'static str, variables: &[(&'static str, &'static str)]) -> TestInputs {
    let files: Vec<(&str, &[u8])> = vec![
        (CONFIG, user.as_bytes()),
        ("/here/.git/HEAD", b""),
        ("/here/.teamster.toml", project.as_bytes()),
        ("/home/.local/state/teamster/trusted-projects", b"/else\n/here\n"),
    ];
    let variables = variables.iter().copied().chain([("HOME", "/home")]).collect();
    TestInputs { files, variables, stdin: None }
}

fn parse_with(argv: &[&str], mut inputs: TestInputs) -> Result<Invocation, Refusal> {
    let argv: Vec<OsString> = std::iter::once(&"teamster").chain(argv).map(OsString::from).collect();
    args::parse(&argv, &mut inputs, || "claude")
}

fn common(argv: &[&str], inputs: TestInputs) -> CommonArgs {
    match parse_with(argv, inputs).expect("valid").cli.command {
        Command::Run(run) => run.common,
        Command::Chat(chat) => chat.conversation.common,
        Command::Session(session) => session.conversation.common,
        other => panic!("{other:?}"),
    }
}

fn problems(inputs: TestInputs) -> String {
    match parse_with(&["run", "hi"], inputs) {
        Err(Refusal::Config(problems)) => problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_source_overrides_those_before_it() {
    let user =
        "[defaults]\nmodel = 'user'\nprofile = 'p'\n[profiles.p]\nmodel = 'profile'\n[profiles.q]\neffort = 'low'";
    let project = "[defaults]\nmodel = 'project'";
    let environment = [("TEAMSTER_MODEL", "variable")];
    let older = [("BACKEND_MODEL", "older")];
    let model = |argv: &[&str], user, project, variables: &[_]| {
        common(&[&["run", "hi"], argv].concat(), inputs(user, project, variables)).model
    };
    assert_eq!(model(&[], "", "", &[]), None);
    assert_eq!(model(&[], "[defaults]\nmodel = 'user'", "", &[]).as_deref(), Some("user"));
    assert_eq!(model(&["--profile", "q"], user, project, &[]).as_deref(), Some("project"));
    assert_eq!(model(&[], user, project, &[]).as_deref(), Some("profile"));
    assert_eq!(model(&[], user, project, &older).as_deref(), Some("older"));
    assert_eq!(model(&[], user, project, &[environment, older].concat()).as_deref(), Some("variable"));
    assert_eq!(model(&["--model=flag"], user, project, &environment).as_deref(), Some("flag"));
    assert_eq!(model(&[], user, project, &[("TEAMSTER_PROFILE", "q")]).as_deref(), Some("project"));
    let other = model(&["--config=/here/.teamster.toml"], user, project, &[("TEAMSTER_CONFIG", CONFIG)]);
    assert_eq!(other.as_deref(), Some("project"), "the file of TEAMSTER_CONFIG is not read");
}

#[test]
fn values_apply_to_run_chat_and_session() {
    for command in AGENT_COMMANDS {
        let common = common(&[command], inputs("[defaults]\nagent = 'codex'", "", &[("TEAMSTER_EFFORT", "low")]));
        assert_eq!((&*common.agent, common.effort.as_deref()), ("codex", Some("low")), "{command}");
    }
}

#[test]
fn a_value_replaces_values_of_options_that_exclude_it() {
    let user = "[defaults]\nsystem_prompt = 'a'\nwithhold_keys = true\n[profiles.p]\nsystem_prompt_file = 'b'";
    let file = |argv: &[&str]| {
        let common = common(&[&["run", "hi"], argv].concat(), inputs(user, "", &[]));
        (common.system_prompt, common.system_prompt_file.map(|path| path.to_string_lossy().into_owned()))
    };
    assert_eq!(file(&[]), (Some("a".to_owned()), None));
    assert_eq!(file(&["--profile=p"]), (None, Some("/home/.config/teamster/b".to_owned())));
    assert_eq!(file(&["--profile=p", "--system-prompt=c"]), (Some("c".to_owned()), None));
    let continued = common(&["run", "--continue", "hi"], inputs("", "", &[("TEAMSTER_RESUME", "id")]));
    assert!(continued.continue_last && continued.resume.is_none());
    let kept = common(&["run", "--env-only=A", "hi"], inputs(user, "", &[]));
    assert!(!kept.withhold_keys);
}

#[test]
fn a_switch_that_is_on_can_be_turned_off() {
    let user = "[defaults]\nmcp_strict = true\nkeep_background = false";
    let switches = |argv: &[&str], variables: &[_]| {
        let common = common(&[&["run", "hi"], argv].concat(), inputs(user, "", variables));
        (common.mcp_strict, common.keep_background)
    };
    assert_eq!(switches(&[], &[]), (true, false));
    assert_eq!(switches(&["--no-mcp-strict", "--keep-background"], &[]), (false, true));
    assert_eq!(switches(&["--no-mcp-strict", "--mcp-strict"], &[]), (true, false));
    assert_eq!(switches(&[], &[("TEAMSTER_MCP_STRICT", "no"), ("TEAMSTER_KEEP_BACKGROUND", "1")]), (false, true));
}

#[test]
fn an_option_finds_what_it_needs_in_other_sources() {
    let forked = common(&["run", "--fork", "hi"], inputs("", "", &[("TEAMSTER_RESUME", "id")]));
    assert_eq!((forked.fork, forked.resume.as_deref()), (true, Some("id")));
    let user = "[defaults]\nwithhold_keys = true";
    assert_eq!(common(&["run", "--keep-key=A", "hi"], inputs(user, "", &[])).keep_key, ["A"]);
    assert!(matches!(parse_with(&["run", "--fork", "hi"], inputs("", "", &[])), Err(Refusal::Usage(_))));
}

#[test]
fn lists_have_one_value_per_line_and_rules_also_commas() {
    let variables = [("TEAMSTER_ALLOW_TOOL", "Read,Bash(echo a,b)\nEdit"), ("TEAMSTER_ADD_DIR", "/a,b\n/c\n")];
    let common = common(&["run", "hi"], inputs("", "", &variables));
    assert_eq!(common.allow_tool, ["Read", "Bash(echo a,b)", "Edit"]);
    assert_eq!(common.add_dir, [PathBuf::from("/a,b"), PathBuf::from("/c")]);
}

#[test]
fn values_of_a_file_have_the_types_of_toml() {
    let user = "[defaults]\nmax_turns = 7\nmax_budget = 0.5\nallow_tool = ['A(b)', 'C']\nadd_dir = '~/x'\n\
                env = { A = '1', B = 2 }\nmcp_config = [{ calc = { command = 'calc' } }, 'servers.json']\n\
                cli_path = 'claude'";
    let common = common(&["run", "hi"], inputs(user, "", &[]));
    assert_eq!(common.max_turns.map(std::num::NonZeroU32::get), Some(7));
    assert_eq!(common.max_budget, Some(0.5));
    assert_eq!(common.allow_tool, ["A(b)", "C"]);
    assert_eq!(common.add_dir, [PathBuf::from("/home/x")]);
    assert_eq!(common.env, [("A".to_owned(), "1".to_owned()), ("B".to_owned(), "2".to_owned())]);
    assert_eq!(common.mcp_config, ["{\"calc\":{\"command\":\"calc\"}}", "/home/.config/teamster/servers.json"]);
    assert_eq!(common.cli_path, Some("claude".into()));
}

#[test]
fn a_project_can_restrict_the_agent_and_nothing_else() {
    let user = "[defaults]\npermission = 'edit'\ndeny_tool = ['A']\nmax_turns = 5";
    let project = "[defaults]\npermission = 'full'\ndeny_tool = ['B']\nmax_turns = 9\nmodel = 'm'";
    let restricted = common(&["run", "hi"], inputs(user, project, &[]));
    assert_eq!(restricted.permission, args::Permission::Edit);
    assert_eq!(restricted.deny_tool, ["A", "B"]);
    assert_eq!(restricted.max_turns.map(std::num::NonZeroU32::get), Some(5));
    assert_eq!(restricted.model.as_deref(), Some("m"));
    let project = "[defaults]\npermission = 'read-only'\nmax_turns = 2";
    let restricted = common(&["run", "hi"], inputs(user, project, &[]));
    assert_eq!(restricted.permission, args::Permission::ReadOnly);
    assert_eq!(restricted.max_turns.map(std::num::NonZeroU32::get), Some(2));
    // Without a value of the user, the built-in one is the limit.
    let built_in = common(&["run", "hi"], inputs("", "[defaults]\npermission = 'edit'", &[]));
    assert_eq!(built_in.permission, args::Permission::Ask);
    // The switch of the project excludes the user's stricter list.
    let user = "[defaults]\nenv_only = ['A']";
    let kept = common(&["run", "hi"], inputs(user, "[defaults]\nwithhold_keys = true", &[]));
    assert_eq!((kept.env_only, kept.withhold_keys), (Some(vec!["A".to_owned()]), false));
}

#[test]
fn settings_that_give_permissions_are_problems_in_the_file_of_a_project() {
    assert_snapshot!(problems(inputs("", "[defaults]
allow_tool = ['Bash']
cli_path = './evil'
env = { ANTHROPIC_BASE_URL = 'http://evil' }
mcp_config = '{}'
model = 'evil/model'
project_trust = 'trusted'
withhold_keys = false
profile = 'p'
[agents.evil]
command = 'evil'
[profiles.p]
", &[])), @r"
    /here/.teamster.toml:2: allow_tool: a project's file cannot set it: it could give permissions, run programs or send data elsewhere
    /here/.teamster.toml:3: cli_path: a project's file cannot set it: it could give permissions, run programs or send data elsewhere
    /here/.teamster.toml:4: env: a project's file cannot set it: it could give permissions, run programs or send data elsewhere
    /here/.teamster.toml:5: mcp_config: a project's file cannot set it: it could give permissions, run programs or send data elsewhere
    /here/.teamster.toml:6: model: a project's file cannot select the model's provider: use a name without a slash
    /here/.teamster.toml:7: project_trust: a project's file can set it to untrusted only
    /here/.teamster.toml:8: withhold_keys: a project's file can set it to true only
    /here/.teamster.toml:9: profile: it is allowed in [defaults] of the user's file only
    /here/.teamster.toml:10: a project's file cannot have the table agents: only defaults
    /here/.teamster.toml:12: a project's file cannot have the table profiles: only defaults
    ");
}

#[test]
fn a_project_that_is_not_trusted_has_no_effect_and_causes_a_note() {
    let untrusted = || TestInputs {
        files: vec![("/here/.teamster.toml", b"[defaults]\nmodel = 'm'\nnonsense")],
        variables: vec![("HOME", "/home")],
        stdin: None,
    };
    let parsed = parse_with(&["run", "hi"], untrusted()).unwrap();
    let notes: Vec<String> = parsed.notes.iter().map(ToString::to_string).collect();
    assert_snapshot!(notes.join("\n"), @"/here/.teamster.toml is not used: its directory is not trusted; to use it: teamster config trust /here");
    assert_eq!(common(&["run", "hi"], untrusted()).model, None);
    let parsed = parse_with(&["run", "--project-trust=untrusted", "hi"], inputs("", "[defaults]\nmodel = 'm'", &[]));
    let parsed = parsed.unwrap();
    assert!(parsed.notes.is_empty());
    let Command::Run(run) = parsed.cli.command else { panic!("no run") };
    assert_eq!(run.common.model, None);
}

#[test]
fn the_file_of_a_project_is_searched_up_to_the_root_of_the_repository() {
    let model = |cwd: &str, files: Vec<(&'static str, &'static [u8])>| {
        let trust: (&str, &[u8]) = ("/home/.local/state/teamster/trusted-projects", b"/p\n/p/q\n/\n");
        let files = files.into_iter().chain([trust]).collect();
        let inputs = TestInputs { files, variables: vec![("HOME", "/home")], stdin: None };
        common(&["run", "-C", cwd, "hi"], inputs).model
    };
    let file: (&str, &[u8]) = ("/p/.teamster.toml", b"[defaults]\nmodel = 'p'");
    let inner: (&str, &[u8]) = ("/p/q/.teamster.toml", b"[defaults]\nmodel = 'q'");
    let root: (&str, &[u8]) = ("/p/.git", b"");
    assert_eq!(model("/p/q/r", vec![file, root]).as_deref(), Some("p"));
    assert_eq!(model("/p/q/r", vec![file, inner, root]).as_deref(), Some("q"));
    assert_eq!(model("/p/q/r", vec![file]), None, "outside of a repository");
    assert_eq!(model("/p", vec![file]).as_deref(), Some("p"));
    assert_eq!(model("/p/q/r", vec![("/.teamster.toml", b"[defaults]\nmodel = 'x'"), root]), None, "above the root");
}

#[test]
fn problems_name_their_place_and_what_is_allowed() {
    assert_snapshot!(problems(inputs("model = 'm'
[default]
[defaults]
modle = 'm'
permission = 'all'
max_turns = 0
timeout = 300
mcp_strict = 'yes'
model = ['a']
resume = 'id'
system_prompt = 'a'
system_prompt_file = 'b'
[profiles.review]
profile = 'x'
effort = 1.5.5
[agents.x]
protocol = 'acp'
comand = 'x'
", "", &[("TEAMSTER_OUTPUT", "xml"), ("QUERY_TIMEOUT_MS", "many"), ("TEAMSTER_FORK", "maybe")])), @r#"
    environment variable QUERY_TIMEOUT_MS: invalid value "many": use a whole number of milliseconds, such as 90000
    environment variable TEAMSTER_OUTPUT: invalid value "xml": use pretty, text, ndjson, json
    environment variable TEAMSTER_FORK: invalid value "maybe": use true or false
    /home/.config/teamster/config.toml:1: the setting model must be in the table [defaults] or [profiles.NAME]
    /home/.config/teamster/config.toml:2: unknown table "default"; did you mean "defaults"?
    /home/.config/teamster/config.toml:4: unknown setting "modle"; did you mean "model"?
    /home/.config/teamster/config.toml:5: permission: invalid value "all": use read-only, ask, edit, full
    /home/.config/teamster/config.toml:6: max_turns: invalid value "0": a whole number from 1 is needed
    /home/.config/teamster/config.toml:7: timeout: invalid value "300": time unit needed, for example 300sec or 300ms (write 500ms, 90s, 5m, 1h30m, or 0)
    /home/.config/teamster/config.toml:8: mcp_strict: true or false is needed
    /home/.config/teamster/config.toml:9: model: a list is not allowed
    /home/.config/teamster/config.toml:10: resume: it belongs to one call: use --resume
    /home/.config/teamster/config.toml:14: profile: it is allowed in [defaults] of the user's file only
    /home/.config/teamster/config.toml:15: invalid float, expected nothing; a text needs quotes: effort = "1.5.5"
    /home/.config/teamster/config.toml:18: unknown key "comand"; did you mean "command"?
    /home/.config/teamster/config.toml:12: system_prompt_file cannot be used with system_prompt
    "#);
}

#[test]
fn an_unknown_profile_is_a_problem_with_the_nearest_one() {
    let user = "[profiles.review]\n[profiles.fix]";
    assert_snapshot!(problems(inputs(user, "", &[("TEAMSTER_PROFILE", "reviw")])), @r#"unknown profile "reviw"; did you mean "review"?"#);
    assert_snapshot!(problems(inputs(user, "", &[("TEAMSTER_PROFILE", "zzz")])), @r#"unknown profile "zzz"; defined are: fix, review"#);
    assert_snapshot!(problems(inputs("", "", &[("TEAMSTER_PROFILE", "zzz")])), @r#"unknown profile "zzz"; none is defined"#);
}

#[test]
fn help_needs_no_valid_configuration() {
    for argv in [&["run", "--help"][..], &["--version"], &["help"]] {
        assert!(matches!(parse_with(argv, inputs("nonsense", "", &[])), Err(Refusal::Usage(_))), "{argv:?}");
    }
    assert!(parse_with(&["doctor"], inputs("nonsense", "", &[])).is_ok());
    assert!(parse_with(&["config", "path"], inputs("nonsense", "", &[])).is_ok());
}

#[test]
fn older_variables_whose_names_are_general_cause_a_note() {
    let variables = [("AGENT_BACKEND", "codex"), ("ALLOWED_TOOLS", "Read"), ("BACKEND_MODEL", "m")];
    let parsed = parse_with(&["run", "--model=n", "hi"], inputs("", "", &variables)).unwrap();
    let notes: Vec<String> = parsed.notes.iter().map(ToString::to_string).collect();
    assert_snapshot!(notes.join("\n"), @"--allow-tool is set by ALLOWED_TOOLS in the environment; its name is now TEAMSTER_ALLOW_TOOL");
}

#[test]
fn every_option_has_a_key_and_a_variable_of_its_own() {
    let settings = settings(&args::command());
    let unique = |names: Vec<&String>| names.iter().collect::<BTreeSet<_>>().len();
    assert_eq!(unique(settings.iter().map(|setting| &setting.key).collect()), settings.len());
    assert_eq!(unique(settings.iter().map(|setting| &setting.variable).collect()), settings.len());
    let definition = args::command();
    for command in AGENT_COMMANDS {
        let options = definition.find_subcommand(command).unwrap().get_arguments();
        let options = options.filter(|arg| !table::OF_GATEWAY.contains(&arg.get_id().as_str()));
        for option in options.filter(|arg| arg.get_long().is_some() && !arg.is_hide_set() && arg.get_id() != "help") {
            assert!(settings.iter().any(|setting| setting.id == option.get_id().as_str()), "{command} {option}");
        }
    }
    for (option, needed) in command_line::NEEDS {
        assert!(settings.iter().any(|setting| setting.id == option) && settings.iter().any(|s| s.id == needed));
    }
}

/// Returns the rule as the documentation writes it.
fn rule_text(rule: ProjectRule) -> String {
    match rule {
        ProjectRule::Any => "yes".to_owned(),
        ProjectRule::Model => "without a slash".to_owned(),
        ProjectRule::Only(value) => format!("only `{value}`"),
        ProjectRule::Lower => "to lower it".to_owned(),
        ProjectRule::Added => "added".to_owned(),
        ProjectRule::Nothing => "no".to_owned(),
    }
}

/// Returns the table of settings in `docs/configuration.md`.
fn reference() -> String {
    let mut text = String::from(
        "| key | variable | type | in files | in a project\u{2019}s file | commands |\n|---|---|---|---|---|---|\n",
    );
    for setting in settings(&args::command()) {
        let kind = match setting.kind {
            Kind::Switch => "true or false",
            Kind::One => "value",
            Kind::List => "list",
        };
        let files = match setting.scope {
            Scope::Everywhere => "yes",
            Scope::NotInProfiles => "`[defaults]`",
            Scope::OneCall => "no",
        };
        let (key, variable, commands) = (&setting.key, &setting.variable, setting.commands.join(", "));
        let older = setting.older.map(|older| format!(", `{}`", older.name)).unwrap_or_default();
        let project = if setting.scope == Scope::Everywhere { rule_text(setting.project) } else { "no".to_owned() };
        writeln!(text, "| `{key}` | `{variable}`{older} | {kind} | {files} | {project} | {commands} |").unwrap();
    }
    text
}

#[test]
fn the_reference_in_the_documentation_is_true() {
    const BEGIN: &str = "<!-- generated: UPDATE_DOCS=1 cargo test -p teamster-cli -->\n\n";
    const END: &str = "\n<!-- end -->";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (head, rest) = page.split_once(BEGIN).unwrap();
    let (table, tail) = rest.split_once(END).unwrap();
    let expected = reference().replace('\u{2019}', "'");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, format!("{head}{BEGIN}{expected}{END}{tail}")).unwrap();
    } else {
        assert_eq!(table, expected, "run UPDATE_DOCS=1 cargo test -p teamster-cli");
    }
}
