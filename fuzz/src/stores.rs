//! The readers of stored sessions.

use std::path::Path;

use teamster_agents::agent::Agent;
use teamster_agents::agent::claude::Claude;
use teamster_agents::agent::codex::Codex;
use teamster_agents::agent::gemini::Gemini;
use teamster_agents::agent::opencode::OpenCode;
use teamster_agents::agent::session_store::{MAX_TEXT_BYTES, SessionFiles, SessionStore};

/// The maximum characters of a title, and bytes of a name.
const MAX_TITLE: usize = 201;
const MAX_NAME: usize = 4096;

/// Passes the bytes to the readers of all agents. Every text of a record is bounded, whatever the content is.
pub fn session_stores(bytes: &[u8]) {
    let agents: [&dyn Agent; 4] = [&Claude, &Codex, &Gemini, &OpenCode];
    for agent in agents {
        match agent.session_store() {
            Some(SessionStore::Files(store)) => files(store, bytes),
            Some(SessionStore::Database(store)) => {
                let model = (store.model)(&String::from_utf8_lossy(bytes));
                assert!(model.is_none_or(|model| model.len() <= MAX_NAME));
            }
            None => {}
        }
    }
}

fn files(store: &SessionFiles, bytes: &[u8]) {
    let mut reader = (store.reader)();
    let mut directory = None;
    for line in bytes.split(|byte| *byte == b'\n') {
        match line {
            // It stands for a line that is too long.
            b"-" => reader.skipped_line(),
            line => reader.line(line),
        }
        // A reader of another directory stops at the first one that it returns.
        let current = reader.directory().map(Path::to_owned);
        assert!(directory.is_none() || directory == current);
        directory = current;
        if let Some(names) = &store.names
            && let Some((id, name)) = (names.read)(line)
        {
            assert!(id.len() <= MAX_NAME && name.chars().count() <= MAX_TITLE);
        }
        let path = Path::new("a/chats").join(String::from_utf8_lossy(line).replace('\0', "/"));
        _ = ((store.id)(&path), (store.may_belong)(&path, &path));
    }
    let Ok(Some(record)) = reader.finish() else { return };
    assert!(record.title.is_none_or(|title| title.chars().count() <= MAX_TITLE));
    assert!([record.id, record.model].into_iter().flatten().all(|name| name.len() <= MAX_NAME));
    let exchange = record.last_exchange;
    assert!([exchange.prompt, exchange.answer].into_iter().flatten().all(|text| text.len() <= MAX_TEXT_BYTES));
    assert!(record.turns.is_none_or(|turns| turns <= bytes.len() as u64));
}
