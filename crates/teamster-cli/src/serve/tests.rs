use std::path::Path;

use super::args::{RoleName, ServeArgs};
use super::values::{ServeValues, Source, resolve};
use super::{data_dir, plan};
use crate::args;
use crate::plan::tests::TestInputs;
use crate::printable::Printable;

const FILE: &str = "/home/.config/teamster/config.toml";

fn values(args: &ServeArgs, file: &'static str, variables: &[(&'static str, &'static str)]) -> ServeValues {
    let variables = variables.iter().copied().chain([("HOME", "/home")]).collect();
    let mut inputs = TestInputs { files: vec![(FILE, file.as_bytes())], variables, stdin: None };
    resolve(args, &args::command(), &mut inputs, || "claude")
}

/// Returns a value and its origin.
fn value(values: &ServeValues, key: &str) -> String {
    let found = values.values.get(key).map(|(value, source)| format!("{value} ({})", source.text().as_str()));
    found.unwrap_or_default().replace('"', "")
}

#[test]
fn an_option_overrides_a_variable_and_a_variable_overrides_the_file() {
    let file = "[defaults]\nmodel = 'd'\nmax_turns = 3\n[serve]\nlisten = '127.0.0.1:1'\nmodel = 's'\nrole = 'all'\n";
    let none = ServeArgs::default();
    let from_file = values(&none, file, &[]);
    assert!(from_file.problems.is_empty(), "{:?}", from_file.problems);
    assert_eq!(value(&from_file, "listen"), format!("127.0.0.1:1 ({FILE}:5)"));
    assert_eq!(value(&from_file, "model"), format!("s ({FILE}:6)"));
    assert_eq!(value(&from_file, "max_turns"), format!("3 ({FILE}:3)"));
    assert_eq!(value(&from_file, "permission"), "ask (built-in)");
    assert_eq!(value(&from_file, "limits.max_running"), "16 (built-in)");
    let variables = [("TEAMSTER_LISTEN", "127.0.0.1:2"), ("BACKEND_MODEL", "v"), ("WORKING_DIR", "/w")];
    let from_variables = values(&none, file, &variables);
    assert_eq!(value(&from_variables, "listen"), "127.0.0.1:2 (environment: TEAMSTER_LISTEN)");
    assert_eq!(value(&from_variables, "model"), "v (environment: BACKEND_MODEL)");
    assert_eq!(value(&from_variables, "directory"), "/w (environment: WORKING_DIR)");
    let args = ServeArgs { listen: Some("127.0.0.1:3".to_owned()), role: Some(RoleName::Api), ..none };
    let from_options = values(&args, file, &variables);
    assert_eq!(value(&from_options, "listen"), "127.0.0.1:3 (--listen)");
    assert_eq!(value(&from_options, "role"), "api (--role)");
}

#[test]
fn the_program_and_the_model_belong_to_their_agent() {
    let file = "[defaults]\nagent = 'claude'\nmodel = 'opus'\ncli_path = '/bin/claude'\n[serve]\nagent = 'codex'\n";
    let none = ServeArgs::default();
    let other = values(&none, file, &[]);
    assert_eq!((value(&other, "model"), value(&other, "cli_path")), (String::new(), String::new()));
    let same = values(&none, file, &[("AGENT_BACKEND", "claude"), ("BACKEND_MODEL", "sonnet")]);
    assert_eq!(value(&same, "agent"), "claude (environment: AGENT_BACKEND)");
    assert_eq!(value(&same, "model"), "sonnet (environment: BACKEND_MODEL)");
    assert_eq!(value(&values(&none, "", &[]), "agent"), "claude (chosen on this machine)");
    let program = values(&none, "[serve]\ncli_path = '/bin/x'\n", &[]);
    assert_eq!(value(&program, "agent"), "claude (chosen on this machine)");
}

#[test]
fn the_agent_that_was_chosen_on_this_machine_is_noted() {
    let mut inputs = TestInputs { variables: vec![("HOME", "/home")], ..TestInputs::default() };
    let found = resolve(&ServeArgs::default(), &args::command(), &mut inputs, || "codex");
    assert_eq!(value(&found, "agent"), "codex (chosen on this machine)");
    let notes: Vec<&str> = found.notes.iter().map(Printable::as_str).collect();
    assert_eq!(notes, ["the agent is codex: claude is not installed (--agent selects another one)"]);
}

#[test]
fn an_invalid_number_of_turns_is_a_note_and_25() {
    let found = values(&ServeArgs::default(), "", &[("BACKEND_MAX_TURNS", "many")]);
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    assert_eq!(value(&found, "max_turns"), "25 (environment: BACKEND_MAX_TURNS)");
    assert!(found.notes[0].as_str().contains("BACKEND_MAX_TURNS") && found.notes[0].as_str().contains("25 is used"));
    assert_eq!(value(&values(&ServeArgs::default(), "", &[]), "max_turns"), "25 (built-in)");
}

