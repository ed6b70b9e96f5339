//! Stores in a home directory of their own.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rusqlite::Connection;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tempfile::TempDir;

use super::stored::*;
use crate::runtime::Runtime;

/// The tables that OpenCode 1.18.33 creates, with the columns that are read.
const SCHEMA: &str = "
PRAGMA journal_mode = WAL;
CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text NOT NULL, title text NOT NULL,
    cost real DEFAULT 0 NOT NULL, model text, time_created integer NOT NULL, time_updated integer NOT NULL,
    time_archived integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, data text NOT NULL);
INSERT INTO session VALUES
    ('ses_a', NULL, '/p', 'Fix it', 0.25, '{\"id\":\"m1\",\"providerID\":\"test\"}', 1795503835287, 1795503840573, NULL),
    ('ses_b', NULL, '/q', 'Other', 0, NULL, 1795503835287, 1795503840574, NULL),
    ('ses_child', 'ses_a', '/p', 'Subagent', 0, NULL, 1, 2, NULL),
    ('ses_old', NULL, '/p', 'Archived', 0, NULL, 1, 2, 3);
INSERT INTO message VALUES
    ('m1', 'ses_a', 1, '{\"role\":\"user\"}'), ('m2', 'ses_a', 2, '{\"role\":\"assistant\"}'),
    ('m3', 'ses_a', 3, '{\"role\":\"user\"}'), ('m4', 'ses_a', 4, '{\"role\":\"assistant\"}'),
    ('m5', 'ses_b', 1, 'no JSON');
INSERT INTO part VALUES
    ('p1', 'm1', 'ses_a', '{\"type\":\"text\",\"text\":\"one\"}'),
    ('p2', 'm3', 'ses_a', '{\"type\":\"text\",\"text\":\"two\"}'),
    ('p3', 'm3', 'ses_a', '{\"type\":\"text\",\"text\":\"a file\",\"synthetic\":true}'),
    ('p4', 'm4', 'ses_a', '{\"type\":\"tool\"}'),
    ('p5', 'm4', 'ses_a', '{\"type\":\"text\",\"text\":\"Done.\"}'),
    ('p6', 'm5', 'ses_b', 'no JSON');
";

const CLAUDE_ID: &str = "0ba1884a-861b-4c99-8ee9-b9763d77fa36";
const CODEX_ID: &str = "01a20c62-1822-7a41-bdb3-5d77a3890650";
const GEMINI_ID: &str = "765a4c41-6b39-426c-bb87-c8193d19b004";

struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Creates a file with its directories.
    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Creates the stores of all agents, with recorded sessions of `/home/user/project`.
    fn with_sessions() -> Self {
        let home = Self::new();
        home.write(&claude_file(CLAUDE_ID), recorded("claude"));
        home.write(&codex_file(CODEX_ID), recorded("codex"));
        home.write(".gemini/tmp/project/chats/session-2026-11-24T07-08-765a4c41.jsonl", recorded("gemini"));
        home.write(".gemini/tmp/project/.project_root", "/home/user/project\n");
        home.write(".local/share/opencode/opencode.db", "");
        fs::remove_file(home.database()).unwrap();
        home.open().execute_batch(SCHEMA).unwrap();
        home
    }

    fn database(&self) -> PathBuf {
        self.path(".local/share/opencode/opencode.db")
    }

    fn open(&self) -> Connection {
        Connection::open(self.database()).unwrap()
    }

    fn list(&self, query: &SessionQuery) -> SessionList {
        let environment = [(OsString::from("HOME"), self.0.path().as_os_str().to_owned())];
        Runtime::builder().environment(environment).build().sessions(query).unwrap()
    }

    /// Returns each file of the home with its content and the time of its last change.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>, SystemTime)> {
        fn walk(directory: &Path, files: &mut Vec<(PathBuf, Vec<u8>, SystemTime)>) {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, files);
                } else {
                    let modified = path.metadata().unwrap().modified().unwrap();
                    files.push((path.clone(), fs::read(path).unwrap(), modified));
                }
            }
        }
        let mut files = Vec::new();
        walk(self.0.path(), &mut files);
        files.sort();
        files
    }
}

fn claude_file(id: &str) -> String {
    format!(".claude/projects/-home-user-project/{id}.jsonl")
}

fn codex_file(id: &str) -> String {
    format!(".codex/sessions/2026/11/24/rollout-2026-11-24T07-08-05-{id}.jsonl")
}

fn recorded(agent: &str) -> Vec<u8> {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../teamster-agents/tests/captures/sessions");
    fs::read(captures.join(agent).with_extension("jsonl")).unwrap()
}

fn ids(list: &SessionList) -> Vec<&str> {
    list.sessions.iter().map(|session| session.id.as_str()).collect()
}

fn of_agent(agent: &str) -> SessionQuery {
    SessionQuery { agents: vec![agent.to_owned()], ..SessionQuery::default() }
}

