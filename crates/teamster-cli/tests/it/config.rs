//! `teamster config`, and the files that it manages.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::command::{ANSWER, Ended, ended, teamster};

/// Runs `teamster config` with this home.
fn config(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_teamster"));
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", home);
    command.arg("config").args(args).stdin(Stdio::null()).current_dir(home);
    command
}

fn config_ended(home: &Path, args: &[&str]) -> Ended {
    ended(config(home, args))
}

#[test]
fn init_writes_a_valid_private_file_once() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(".config/teamster/config.toml");
    assert_eq!(config_ended(home.path(), &["path"]).out.trim(), file.to_str().unwrap());
    let first = config_ended(home.path(), &["init"]);
    assert_eq!(first.code, Some(0), "{}", first.err);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let again = config_ended(home.path(), &["init"]);
    assert_eq!(again.code, Some(2));
    assert!(again.err.contains("exists and is kept"), "{}", again.err);
    assert_eq!(config_ended(home.path(), &["show"]).code, Some(0));
}

#[test]
fn a_syntax_error_names_its_key_and_the_missing_quotes() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("c.toml");
    let shown = |text: &str| {
        fs::write(&file, text).unwrap();
        config_ended(home.path(), &["show", "--config", file.to_str().unwrap()]).err
    };
    let twice = shown("[defaults]\nmodel = 'a'\nmodel = 'b'\n");
    assert!(twice.contains("c.toml:3: the key \"model\" is set twice"), "{twice}");
    let bare = shown("[serve]\nlisten = 127.0.0.1:4780 # here\n");
    assert!(bare.contains("c.toml:2: ") && bare.contains("needs quotes: listen = \"127.0.0.1:4780\""), "{bare}");
}

#[test]
fn show_prints_where_the_gateway_keeps_its_data_and_works_even_by_default() {
    let home = tempfile::tempdir().unwrap();
    let shown = config_ended(home.path(), &["show"]);
    let line = |key: &str| {
        let found = shown.out.lines().find(|line| line.starts_with(&format!("{key} ")));
        found.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("serve.data_dir"), "serve.data_dir ~/.local/share/teamster built-in");
    assert_eq!(line("serve.store"), "serve.store ~/.local/share/teamster/gateway.db built-in");
    assert!(line("serve.directory").contains("the directory of the start"), "{}", shown.out);
    assert_eq!(line("serve.delivery.first_delay"), "");
    assert!(shown.out.contains("more keys have their built-in values (--all prints them)"), "{}", shown.out);
    let shown = config_ended(home.path(), &["show", "--all"]);
    for value in ["rules none", "hooks none", "webhooks none", "delivery.first_delay 1s", "timing.batch 25ms"] {
        let line = format!("serve.{value} built-in");
        let is_line = |found: &str| found.split_whitespace().eq(line.split(' '));
        assert!(shown.out.lines().any(is_line), "{line}: {}", shown.out);
    }
}

#[test]
fn show_prints_each_value_with_its_origin_and_no_secret() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("c.toml");
    fs::write(&file, "[defaults]\nmodel = 'm'\nenv = { KEY = 's3cret' }\n[profiles.p]\neffort = 'low'\n").unwrap();
    let mut command = config(home.path(), &["show", "--config", file.to_str().unwrap(), "--profile", "p"]);
    command.env("TEAMSTER_MAX_TURNS", "7");
    let shown = ended(command);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    let line = |key: &str| {
        let found = shown.out.lines().find(|line| line.starts_with(&format!("{key} ")));
        found.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let path = file.to_str().unwrap();
    assert_eq!(line("model"), "model m ~/c.toml:2");
    assert_eq!(line("effort"), "effort low ~/c.toml:5 (profile p)");
    assert_eq!(line("max_turns"), "max_turns 7 environment: TEAMSTER_MAX_TURNS");
    assert_eq!(line("permission"), "permission ask built-in");
    assert_eq!(line("env"), "env KEY=... ~/c.toml:3");
    let json = config_ended(home.path(), &["show", "--config", path, "--json"]);
    let document: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(document["model"]["value"], "m");
    assert_eq!(document["model"]["origin"]["line"], 2);
    assert!(!json.out.contains("s3cret") && !shown.out.contains("s3cret"));
}

#[test]
fn edit_opens_the_editor_and_checks_the_file_after_it() {
    let home = tempfile::tempdir().unwrap();
    let with_editor = |editor: &str| {
        let mut command = config(home.path(), &["edit"]);
        command.env("EDITOR", editor);
        ended(command)
    };
    let valid = with_editor("printf '[defaults]\\nmodel = \"m\"\\n' >");
    assert_eq!(valid.code, Some(0), "{}", valid.err);
    assert!(valid.out.contains("is valid"), "{}", valid.out);
    let invalid = with_editor("printf '[defaults]\\nmodle = \"m\"\\n' >");
    assert_eq!(invalid.code, Some(1));
    assert!(invalid.err.contains("config.toml:2: unknown setting \"modle\"; did you mean"), "{}", invalid.err);
    let failed = with_editor("exit 3;");
    assert_eq!(failed.code, Some(1));
    assert!(failed.err.contains("the editor exit 3; failed"), "{}", failed.err);
}