#[test]
fn the_permission_of_the_environment_overrides_the_file() {
    let found = values(&ServeArgs::default(), "[serve]\npermission = 'ask'\n", &[("TEAMSTER_PERMISSION", "read-only")]);
    assert_eq!(value(&found, "permission"), "read-only (environment: TEAMSTER_PERMISSION)");
    let invalid = values(&ServeArgs::default(), "", &[("TEAMSTER_PERMISSION", "everything")]);
    assert!(invalid.problems[0].to_string().contains("TEAMSTER_PERMISSION"), "{:?}", invalid.problems);
}

#[test]
fn a_time_limit_that_is_no_number_is_reported_as_it_was_written() {
    let found = values(&ServeArgs::default(), "", &[("QUERY_TIMEOUT_MS", "abc")]);
    let problem = found.problems[0].to_string();
    assert_eq!(
        problem,
        "environment variable QUERY_TIMEOUT_MS: invalid value \"abc\": use a whole number of milliseconds, such as 90000"
    );
}

#[test]
fn variables_that_serve_documents_need_no_note() {
    let found = values(&ServeArgs::default(), "", &[("ALLOWED_TOOLS", "Read"), ("BACKEND_MODEL", "m")]);
    assert!(found.notes.is_empty(), "{:?}", found.notes);
}

#[cfg(feature = "discord")]
#[test]
fn the_variable_of_existing_deployments_starts_the_discord_channel_unless_the_file_names_a_token() {
    let token = [("DISCORD_TOKEN", "a.b.c")];
    let found = values(&ServeArgs::default(), "", &token);
    assert_eq!(value(&found, "discord.token_env"), "DISCORD_TOKEN (environment: DISCORD_TOKEN)");
    assert!(found.notes[0].as_str().contains("no rule admits anyone"), "{:?}", found.notes);
    let rule = "[[serve.rules]]\nchannel = 'discord'\n[serve.discord]\nthreads = true\n";
    let found = values(&ServeArgs::default(), rule, &token);
    assert_eq!(found.table().unwrap().discord.unwrap().token_env.as_deref(), Some("DISCORD_TOKEN"));
    assert!(found.notes.is_empty(), "{:?}", found.notes);
    let file = "[serve.discord]\nthreads = true\ntoken_file = '/x'\n";
    let table = values(&ServeArgs::default(), file, &token).table().unwrap().discord.unwrap();
    assert_eq!((table.token_env, table.threads), (None, Some(true)));
    assert_eq!(values(&ServeArgs::default(), "", &[]).table().unwrap().discord, None);
}

#[test]
fn one_line_or_variable_gives_the_defaults_of_a_deployment_of_aetheel() {
    let token = [("DISCORD_TOKEN", "a.b.c"), ("TEAMSTER_COMPAT", "aetheel")];
    for (file, variables) in [("[serve]\ncompat = 'aetheel'\n", &token[..1]), ("", &token[..])] {
        let found = values(&ServeArgs::default(), file, variables);
        assert!(found.problems.is_empty(), "{:?}", found.problems);
        assert_eq!(value(&found, "permission"), "full (compat)");
        assert_eq!(value(&found, "project_trust"), "trusted (compat)");
        assert_eq!(value(&found, "retries.after_tools"), "true (compat)");
        assert_eq!(value(&found, "retries.max"), "3 (built-in)");
        let warns = |note: &&Printable| note.as_str().contains("every member of the Discord servers");
        assert_eq!(found.notes.iter().filter(warns).count(), 1, "{:?}", found.notes);
        assert!(!found.notes.iter().any(|note| note.as_str().contains("no rule admits")), "{:?}", found.notes);
        let rules = found.table().unwrap().rules;
        assert_eq!(rules.len(), 1);
        assert_eq!((rules[0].channel.as_deref(), &rules[0].authors), (Some("discord"), &None));
    }
    // What is written overrides it, and rules of the file replace its rule.
    let file =
        "[serve]\ncompat = 'aetheel'\npermission = 'ask'\n[[serve.rules]]\nchannel = 'discord'\nauthors = ['1']\n";
    let found = values(&ServeArgs::default(), file, &token[..1]);
    assert!(value(&found, "permission").starts_with("ask ("), "{}", value(&found, "permission"));
    assert_eq!(found.table().unwrap().rules[0].authors.as_deref(), Some(&["1".to_owned()][..]));
    // Without a bot there is no rule, and an unknown name is an error.
    assert_eq!(values(&ServeArgs::default(), "[serve]\ncompat = 'aetheel'\n", &[]).table().unwrap().rules, []);
    assert!(values(&ServeArgs::default(), "", &[("TEAMSTER_COMPAT", "other")]).table().is_err());
}