#[test]
fn the_sessions_of_all_agents_are_listed_the_newest_first() {
    let list = Home::with_sessions().list(&SessionQuery::default());
    assert_eq!(list.skipped, []);
    assert_eq!(ids(&list), [GEMINI_ID, CODEX_ID, CLAUDE_ID, "ses_b", "ses_a"]);
    for session in list.sessions.iter().take(3) {
        assert_eq!((session.title.as_deref(), session.turns), (Some("First prompt: read the *file*"), Some(2)));
        assert_eq!(session.directory.as_deref(), Some(Path::new("/home/user/project")), "{}", session.agent);
        assert_eq!(session.last_exchange.prompt.as_deref(), Some("Second prompt"));
        assert_eq!(session.last_exchange.answer.as_deref(), Some("Answer to the *second* prompt."));
    }
    let session = list.sessions.last().unwrap();
    assert_eq!(
        (session.title.as_deref(), session.turns, session.total_cost_usd),
        (Some("Fix it"), Some(2), Some(0.25))
    );
    assert_eq!(session.model.as_deref(), Some("test/m1"));
    assert_eq!(session.last_exchange.prompt.as_deref(), Some("two"));
    assert_eq!(session.last_exchange.answer.as_deref(), Some("Done."));
}

#[test]
fn a_query_selects_by_agent_directory_start_of_the_id_and_number() {
    let home = Home::with_sessions();
    let query = SessionQuery { directory: Some("/p".into()), ..SessionQuery::default() };
    assert_eq!(ids(&home.list(&query)), ["ses_a"]);
    let mut query = SessionQuery { directory: Some("/home/user/project".into()), ..SessionQuery::default() };
    assert_eq!(ids(&home.list(&query)), [GEMINI_ID, CODEX_ID, CLAUDE_ID]);
    query.limit = Some(2);
    let list = home.list(&query);
    assert!(list.has_more);
    assert_eq!(ids(&list), [GEMINI_ID, CODEX_ID]);
    assert_eq!(ids(&home.list(&of_agent("Codex"))), [CODEX_ID]);
    for (prefix, found) in [("0", vec![CODEX_ID, CLAUDE_ID]), (GEMINI_ID, vec![GEMINI_ID]), ("ses_a", vec!["ses_a"])] {
        let query = SessionQuery { id_prefix: Some(prefix.to_owned()), ..SessionQuery::default() };
        assert_eq!(ids(&home.list(&query)), found);
    }
    let error = Runtime::new().sessions(&of_agent("clade")).unwrap_err();
    assert!(error.to_string().contains("clade"));
}

/// Returns the files that differ.
fn changed(before: &[(PathBuf, Vec<u8>, SystemTime)], after: &[(PathBuf, Vec<u8>, SystemTime)]) -> Vec<PathBuf> {
    let new = after.iter().filter(|file| !before.contains(file));
    let gone = before.iter().filter(|file| !after.contains(file));
    new.chain(gone).map(|(path, ..)| path.clone()).collect()
}

#[test]
fn the_list_changes_no_file_and_creates_none() {
    let home = Home::with_sessions();
    let before = home.files();
    home.list(&SessionQuery::default());
    assert_eq!(changed(&before, &home.files()), Vec::<PathBuf>::new());
    // The CLI works: its changes are in the log beside the database.
    let writer = home.open();
    writer.execute_batch("UPDATE session SET title = 'New' WHERE id = 'ses_a'").unwrap();
    let before = home.files();
    assert!(before.iter().any(|(path, content, _)| path.to_string_lossy().ends_with("-wal") && !content.is_empty()));
    let list = home.list(&of_agent("opencode"));
    let mut changed = changed(&before, &home.files());
    // The index of the log belongs to the writer, which is in this process here.
    changed.retain(|path| !path.to_string_lossy().ends_with("-shm"));
    assert_eq!(changed, Vec::<PathBuf>::new());
    assert_eq!((list.sessions.last().unwrap().title.as_deref(), list.skipped), (Some("New"), vec![]));
    writer.execute_batch("BEGIN IMMEDIATE; UPDATE session SET title = 'Newer'").unwrap();
    assert_eq!(home.list(&of_agent("opencode")).sessions.len(), 2, "a writer does not block readers");
}

