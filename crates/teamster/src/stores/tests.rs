//! Stores in a directory of their own.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use teamster_agents::agent::{Agent as _, SessionStore, claude::Claude, codex::Codex};
use tempfile::TempDir;

use super::directory::Directory;
use super::lookup::{find, newest};
use super::search::Filter;

/// A home with working directories and stored sessions.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Creates a working directory, and returns its path.
    fn directory(&self, name: &str) -> PathBuf {
        let path = self.0.path().canonicalize().unwrap().join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn write(&self, name: &str, content: &str, age: u64) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        let changed = SystemTime::now() - Duration::from_secs(age);
        File::options().write(true).open(&path).unwrap().set_modified(changed).unwrap();
        path
    }

    /// Stores a session of Claude Code whose last message has this second of a minute. Its file was changed `age` seconds ago.
    fn claude(&self, number: u32, directory: &Path, second: u32, age: u64) -> PathBuf {
        let id = id(number);
        let text = directory.to_str().unwrap();
        let units = text.encode_utf16().map(|unit| match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii_alphanumeric() => char::from(byte),
            _ => '-',
        });
        let folder: String = units.collect();
        let line = |kind: &str, second: u32| {
            format!(
                r#"{{"type":"{kind}","sessionId":"{id}","cwd":"{text}","timestamp":"2026-11-24T07:00:{second:02}.000Z","message":{{"content":"Hi"}}}}"#
            )
        };
        let content = format!("{}\n{}\n", line("user", 0), line("assistant", second));
        self.write(&format!(".claude/projects/{folder}/{id}.jsonl"), &content, age)
    }

    /// Stores a session of Codex.
    fn codex(&self, number: u32, directory: &Path, age: u64) -> PathBuf {
        let id = id(number);
        let directory = directory.to_str().unwrap();
        let content = format!(
            "{{\"type\":\"session_meta\",\"payload\":{{\"id\":\"{id}\",\"cwd\":\"{directory}\"}}}}\n\
             {{\"type\":\"event_msg\",\"payload\":{{\"type\":\"user_message\",\"message\":\"Hi\"}}}}\n"
        );
        self.write(&format!(".codex/sessions/2026/11/24/rollout-2026-11-24T07-08-05-{id}.jsonl"), &content, age)
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        (name == "HOME").then(|| self.0.path().as_os_str().to_owned())
    }

    /// Returns the number of the newest session of a directory.
    fn newest(&self, store: SessionStore, directory: &Path) -> Option<u32> {
        let directory = Directory::new(directory);
        let filter = Filter { directory: Some(&directory), ..Filter::default() };
        let found = newest(store, &|name| self.variable(name), filter)?;
        Some(found.id.get(..8)?.parse().unwrap())
    }

    /// Returns the directory of a session.
    fn directory_of(&self, store: SessionStore, number: u32) -> Option<PathBuf> {
        find(store, &|name| self.variable(name), &id(number))?.directory
    }
}

fn id(number: u32) -> String {
    format!("{number:08}-861b-4c99-8ee9-b9763d77fa36")
}

fn claude() -> SessionStore {
    Claude.session_store().unwrap()
}

fn codex() -> SessionStore {
    Codex.session_store().unwrap()
}

#[test]
fn the_newest_session_is_of_exactly_this_directory_although_names_are_encoded_alike() {
    let home = Home::new();
    let pairs = [("app/x", "app-x"), ("проект", "наукам"), ("日本", "漢字")];
    for (number, (one, other)) in (1..).step_by(10).zip(pairs) {
        let [one, other] = [one, other].map(|name| home.directory(name));
        home.claude(number, &one, 5, 60);
        home.claude(number + 1, &other, 6, 30);
        assert_eq!((home.newest(claude(), &one), home.newest(claude(), &other)), (Some(number), Some(number + 1)));
    }
    assert_eq!(home.newest(claude(), &home.directory("app")), None);
}

#[test]
fn a_directory_is_found_by_a_link_and_with_a_slash_at_its_end() {
    let home = Home::new();
    let project = home.directory("real/project");
    home.claude(1, &project, 5, 60);
    home.codex(2, &project, 60);
    symlink(home.directory("real"), home.0.path().join("link")).unwrap();
    for path in [home.0.path().join("link/project"), home.0.path().join("real/project/"), project.join("../project")] {
        assert_eq!(home.newest(claude(), &path), Some(1), "{path:?}");
        assert_eq!(home.newest(codex(), &path), Some(2), "{path:?}");
    }
    fs::remove_dir(&project).unwrap();
    assert_eq!(home.newest(codex(), &project.join("")), Some(2), "a removed directory");
}

#[test]
fn in_a_copied_store_the_time_of_the_last_message_decides() {
    let home = Home::new();
    let project = home.directory("project");
    for (number, second, age) in [(1, 20, 50), (2, 40, 40), (3, 30, 30), (4, 10, 20)] {
        home.claude(number, &project, second, age);
    }
    assert_eq!(home.newest(claude(), &project), Some(2));
}

#[test]
fn a_damaged_or_half_written_file_is_left_out_and_the_end_of_a_file_may_be_cut() {
    let home = Home::new();
    let project = home.directory("project");
    home.claude(1, &project, 10, 60);
    // The last message is longer than the end that is read first.
    let long = home.claude(2, &project, 20, 50);
    let text = fs::read_to_string(&long)
        .unwrap()
        .replace(r#""content":"Hi""#, &format!(r#""content":"{}""#, "x".repeat(90_000)));
    fs::write(&long, &text).unwrap();
    assert_eq!(home.newest(claude(), &project), Some(2));
    // The next message is being written.
    fs::write(&long, format!("{text}{}", text.get(..text.len() / 3).unwrap())).unwrap();
    assert_eq!(home.newest(claude(), &project), Some(2));
    let folder = long.parent().unwrap();
    fs::write(folder.join(id(3)).with_extension("jsonl"), [0xff, 0x00, b'\n', b'{']).unwrap();
    fs::write(folder.join(id(4)).with_extension("jsonl"), "").unwrap();
    let started = text.get(..40).unwrap();
    fs::write(folder.join(id(5)).with_extension("jsonl"), started).unwrap();
    assert_eq!(home.newest(claude(), &project), Some(2));
}

#[test]
fn a_session_is_found_by_its_id_with_its_directory() {
    let home = Home::new();
    let [one, other] = ["one", "other"].map(|name| home.directory(name));
    home.claude(1, &one, 5, 60);
    home.codex(2, &other, 60);
    assert_eq!(home.directory_of(claude(), 1), Some(one.clone()));
    assert_eq!(home.directory_of(codex(), 2), Some(other));
    assert_eq!((home.directory_of(claude(), 2), home.directory_of(codex(), 1)), (None, None));
    let link = home.0.path().join("link");
    symlink(&one, &link).unwrap();
    assert!(Directory::new(&one).is_reached_by(&link) && !Directory::new(&one).is(&link));
}