#[test]
fn a_project_file_is_used_once_its_directory_is_trusted() {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().canonicalize().unwrap().join("project");
    fs::create_dir_all(project.join("sub")).unwrap();
    fs::create_dir(project.join(".git")).unwrap();
    let file = project.join(".teamster.toml");
    fs::write(&file, "[defaults]\nmodel = 'of-the-project'\n").unwrap();
    let arguments = home.path().join("arguments");
    let script = format!("printf '%s\\n' \"$@\" > \"$ARGUMENTS\"; {ANSWER}");
    let run = || {
        let mut command = teamster(&script, &["hi"]);
        command.env("HOME", home.path()).env("ARGUMENTS", &arguments).current_dir(project.join("sub"));
        let ended = ended(command);
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        (ended.err, fs::read_to_string(&arguments).unwrap().contains("--model=of-the-project"))
    };
    let (err, used) = run();
    assert!(err.contains("teamster config trust") && !used, "{err}");
    let path = project.to_str().unwrap();
    let trusted = config_ended(home.path(), &["trust", path]);
    assert_eq!((trusted.code, trusted.out), (Some(0), format!("{path} is trusted now\n")), "{}", trusted.err);
    assert_eq!(config_ended(home.path(), &["trust", "--list"]).out, format!("{path}\n"));
    let (err, used) = run();
    assert!(used && !err.contains("trust"), "{err}");
    assert_eq!(config_ended(home.path(), &["trust", "--remove", path]).out, format!("{path} is no longer trusted\n"));
    assert!(!run().1);
    fs::write(&file, "[defaults]\nallow_tool = 'Bash'\n").unwrap();
    let refused = config_ended(home.path(), &["trust", path]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains(".teamster.toml:2: allow_tool"), "{}", refused.err);
}

#[test]
fn a_problem_in_the_file_stops_a_run_and_not_doctor() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("c.toml");
    fs::write(&file, "[defaults]\npermision = 'ask'\n[agents.other]\nprotocol = 'acp'\ncommand = '/bin/true'\n")
        .unwrap();
    let mut command = teamster("exit 9", &["hi"]);
    command.env("TEAMSTER_CONFIG", &file);
    let run = ended(command);
    assert_eq!(run.code, Some(2), "{}", run.err);
    assert!(run.err.contains("c.toml:2: unknown setting \"permision\"; did you mean \"permission\"?"), "{}", run.err);
    let mut command = crate::command::command("doctor", "echo 2.1.197", &[]);
    command.env("TEAMSTER_CONFIG", &file);
    let doctor = ended(command);
    assert_eq!(doctor.code, Some(1), "{}", doctor.err);
    assert!(doctor.err.contains("c.toml:2"), "{}", doctor.err);
    assert!(doctor.out.contains("other"), "{}", doctor.out);
}

/// Returns a project with this file, in a home with these defaults of the user.
fn project(defaults: &str, file: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let (own, project) = (home.path().join(".config/teamster"), home.path().join("project"));
    fs::create_dir_all(&own).unwrap();
    fs::create_dir(&project).unwrap();
    fs::write(own.join("config.toml"), format!("[defaults]\n{defaults}\n")).unwrap();
    fs::write(project.join(".teamster.toml"), format!("[defaults]\n{file}\n")).unwrap();
    let project = project.canonicalize().unwrap();
    (home, project)
}

/// Returns the value of a setting in a project.
fn shown(home: &Path, project: &Path, key: &str) -> Option<String> {
    let shown = config_ended(home, &["show", "--json", "--cwd", project.to_str().unwrap()]);
    let document: serde_json::Value = serde_json::from_str(&shown.out).unwrap();
    document[key]["value"].as_str().map(str::to_owned)
}

#[test]
fn a_project_cannot_remove_a_limit_of_the_user() {
    for (value, expected) in [("0", "5m"), ("\"0s\"", "5m"), ("\"6m\"", "5m"), ("\"4m\"", "4m")] {
        let (home, project) = project("deadline = '5m'", &format!("deadline = {value}"));
        let trusted = config_ended(home.path(), &["trust", project.to_str().unwrap()]);
        assert_eq!(trusted.code, Some(0), "{}", trusted.err);
        assert_eq!(shown(home.path(), &project, "deadline").as_deref(), Some(expected), "{value}");
    }
    let (home, project) = project("retries = 2", "retries = 0");
    config_ended(home.path(), &["trust", project.to_str().unwrap()]);
    assert_eq!(shown(home.path(), &project, "retries").as_deref(), Some("0"));
}

#[test]
fn a_trusted_directory_does_not_make_one_with_a_similar_name_trusted() {
    let (home, project) = project("", "model = 'm'");
    let similar = home.path().join("project\r");
    fs::create_dir(&similar).unwrap();
    fs::copy(project.join(".teamster.toml"), similar.join(".teamster.toml")).unwrap();
    let refused = config_ended(home.path(), &["trust", similar.to_str().unwrap()]);
    assert!(refused.err.contains("the path contains a line break"), "{}", refused.err);
    assert_eq!(config_ended(home.path(), &["trust", "--list"]).out, "");
    assert_eq!(shown(home.path(), &project, "model"), None);
}

#[test]
fn a_project_file_without_an_end_is_an_error_at_once() {
    let (home, project) = project("", "");
    let path = project.join(".teamster.toml");
    let trust = || config_ended(home.path(), &["trust", project.to_str().unwrap()]);
    assert_eq!(trust().code, Some(0));
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    assert!(trust().err.contains("it is not a regular file"));
    fs::remove_file(&path).unwrap();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    assert!(trust().err.contains("it is not a regular file"));
    let shown = config_ended(home.path(), &["show", "--cwd", project.to_str().unwrap()]);
    assert!(shown.err.contains("it is not a regular file"), "{}", shown.err);
    fs::remove_file(&path).unwrap();
    fs::write(&path, "#".repeat((1 << 20) + 1)).unwrap();
    assert!(trust().err.contains("it has more than 1048576 bytes"));
}

#[test]
fn a_number_in_another_base_is_not_misread() {
    let (home, _) = project("max_turns = 0x10", "");
    let refused = config_ended(home.path(), &["show"]);
    assert!(refused.err.contains("a whole number from 1 is needed"), "{}", refused.err);
}
