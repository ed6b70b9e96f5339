//! The man pages and completion scripts in `packaging/`, which this module generates.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap_complete::Shell;

use crate::args::command;
use crate::{completion, man};

#[test]
fn no_option_of_a_man_page_lacks_its_description() {
    for (name, text) in generated() {
        if !name.starts_with("man") {
            continue;
        }
        let text = String::from_utf8(text).unwrap();
        for entry in text.split(".TP\n").skip(1).filter(|entry| entry.starts_with("\\fB\\-")) {
            let mut lines = entry.lines().skip(1);
            let is_described = lines.next().is_some_and(|line| !line.trim().is_empty() && !line.starts_with('.'));
            assert!(is_described, "{}: {entry}", name.to_string_lossy());
        }
    }
}

/// Returns the files that belong in `packaging/`, by their path in it.
fn generated() -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for (name, text) in man::pages(command()).unwrap() {
        files.insert(PathBuf::from(format!("man/{name}.1")), text);
    }
    for (shell, file) in [
        (Shell::Bash, "completions/teamster.bash"),
        (Shell::Zsh, "completions/_teamster"),
        (Shell::Fish, "completions/teamster.fish"),
        (Shell::PowerShell, "completions/_teamster.ps1"),
    ] {
        files.insert(PathBuf::from(file), completion::script(shell).unwrap());
    }
    files
}

// The pages are those of the complete command.
#[cfg(feature = "serve")]
#[test]
fn the_packaged_pages_and_completions_are_current() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    let files = generated();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        for (name, text) in &files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }
    for (name, text) in &files {
        let current = fs::read(folder.join(name)).unwrap_or_default();
        assert!(current == *text, "{} is not current: run this test with UPDATE_DOCS=1", name.to_string_lossy());
    }
    let listed = ["man", "completions"].map(|name| fs::read_dir(folder.join(name)).unwrap().count());
    assert_eq!(listed.iter().sum::<usize>(), files.len(), "a file in packaging/ is not generated");
}
