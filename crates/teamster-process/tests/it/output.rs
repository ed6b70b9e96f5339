//! Concurrent reading and writing, with programs that do only one of them or neither.

use bytes::Bytes;
use teamster_process::{Frame, Output, OutputReader, Pipes, ProcessTree, Spawn, Stdin, StdinWriter};

use crate::{BOUND, sh};

async fn start_with_stdin(script: &str) -> (ProcessTree, StdinWriter, OutputReader) {
    let (tree, Pipes { stdin, stdout, .. }) = crate::spawn(&Spawn { stdin: Stdin::Pipe, ..sh(script) }).await.unwrap();
    (tree, StdinWriter::new(stdin), OutputReader::new(stdout, 16 * 1024 * 1024))
}

/// Returns 8 MB of numbered lines: more than all pipes hold.
fn long_input() -> Vec<u8> {
    (0..1_000_000).flat_map(|number| format!("{number:07}\n").into_bytes()).collect()
}

#[tokio::test]
async fn long_input_and_output_are_transferred_completely_at_the_same_time() {
    let (tree, mut stdin, mut stdout) = start_with_stdin("cat").await;
    let input = Bytes::from(long_input());
    for chunk in input.chunks(1_000_003) {
        stdin.push(input.slice_ref(chunk));
    }
    stdin.close_when_written();
    assert_eq!(stdin.pending(), input.len());

    let mut output = Vec::new();
    loop {
        // Both futures are dropped repeatedly before they finish.
        tokio::select! {
            written = stdin.flush(), if !stdin.is_idle() => written.unwrap(),
            read = stdout.fill() => {
                if read.unwrap() == 0 {
                    break;
                }
                while let Some(Frame::Line(line)) = stdout.next() {
                    output.extend_from_slice(line);
                    output.push(b'\n');
                }
            }
        }
    }
    assert!(output == input);
    assert!(stdin.is_closed());
    assert!(tree.exited().await.success());
}

#[tokio::test]
async fn a_program_that_exits_without_reading_closes_only_its_input() {
    let (tree, mut stdin, mut stdout) = start_with_stdin("echo done").await;
    stdin.push(Bytes::from(long_input()));
    stdin.push(Bytes::from_static(b"more"));
    let closed = tokio::time::timeout(BOUND, stdin.flush()).await.unwrap().unwrap_err();
    assert!(closed.unwritten > 4);
    assert_eq!(closed.source.kind(), std::io::ErrorKind::BrokenPipe);
    assert!(stdin.is_closed() && stdin.is_idle());
    stdin.push(Bytes::from_static(b"ignored"));
    assert!(stdin.flush().await.is_ok());

    assert!(tree.exited().await.success());
    stdout.fill().await.unwrap();
    assert_eq!(stdout.next(), Some(Frame::Line(b"done")));
}

#[tokio::test]
async fn closing_an_empty_input_is_an_end_of_file() {
    let (tree, mut stdin, _stdout) = start_with_stdin("cat; exit 5").await;
    stdin.close_when_written();
    assert!(stdin.is_closed());
    assert_eq!(tokio::time::timeout(BOUND, tree.exited()).await.unwrap().code, Some(5));
}

#[tokio::test]
async fn a_program_can_write_a_megabyte_of_unread_output() {
    let scripts = [
        (Output::Stdout, "head -c 1000000 /dev/zero; head -c 60000 /dev/zero >&2"),
        (Output::Stderr, "head -c 1000000 /dev/zero >&2; head -c 60000 /dev/zero"),
    ];
    for (output, script) in scripts {
        let (tree, pipes) = crate::spawn(&Spawn { output, ..sh(script) }).await.unwrap();
        assert!(tokio::time::timeout(BOUND, tree.exited()).await.unwrap().success(), "{output:?}");
        drop(pipes);
    }
}

#[tokio::test]
async fn all_output_of_the_leader_is_readable_after_its_exit_though_others_hold_the_pipe() {
    let (tree, pipes) = crate::start("sleep 300 & head -c 500000 /dev/zero; echo; printf last").await;
    let mut stdout = OutputReader::new(pipes.stdout, 1024 * 1024);
    tree.exited().await;
    let mut lines = 0;
    while stdout.fill_now().unwrap().is_some_and(|read| read > 0) {
        while let Some(Frame::Line(line)) = stdout.next() {
            assert_eq!(line.len(), 500_000);
            lines += 1;
        }
    }
    assert_eq!(lines, 1);
    assert_eq!(stdout.finish(), Some(Frame::Unterminated(b"last")));
    assert_eq!(stdout.finish(), None);
}

#[tokio::test]
async fn both_read_methods_report_the_end_of_the_output() {
    let (tree, pipes) = crate::start("exit 0").await;
    let mut stdout = OutputReader::new(pipes.stdout, 1024);
    tree.exited().await;
    assert_eq!(stdout.fill_now().unwrap(), Some(0));
    assert_eq!(stdout.fill().await.unwrap(), 0);
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn the_number_of_input_bytes_read_is_known_after_the_exit() {
    let (tree, mut stdin, mut stdout) = start_with_stdin("IFS= read -r line; echo \"$line\"; read -r other").await;
    stdin.push(Bytes::from_static(b"one\n"));
    stdin.flush().await.unwrap();
    while stdout.next().is_none() {
        assert!(tokio::time::timeout(BOUND, stdout.fill()).await.unwrap().unwrap() > 0);
    }
    assert_eq!((stdin.pushed(), stdin.read_at_most()), (4, 4));
    // The shell reads a pipe byte by byte, up to the line's end.
    stdin.push(Bytes::from_static(b"two\nthree\n"));
    stdin.flush().await.unwrap();
    assert!(tree.exited().await.success());
    assert_eq!((stdin.pushed(), stdin.read_at_most()), (14, 8));
    // The number stays the same once the pipe is known to be closed.
    stdin.push(Bytes::from_static(b"four\n"));
    assert!(stdin.flush().await.is_err());
    assert_eq!((stdin.pushed(), stdin.read_at_most()), (19, 8));
}