#[test]
fn an_unreadable_file_is_named_and_hides_no_other_session() {
    let home = Home::with_sessions();
    let other = |number: u32| format!("0000000{number}-861b-4c99-8ee9-b9763d77fa36");
    let foreign = home.write(&claude_file(&other(1)), "#!/bin/sh\nexit\n");
    let binary = home.write(&claude_file(&other(2)), [0xff, 0xfe, 0x00, b'\n', 0x80]);
    let fifo = home.path(&claude_file(&other(3)));
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let device = home.path(&claude_file(&other(4)));
    symlink("/dev/zero", &device).unwrap();
    let loose = home.path(&claude_file(&other(5)));
    symlink(home.path("nothing"), &loose).unwrap();
    let damaged = home.write(&format!("{}.zst", codex_file(&other(6))), "no Zstandard");
    fs::write(home.database(), "no database").unwrap();
    let list = home.list(&SessionQuery::default());
    assert_eq!(ids(&list), [GEMINI_ID, CODEX_ID, CLAUDE_ID]);
    let mut skipped: Vec<_> = list.skipped.iter().map(|skipped| skipped.path.clone()).collect();
    skipped.sort();
    let mut expected = vec![foreign, binary, fifo, device, loose, damaged, home.database()];
    expected.sort();
    assert_eq!(skipped, expected);
}

#[test]
fn a_large_value_in_the_database_hides_no_session() {
    let home = Home::with_sessions();
    let large = format!("json_object('role', 'user', 'type', 'text', 'text', hex(zeroblob({})))", 12 << 20);
    home.open()
        .execute_batch(&format!(
            "INSERT INTO message VALUES ('m9', 'ses_b', 9, {large}); INSERT INTO part VALUES ('p9', 'm3', 'ses_a', {large});"
        ))
        .unwrap();
    let list = home.list(&of_agent("opencode"));
    assert_eq!((ids(&list), &list.skipped), (vec!["ses_b", "ses_a"], &vec![]));
    assert_eq!(list.sessions.last().unwrap().last_exchange.answer.as_deref(), Some("Done."));
}

#[test]
fn a_line_of_any_length_is_skipped() {
    let home = Home::with_sessions();
    let path = home.path(&claude_file(CLAUDE_ID));
    let mut file = File::options().write(true).open(&path).unwrap();
    // A hole reads as zeros.
    file.seek(SeekFrom::End(1 << 30)).unwrap();
    let third = r#"{"type":"user","sessionId":"x","message":{"content":"Third prompt"}}"#;
    writeln!(file, "\n{third}").unwrap();
    let start = Instant::now();
    let list = home.list(&of_agent("claude"));
    assert!(start.elapsed() < Duration::from_mins(1));
    let session = list.sessions.first().unwrap();
    assert_eq!((session.turns, session.title.as_deref()), (None, Some("First prompt: read the *file*")));
    assert_eq!(session.last_exchange.prompt.as_deref(), Some("Third prompt"), "the end of a large file is read");
}

#[test]
fn a_directory_without_permission_is_named() {
    let home = Home::with_sessions();
    let closed = home.path(".claude/projects/-closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let list = home.list(&SessionQuery::default());
    // Root can read it.
    let is_named = list.skipped.iter().any(|skipped| skipped.path == closed);
    assert_eq!(is_named, fs::read_dir(&closed).is_err());
    assert_eq!(list.sessions.len(), 5);
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn the_name_that_a_person_gave_is_the_title() {
    let home = Home::with_sessions();
    let line = |name: &str| format!("{{\"id\":\"{CODEX_ID}\",\"thread_name\":\"{name}\"}}\n");
    home.write(".codex/session_index.jsonl", [&line("Old"), "no JSON\n", &line("Mine")].concat());
    assert_eq!(home.list(&of_agent("codex")).sessions[0].title.as_deref(), Some("Mine"));
}

#[test]
fn a_compressed_session_is_read() {
    let home = Home::with_sessions();
    let path = home.path(&codex_file(CODEX_ID));
    let plain = home.list(&of_agent("codex")).sessions;
    let compressed = compress_to_vec(&fs::read(&path).unwrap()[..], CompressionLevel::Fastest);
    home.write(&format!("{}.zst", codex_file(CODEX_ID)), compressed);
    fs::remove_file(path).unwrap();
    assert_eq!(home.list(&of_agent("codex")).sessions, plain);
}

#[test]
fn of_two_files_with_one_id_the_one_with_the_history_counts() {
    let home = Home::with_sessions();
    let header = recorded("gemini").split(|byte| *byte == b'\n').next().unwrap().to_vec();
    let stub = br#"{"id":"x","type":"user","content":"Third prompt"}"#;
    let stub = [&header[..], b"\n", stub].concat();
    home.write(".gemini/tmp/project/chats/session-2026-11-24T07-09-765a4c41.jsonl", stub);
    let list = home.list(&of_agent("gemini"));
    assert_eq!(list.sessions.iter().map(|session| session.turns).collect::<Vec<_>>(), [Some(2)]);
}

#[test]
fn without_stores_there_are_no_sessions() {
    assert_eq!(Home::new().list(&SessionQuery::default()), SessionList::default());
    let runtime = Runtime::builder().environment(Vec::<(OsString, OsString)>::new()).build();
    assert_eq!(runtime.sessions(&SessionQuery::default()).unwrap(), SessionList::default());
}
