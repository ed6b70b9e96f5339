use std::path::Path;

use super::args::{RoleName, ServeArgs};
use super::values::{ServeValues, resolve};
use super::{data_dir, plan};
use crate::args;
use crate::plan::tests::TestInputs;

const FILE: &str = "/home/.config/teamster/config.toml";

fn values(args: &ServeArgs, file: &'static str, variables: &[(&'static str, &'static str)]) -> ServeValues {
    let variables = variables.iter().copied().chain([("HOME", "/home")]).collect();
    let mut inputs = TestInputs { files: vec![(FILE, file.as_bytes())], variables, stdin: None };
    resolve(args, &args::command(), &mut inputs, || "gemini")
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
    assert_eq!(value(&values(&none, "", &[]), "agent"), "gemini (the best one installed)");
    let program = values(&none, "[serve]\ncli_path = '/bin/x'\n", &[]);
    assert_eq!(value(&program, "agent"), "claude (the best one installed)");
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
    /home/.config/teamster/config.toml:2: serve.listen: invalid type: integer `1`, expected a string
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
