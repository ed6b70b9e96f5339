//! Reads the journal line by line, with bounded memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use super::entry::{Entry, START};

/// The maximum bytes of a line. A longer line is of another program.
const MAX_LINE_BYTES: u64 = 64 << 10;

/// The number of bytes that are read, from the end of the file. That is about three million runs.
const MAX_BYTES: u64 = 1 << 30;

/// The parts of a journal that were not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Skipped {
    /// The number of lines that are not a whole entry.
    pub(super) lines: u64,
    /// Whether the beginning of the file was not read.
    pub(super) has_older: bool,
}

/// Reads the entries of a journal.
///
/// # Errors
/// The file cannot be read, or is not a regular file.
pub(super) fn read_file(path: &Path, each: impl FnMut(Entry)) -> io::Result<Skipped> {
    // A pipe would block.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut skipped = Skipped { has_older: size > MAX_BYTES, ..Skipped::default() };
    let read = size.min(MAX_BYTES);
    file.seek(SeekFrom::Start(size - read))?;
    let mut input = BufReader::new(file.take(read));
    if skipped.has_older {
        input.skip_until(b'\n')?;
    }
    skipped.lines = read_lines(&mut input, each)?;
    Ok(skipped)
}

/// Reads the entries of a stream. Returns the number of lines that are not a whole entry.
fn read_lines(input: &mut impl BufRead, mut each: impl FnMut(Entry)) -> io::Result<u64> {
    let (mut line, mut skipped) = (Vec::new(), 0);
    loop {
        line.clear();
        if input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
            return Ok(skipped);
        }
        if line.len() as u64 == MAX_LINE_BYTES && !line.ends_with(b"\n") {
            input.skip_until(b'\n')?;
            skipped += 1;
            continue;
        }
        let mut has_other = false;
        for part in parts(line.trim_ascii()) {
            match serde_json::from_slice(part) {
                Ok(entry) if part.starts_with(START) => each(entry),
                _ => has_other = true,
            }
        }
        skipped += u64::from(has_other);
    }
}

/// Splits a line at the start of each entry: an entry without a line end may precede another one, if the disk was full.
fn parts(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let starts = line.windows(START.len()).enumerate().filter(|(at, window)| *at > 0 && *window == START);
    let ends = starts.map(|(at, _)| at).chain([line.len()]);
    let mut from = 0;
    ends.filter_map(move |end| line.get(std::mem::replace(&mut from, end)..end)).filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use teamster::RunResult;

    use super::super::entry::tests::entry;
    use super::*;

    fn line(agent: &str) -> Vec<u8> {
        let mut line = serde_json::to_vec(&entry("2026-11-24T07:00:00Z", agent, &RunResult::default())).unwrap();
        line.push(b'\n');
        line
    }

    /// Returns the agents of the entries, and the number of lines that are not whole.
    fn read(bytes: &[u8]) -> (Vec<String>, u64) {
        let mut agents = Vec::new();
        // A small buffer splits lines.
        let mut input = BufReader::with_capacity(7, bytes);
        let skipped = read_lines(&mut input, |entry| agents.push(entry.agent)).unwrap();
        (agents, skipped)
    }

    #[test]
    fn a_line_that_is_cut_or_of_another_program_hides_no_other_line() {
        let (a, b) = (line("a"), line("b"));
        let cut = a.split_at(40).0;
        let without_end = a.split_at(a.len() - 1).0;
        let long = [&vec![b'x'; 100_000][..], b"\n"].concat();
        for (bytes, agents, skipped) in [
            ([&a[..], b"\n \r\n", &b].concat(), &["a", "b"][..], 0),
            ([&a[..], b"{\"text\":1}\n\xff\0\n", &b].concat(), &["a", "b"], 2),
            ([cut, b"\n", &b].concat(), &["b"], 1),
            ([cut, &b].concat(), &["b"], 1),
            ([without_end, &b].concat(), &["a", "b"], 0),
            ([&b[..], without_end].concat(), &["b", "a"], 0),
            ([&b[..], cut].concat(), &["b"], 1),
            ([&a[..], &long, &b].concat(), &["a", "b"], 1),
        ] {
            assert_eq!(read(&bytes), (agents.iter().map(|name| (*name).to_owned()).collect(), skipped));
        }
    }

    #[test]
    fn an_entry_of_a_later_format_is_skipped() {
        let text = String::from_utf8(line("a")).unwrap().replace("Usage\":1", "Usage\":2");
        assert_eq!(read(text.as_bytes()), (Vec::new(), 1));
    }

    proptest! {
        #[test]
        fn any_bytes_between_two_lines_hide_neither(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let (agents, skipped) = read(&[&line("a")[..], &bytes, b"\n", &line("b")].concat());
            prop_assert_eq!(agents, ["a", "b"]);
            prop_assert!(skipped <= bytes.len() as u64);
        }

        #[test]
        fn a_line_that_is_cut_anywhere_hides_no_other_line(at in 0_usize..250, damaged in any::<u8>()) {
            let (a, b) = (line("a"), line("b"));
            let cut = a.split_at(at % a.len()).0;
            let (agents, _) = read(&[&b[..], cut, &[damaged], &b].concat());
            prop_assert_eq!(agents.iter().filter(|agent| *agent == "b").count(), 2);
        }
    }
}
