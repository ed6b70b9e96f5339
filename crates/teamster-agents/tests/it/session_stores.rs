//! The readers of the agents' session stores, with recorded files and with random content.

use std::path::Path;

use insta::assert_snapshot;
use proptest::prelude::*;
use teamster_agents::agent::session_store::{MAX_TEXT_BYTES, SessionFiles, SessionRecord};
use teamster_agents::agent::{Agent, SessionStore, claude::Claude, codex::Codex, gemini::Gemini};

const AGENTS: [&dyn Agent; 3] = [&Claude, &Codex, &Gemini];

fn files(agent: &dyn Agent) -> &'static SessionFiles {
    match agent.session_store() {
        Some(SessionStore::Files(files)) => files,
        other => panic!("{other:?}"),
    }
}

fn recorded(agent: &dyn Agent) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures/sessions").join(agent.name());
    std::fs::read(path.with_extension("jsonl")).unwrap()
}

/// Reads a file. An error is the text of the reason.
fn read<'a>(agent: &dyn Agent, lines: impl IntoIterator<Item = &'a [u8]>) -> Result<Option<SessionRecord>, String> {
    let mut reader = (files(agent).reader)();
    lines.into_iter().for_each(|line| reader.line(line));
    reader.finish().map_err(|error| error.to_string())
}

fn lines(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    content.split(|byte| *byte == b'\n')
}

#[test]
fn a_recorded_session_is_read() {
    let shown = AGENTS.map(|agent| {
        let record = read(agent, lines(&recorded(agent))).unwrap().unwrap();
        format!("{}: {record:#?}", agent.name())
    });
    assert_snapshot!(shown.join("\n"));
}

#[test]
fn a_file_of_another_agent_is_no_session() {
    for agent in AGENTS {
        for other in AGENTS.into_iter().filter(|other| other.name() != agent.name()) {
            let read = read(agent, lines(&recorded(other)));
            assert!(!matches!(read, Ok(Some(_))), "{} read as {}: {read:?}", other.name(), agent.name());
        }
        let error = read(agent, [&b"#!/bin/sh"[..], b"exit"]).unwrap_err();
        assert!(error.starts_with("it is not a session of "), "{error}");
    }
}

#[test]
fn an_empty_file_is_a_session_without_prompts() {
    for agent in AGENTS {
        assert_eq!(read(agent, []), Ok(None));
        assert_eq!(read(agent, [&b""[..], b" "]), Ok(None));
    }
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    let deep = "[".repeat(1 << 20);
    for agent in AGENTS {
        for line in [format!("{{\"type\":\"user\",\"message\":{deep}"), format!("{{\"$set\":{deep}"), deep.clone()] {
            assert!(!matches!(read(agent, [line.as_bytes()]), Ok(Some(_))));
        }
    }
}

/// Whether what was read is bounded.
fn is_bounded(record: &SessionRecord) -> bool {
    let texts = [&record.last_exchange.prompt, &record.last_exchange.answer].into_iter().flatten();
    let title = record.title.as_ref().map_or(0, |title| title.len());
    title < 1000 && texts.into_iter().all(|text| text.len() <= MAX_TEXT_BYTES + 1)
}

proptest! {
    #[test]
    fn no_content_causes_a_panic(content: Vec<Vec<u8>>) {
        for agent in AGENTS {
            let read = read(agent, content.iter().map(Vec::as_slice));
            prop_assert!(read.iter().flatten().all(is_bounded));
        }
    }

    #[test]
    fn a_damaged_session_causes_no_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40),
        length: prop::sample::Index,
    ) {
        for agent in AGENTS {
            let mut content = recorded(agent);
            for (at, byte) in &changes {
                let at = at.index(content.len());
                content[at] = *byte;
            }
            content.truncate(length.index(content.len()) + 1);
            let read = read(agent, lines(&content));
            prop_assert!(read.iter().flatten().all(is_bounded));
        }
    }

    #[test]
    fn no_path_causes_a_panic(path: String, directory: String) {
        for agent in AGENTS {
            let files = files(agent);
            _ = (files.id)(Path::new(&path));
            _ = (files.may_belong)(Path::new(&path), Path::new(&directory));
        }
    }
}

#[test]
fn a_worker_of_a_team_is_no_session() {
    let line = |fields: &str| {
        let message = r#""type":"user","sessionId":"s","cwd":"/p","message":{"role":"user","content":"Do it"}"#;
        format!("{{{message}{fields}}}")
    };
    for (first, is_listed) in [
        ("", true),
        (r#","teamName":"""#, true),
        (r#","teamName":"reviewers","agentName":"one""#, false),
        (r#","sessionKind":"daemon-worker""#, false),
    ] {
        let lines = [line(first), line(r#","teamName":"later""#)];
        let found = read(&Claude, lines.iter().map(String::as_bytes)).unwrap();
        assert_eq!(found.is_some(), is_listed, "{first}");
    }
}
