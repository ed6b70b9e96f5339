//! The command without arguments, and the agent that is used if none is named.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::command::ended;

/// The command in an empty environment, with these programs.
fn teamster(folder: &Path, programs: &[&str], args: &[&str]) -> Command {
    let bin = folder.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    for program in programs {
        let path = bin.join(program);
        std::fs::write(&path, "#!/bin/sh\nexit 3\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_teamster"));
    command.env_clear().env("PATH", bin).env("HOME", folder).args(args).stdin(Stdio::null());
    command
}

#[test]
fn without_arguments_it_names_the_next_command_to_type() {
    let folder = tempfile::tempdir().unwrap();
    let screen = ended(teamster(folder.path(), &[], &[]));
    assert_eq!(screen.code, Some(0));
    assert!(screen.out.contains("install Node.js, which includes npm:\n  https://nodejs.org"), "{}", screen.out);
    let screen = ended(teamster(folder.path(), &["npm"], &[]));
    assert!(screen.out.contains("Next: install one of them, for example:\n  npm install -g"), "{}", screen.out);
    let screen = ended(teamster(folder.path(), &["codex"], &[]));
    assert!(screen.out.contains("Next: log in to codex. Run `codex login`"), "{}", screen.out);
}

#[test]
fn the_key_of_a_provider_that_codex_is_configured_for_is_a_login() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(".codex")).unwrap();
    let config = "model_provider = 'mine'\n[model_providers.mine]\nenv_key = 'MY_KEY'\n";
    std::fs::write(folder.path().join(".codex/config.toml"), config).unwrap();
    let mut command = teamster(folder.path(), &["codex"], &[]);
    let screen = ended(std::mem::replace(command.env("MY_KEY", "k"), Command::new("true")));
    assert!(screen.out.contains("✓ codex     ready"), "{}", screen.out);
    std::fs::write(folder.path().join("bin/codex"), "#!/bin/sh\necho codex-cli 0.169.0\n").unwrap();
    let mut doctor = Command::new(env!("CARGO_BIN_EXE_teamster"));
    doctor.env_clear().env("PATH", folder.path().join("bin")).env("HOME", folder.path());
    let report = ended(std::mem::replace(doctor.arg("doctor").stdin(Stdio::null()), Command::new("true")));
    assert!(report.out.contains("set MY_KEY, the key of the provider"), "{}", report.out);
    assert!(!report.out.contains("CODEX_API_KEY"), "{}", report.out);
}

#[test]
fn claude_is_the_default_if_it_is_installed_and_else_the_first_with_a_login() {
    let folder = tempfile::tempdir().unwrap();
    let agent = |programs: &[&str], variables: &[(&str, &str)]| {
        let mut command = teamster(folder.path(), programs, &["run", "--help"]);
        command.envs(variables.iter().copied());
        let help = ended(command).out;
        let (_, default) = help.split_once("Use this agent").unwrap();
        let (_, default) = default.split_once("[default: ").unwrap();
        default.split(']').next().unwrap().to_owned()
    };
    assert_eq!(agent(&[], &[]), "claude");
    assert_eq!(agent(&["codex", "gemini"], &[]), "codex");
    assert_eq!(agent(&[], &[("GEMINI_API_KEY", "k")]), "gemini");
    let run = ended(std::mem::replace(
        teamster(folder.path(), &[], &["run", "hi"]).env("GEMINI_API_KEY", "k"),
        Command::new("true"),
    ));
    assert!(run.err.contains("the agent is gemini: claude is not installed"), "{}", run.err);
    assert_eq!(agent(&["claude"], &[("GEMINI_API_KEY", "k")]), "claude");
    for auto in [&["run", "--agent", "auto", "hi"][..], &["run", "hi"]] {
        let mut command = teamster(folder.path(), &[], auto);
        let run = ended(std::mem::replace(
            command.env("GEMINI_API_KEY", "k").env("AGENT_BACKEND", "auto"),
            Command::new("true"),
        ));
        assert!(run.err.contains("the agent is gemini (auto: "), "{}", run.err);
    }
    assert_eq!(agent(&[], &[("GEMINI_API_KEY", "k"), ("AGENT_BACKEND", "codex")]), "codex");
}

#[test]
fn an_agent_that_is_not_installed_is_named_with_the_command_that_installs_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = ended(teamster(folder.path(), &[], &["run", "--agent", "codex", "hi"]));
    assert_eq!(run.code, Some(127));
    assert!(run.err.contains("hint: install Node.js (https://nodejs.org/en/download), then npm"), "{}", run.err);
    let run = ended(teamster(folder.path(), &["npm"], &["run", "--agent", "codex", "hi"]));
    assert!(run.err.contains("hint: npm install -g @openai/codex"), "{}", run.err);
}