#[test]
fn a_value_that_cannot_be_read_has_one_problem() {
    let file = "[[serve.hooks]]\nname = 'a'\nevents = ['turn_fnished']\ncommand = ['x']\n";
    let problems = problems_of(file);
    assert_eq!(problems.lines().count(), 1, "{problems}");
    assert!(
        problems.contains("serve.hooks.0.events.0: \"turn_fnished\" is not valid; use message_accepted"),
        "{problems}"
    );
}

#[test]
fn a_rule_for_tools_and_a_webhook_are_reported_with_the_lines_of_their_keys() {
    let file = "[serve]\nallow_tools = [\n  'Read',\n  'not (a rule',\n]\n[[serve.webhooks]]\nname = 'ci'\nurl = 'http://127.0.0.1/'\nsecrets = ['short']\n";
    let problems = problems_of(file);
    for start in
        [":4: serve.allow_tools.1: \"not (a rule\"", ":8: serve.webhooks.0.url: ", ":9: serve.webhooks.0.secrets.0: "]
    {
        assert!(problems.contains(&format!("{FILE}{start}")), "{start}: {problems}");
    }
}

/// Returns the problems of a file, in a directory that exists.
fn problems_of(file: &'static str) -> String {
    let work = tempfile::tempdir().unwrap();
    let mut found = values(&ServeArgs::default(), file, &[]);
    let directory = work.path().to_str().unwrap().into();
    found.values.insert("directory".to_owned(), (directory, Source::BuiltIn));
    let inputs = TestInputs { files: Vec::new(), variables: vec![("HOME", "/nonexistent")], stdin: None };
    let problems = plan::plan(&found, &inputs).expect_err("problems");
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn each_problem_names_its_origin() {
    let problems = |args: &ServeArgs, file: &'static str, variables: &[(&'static str, &'static str)]| {
        let values = values(args, file, variables);
        let inputs = TestInputs { files: Vec::new(), variables: vec![("HOME", "/tmp")], stdin: None };
        let problems = plan::plan(&values, &inputs).expect_err("problems");
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let args = ServeArgs { role: Some(RoleName::Worker), ..ServeArgs::default() };
    let file =
        "[serve]\nlisten = 'x'\ndirectory = '/'\n[serve.timing]\nlease = '1s'\n[[serve.rules]]\nagent = 'codx'\n";
    let variables = [("AGENT_BACKEND", "claud"), ("TEAMSTER_STORE", "postgres://db/x")];
    insta::assert_snapshot!(problems(&args, file, &variables), @r#"
    /home/.config/teamster/config.toml:2: serve.listen: invalid address "x": write an IP address and a port, such as "127.0.0.1:4780" or "[::1]:4780"
    --role: the role worker needs a store that several machines share; with SQLite, use the role all
    environment variable TEAMSTER_STORE: PostgreSQL is not supported yet: use the path of an SQLite file
    /home/.config/teamster/config.toml:5: serve.timing.lease: it must be at least 3s
    environment variable AGENT_BACKEND: unknown agent "claud"; did you mean "claude"?; valid are: acp, claude, codex, gemini, opencode
    /home/.config/teamster/config.toml:7: serve.rules.0.agent: unknown agent "codx"; did you mean "codex"?; valid are: acp, claude, codex, gemini, opencode
    /home/.config/teamster/config.toml:3: serve.directory: agents would work in /, which contains the data directory /tmp/.local/share/teamster, and could read the operator's token and every conversation: start the gateway in another directory or set directory (WORKING_DIR), for example /work; or move the data with --data-dir
    "#);
    insta::assert_snapshot!(problems(&ServeArgs::default(), "[serve]\nlisten = 1\npermision = 'ask'\n", &[]), @r#"
    /home/.config/teamster/config.toml:2: serve.listen: 1 is not a text
    /home/.config/teamster/config.toml:3: unknown key "serve.permision"; did you mean "permission"?
    serve.directory: cannot use /here: No such file or directory (os error 2)
    "#);
}

#[test]
fn two_gateways_cannot_share_a_data_directory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let first = data_dir::open(&path).unwrap();
    assert_eq!(std::fs::read_to_string(path.join("gateway.lock")).unwrap().trim(), std::process::id().to_string());
    let host = first.host.clone();
    drop(first);
    assert_eq!(data_dir::open(&path).unwrap().host, host, "the same after each start");
    assert!(data_dir::open(Path::new("/proc/none")).unwrap_err().to_string().contains("/proc/none"));
}

#[test]
fn a_check_of_a_data_directory_creates_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    data_dir::check(&path).unwrap();
    assert!(!path.exists());
    drop(data_dir::open(&path).unwrap());
    data_dir::check(&path).unwrap();
}

#[test]
fn a_data_directory_that_others_can_change_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    drop(data_dir::open(&path).unwrap());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    for mode in [0o777, 0o1777, 0o770, 0o702] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let refused = data_dir::open(&path).unwrap_err().to_string();
        assert!(refused.contains("other users can write it"), "{mode:o}: {refused}");
    }
}
