//! The whole path: a CLI that writes 200,000 deltas as fast as it can, to the consumer of the run.
//!
//! The CLI is `cat` over lines in Claude Code's form. Beside it, in the same run, the floor: the same `cat` read to its
//! end without looking.

#![expect(clippy::unwrap_used, reason = "a benchmark")]

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use teamster::event::Event;
use teamster::{RunRequest, Runtime};

const DELTAS: usize = 200_000;

fn main() {
    divan::main();
}

/// A directory with the lines, and a program that writes them.
struct Cli {
    _directory: tempfile::TempDir,
    program: PathBuf,
    lines: PathBuf,
    bytes: u64,
}

fn cli() -> Cli {
    let directory = tempfile::tempdir().unwrap();
    let lines = directory.path().join("lines.ndjson");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&lines).unwrap());
    let ids = r#""session_id":"0198c0de-0000-7000-8000-000000000000","parent_tool_use_id":null,"uuid":"0198c0de-0000-7000-8000-000000000001""#;
    let mut event = |body: &str| writeln!(file, r#"{{"type":"stream_event","event":{body},{ids}}}"#).unwrap();
    event(r#"{"type":"message_start","message":{"id":"msg_1","model":"m"}}"#);
    event(r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#);
    for _ in 0..DELTAS {
        event(r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"some words "}}"#);
    }
    writeln!(file, r#"{{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"some words ","session_id":"s"}}"#).unwrap();
    file.into_inner().unwrap().sync_all().unwrap();
    let program = directory.path().join("cli");
    std::fs::write(&program, format!("#!/bin/sh\nexec cat '{}'\n", lines.display())).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let bytes = std::fs::metadata(&lines).unwrap().len();
    Cli { _directory: directory, program, lines, bytes }
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn cli_to_consumer(bencher: Bencher<'_, '_>) {
    let cli = cli();
    let tokio = tokio::runtime::Runtime::new().unwrap();
    let runtime = Runtime::new();
    bencher.counter(BytesCount::new(cli.bytes)).counter(ItemsCount::new(DELTAS)).bench(|| {
        let mut request = RunRequest::new("hi");
        request.cli_path = Some(cli.program.clone());
        let texts = tokio.block_on(async {
            let mut run = runtime.run("claude", request).unwrap();
            let mut texts = 0;
            while let Some(event) = run.next().await {
                texts += usize::from(matches!(event, Event::Text(_)));
            }
            texts
        });
        assert_eq!(texts, DELTAS);
    });
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn cli_without_reader(bencher: Bencher<'_, '_>) {
    let cli = cli();
    bencher.counter(BytesCount::new(cli.bytes)).counter(ItemsCount::new(DELTAS)).bench(|| {
        let output = std::process::Command::new("cat").arg(&cli.lines).output().unwrap();
        assert_eq!(output.stdout.len() as u64, cli.bytes);
    });
}
