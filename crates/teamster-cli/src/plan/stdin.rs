//! Standard input: reads it up to a limit, and never waits for it silently.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// The maximum size of standard input. Larger inputs exceed the context of every model.
pub(crate) const MAX_STDIN_BYTES: usize = 10 << 20;

/// The time after which a notice reports that standard input is being read.
const NOTICE_AFTER: Duration = Duration::from_secs(1);

/// The default maximum time without any data.
pub(crate) const MAX_SILENCE: Duration = Duration::from_mins(5);

/// Why standard input cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StdinError {
    #[error("standard input has more than {} MiB", MAX_STDIN_BYTES >> 20)]
    TooLong,
    #[error("standard input is open, but nothing arrived for {}", humantime::format_duration(*.0))]
    Silent(Duration),
    #[error("cannot read standard input: {0}")]
    Unreadable(#[from] io::Error),
}

/// Reads to the end of the input. If there is no data for a second, `notice` is called once. If there is none for
/// `max_silence`, reading fails; without a maximum it waits.
///
/// # Errors
/// Returns an error if the input is too long, silent or unreadable.
pub(crate) fn read_to_end(
    mut input: impl Read + AsFd,
    max_silence: Option<Duration>,
    notice: impl FnOnce(),
) -> Result<Vec<u8>, StdinError> {
    let (mut bytes, mut chunk) = (Vec::new(), vec![0; 64 << 10]);
    let mut notice = Some(notice);
    loop {
        wait_for_data(&input, max_silence, &mut notice)?;
        let read = match input.read(&mut chunk) {
            Ok(0) => return Ok(bytes),
            Ok(read) => read,
            // A program that shares the pipe may have set it to non-blocking mode.
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => continue,
            Err(error) => return Err(error.into()),
        };
        bytes.extend(chunk.iter().take(read));
        if bytes.len() > MAX_STDIN_BYTES {
            return Err(StdinError::TooLong);
        }
    }
}

/// Waits until the input has data or has ended.
fn wait_for_data(
    input: &impl AsFd,
    max_silence: Option<Duration>,
    notice: &mut Option<impl FnOnce()>,
) -> Result<(), StdinError> {
    if notice.is_some() {
        if is_ready(input, Some(NOTICE_AFTER))? {
            return Ok(());
        }
        if let Some(notice) = notice.take() {
            notice();
        }
    }
    match max_silence {
        Some(limit) if !is_ready(input, Some(limit))? => Err(StdinError::Silent(limit)),
        Some(_) => Ok(()),
        None => is_ready(input, None).map(drop),
    }
}

/// Waits for data or the end of the input; returns `false` if neither comes in time.
fn is_ready(input: &impl AsFd, limit: Option<Duration>) -> Result<bool, StdinError> {
    let began = std::time::Instant::now();
    loop {
        let rest = limit.map(|limit| limit.saturating_sub(began.elapsed()));
        let rest = rest.map(|rest| Timespec {
            tv_sec: i64::try_from(rest.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(rest.subsec_nanos()),
        });
        match poll(&mut [PollFd::new(input, PollFlags::IN)], rest.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(StdinError::Unreadable(error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    #[test]
    fn a_pipe_is_read_to_its_end_however_it_is_written() {
        let (reader, mut writer) = io::pipe().unwrap();
        let text = "line\n".repeat(100_000);
        let expected = text.clone();
        let written = std::thread::spawn(move || writer.write_all(text.as_bytes()).unwrap());
        let read = read_to_end(reader, Some(MAX_SILENCE), || ()).unwrap();
        written.join().unwrap();
        assert_eq!(read, expected.into_bytes());
    }

    #[test]
    fn dev_null_and_a_closed_pipe_are_empty_at_once() {
        let null = std::fs::File::open("/dev/null").unwrap();
        assert!(read_to_end(null, Some(Duration::ZERO), || panic!("no notice")).unwrap().is_empty());
        let (reader, writer) = io::pipe().unwrap();
        drop(writer);
        assert!(read_to_end(reader, Some(Duration::ZERO), || panic!("no notice")).unwrap().is_empty());
    }

    #[test]
    fn an_open_pipe_without_data_is_an_error_after_a_notice() {
        let (reader, writer) = io::pipe().unwrap();
        let mut notices = 0;
        let end = read_to_end(reader, Some(SHORT), || notices += 1);
        assert!(matches!(end, Err(StdinError::Silent(SHORT))), "{end:?}");
        assert_eq!(notices, 1);
        drop(writer);
    }

    #[test]
    fn an_endless_input_is_an_error_at_the_limit() {
        let zeros = std::fs::File::open("/dev/zero").unwrap();
        let end = read_to_end(zeros, None, || ());
        assert!(matches!(end, Err(StdinError::TooLong)), "{end:?}");
    }
}
