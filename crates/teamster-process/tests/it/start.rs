//! What a started program inherits, and why a start fails.

use std::{ffi::OsString, fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use teamster_process::{Frame, OutputReader, Spawn, SpawnError};

use crate::{sh, stat};

async fn output_of(spawn: &Spawn) -> Vec<String> {
    let (_tree, pipes) = crate::spawn(spawn).await.unwrap();
    let mut stdout = OutputReader::new(pipes.stdout, 1024 * 1024);
    let mut lines = Vec::new();
    while stdout.fill().await.unwrap() > 0 {
        while let Some(Frame::Line(line)) = stdout.next() {
            lines.push(String::from_utf8(line.to_vec()).unwrap());
        }
    }
    lines
}

#[tokio::test]
async fn the_program_gets_exactly_these_arguments_variables_and_directory() {
    let mut spawn = sh(
        r#"printf '%s\n' "$@"; env | grep -v -e ^_ -e ^SHLVL -e ^PWD -e ^OLDPWD | sed s/^TEAMSTER_TREE_.*/mark/ | sort; pwd; read x || echo eof"#,
    );
    spawn.args.extend(["name", "one two", "", "-x;$(id)"].map(OsString::from));
    spawn.env = [("PATH", "/usr/bin:/bin"), ("EMPTY", ""), ("KEY", "a b")].map(|(k, v)| (k.into(), v.into())).into();
    spawn.cwd = "/usr".into();
    let expected = ["one two", "", "-x;$(id)", "EMPTY=", "KEY=a b", "PATH=/usr/bin:/bin", "mark", "/usr", "eof"];
    assert_eq!(output_of(&spawn).await, expected);
}

#[tokio::test]
async fn the_program_inherits_only_its_three_standard_descriptors() {
    let (_other, _pipes) = crate::start("sleep 300").await;
    assert_eq!(
        output_of(&sh("cd /proc/self/fd; echo [0-9]*; exec 3</dev/null; ls -d /proc/$$/fd/[4-9]*")).await.len(),
        1
    );
}

#[tokio::test]
async fn the_program_leads_a_process_group_of_its_own() {
    let (tree, _pipes) = crate::start("sleep 300").await;
    assert_eq!(stat(tree.pid()).unwrap().2, tree.pid());
}

#[tokio::test]
async fn a_relative_program_is_resolved_in_the_working_directory() {
    let mut spawn = sh("echo here");
    spawn.program = "sh".into();
    spawn.cwd = "/bin".into();
    assert_eq!(output_of(&spawn).await, ["here"]);
    spawn.cwd = "/".into();
    assert!(matches!(crate::spawn(&spawn).await, Err(SpawnError::NotFound { .. })));
}

/// Starts a new file. A child of another test may hold it open for writing between its fork and its
/// exec, so a busy file is retried.
async fn start_file(path: &Path, content: &str, mode: u32) -> Result<(), SpawnError> {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let spawn = Spawn { program: path.to_owned(), args: Vec::new(), ..sh("") };
    for _ in 0..100 {
        match crate::spawn(&spawn).await {
            Err(SpawnError::Busy { .. }) => tokio::time::sleep(Duration::from_millis(10)).await,
            result => return result.map(|_| ()),
        }
    }
    panic!("the file stays busy");
}

#[tokio::test]
async fn the_error_for_a_file_that_cannot_run_names_the_cause() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");

    let error = start_file(&path, "no program\n", 0o755).await.unwrap_err();
    assert!(matches!(&error, SpawnError::Format { program } if *program == path), "{error:?}");

    let error = start_file(&path, "\x7fELF\x02\x01\x01 for another machine", 0o755).await.unwrap_err();
    assert!(matches!(error, SpawnError::Format { .. }), "{error:?}");

    let error = start_file(&path, "#! /nowhere/node --flag\n", 0o755).await.unwrap_err();
    assert!(
        matches!(&error, SpawnError::InterpreterNotFound { interpreter: Some(name), .. } if *name == Path::new("/nowhere/node")),
        "{error:?}"
    );

    let error = start_file(&path, "#!/bin/sh\n", 0o644).await.unwrap_err();
    assert!(matches!(error, SpawnError::Permission { .. }), "{error:?}");

    assert!(start_file(&path, "#!/bin/sh\n", 0o755).await.is_ok());
}

#[tokio::test]
async fn a_missing_program_and_a_missing_directory_have_different_errors() {
    let mut spawn = sh("");
    spawn.program = "/nowhere/agent".into();
    assert!(matches!(crate::spawn(&spawn).await, Err(SpawnError::NotFound { .. })));

    let mut spawn = sh("");
    spawn.cwd = "/nowhere".into();
    let error = crate::spawn(&spawn).await.unwrap_err();
    assert!(matches!(&error, SpawnError::WorkingDirectory { cwd, .. } if cwd == Path::new("/nowhere")), "{error:?}");

    spawn.cwd = "/etc/passwd".into();
    let error = crate::spawn(&spawn).await.unwrap_err();
    assert!(matches!(error, SpawnError::WorkingDirectory { .. }), "{error:?}");
}

#[tokio::test]
async fn the_error_for_too_large_arguments_has_their_sizes() {
    let mut spawn = sh("");
    spawn.args = vec!["x".repeat(131_072).into(), "y".into()];
    let error = crate::spawn(&spawn).await.unwrap_err();
    assert!(matches!(error, SpawnError::TooLong { largest: 131_072, .. }), "{error:?}");
    assert!(error.to_string().ends_with("pass long text on stdin or in a file"));
}

#[tokio::test]
async fn an_argument_with_a_nul_byte_is_rejected() {
    let mut spawn = sh("");
    spawn.args.push("a\0b".into());
    assert!(matches!(crate::spawn(&spawn).await, Err(SpawnError::Nul { .. })));
}

#[test]
fn debug_output_shows_no_prompt_and_no_secret() {
    let mut spawn = sh("the prompt");
    spawn.env.insert("KEY".into(), "the secret".into());
    let shown = format!("{spawn:?}");
    assert!(shown.contains("KEY") && shown.contains("/bin/sh"));
    assert!(!shown.contains("the prompt") && !shown.contains("the secret"));
}
