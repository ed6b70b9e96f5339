//! Reads the file of a session.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use teamster_agents::agent::session_store::{IdPart, SessionFiles, SessionReader, SessionRecord};

use super::search::Candidate;

/// The maximum bytes of a line. Longer lines are skipped.
pub(crate) const MAX_LINE: u64 = 16 << 20;

/// The maximum bytes that are read from the start of a file.
pub(crate) const MAX_START: u64 = 256 << 20;

/// The bytes that are read from the end of a larger file, for its last exchange.
const END: u64 = 16 << 20;

/// The bytes that are read from the end of a file for the time of its last message. More are read if no line starts there.
const SHORT_END: u64 = 64 << 10;

/// The maximum bytes of the file that names the working directory.
const MAX_DIRECTORY_FILE: u64 = 16 << 10;

/// The bytes that are read at once.
const BUFFER: usize = 64 << 10;

/// How much of a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of it, except the middle of a very large file.
    Whole,
    /// The start up to the first prompt, and the end: enough for the id, the directory and the time of the last message.
    Ends,
}

/// What was read of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Whole,
    /// The middle was not read.
    Part,
    /// The middle was not read, and no line of the end has a time.
    Start,
    /// Reading stopped, because the file belongs to another directory.
    Other,
}

/// Reads a file. Returns `None` if it is no session, or one of a directory that is not wanted.
///
/// # Errors
/// The reason why it cannot be read.
pub(crate) fn read_candidate(
    store: &SessionFiles,
    candidate: &Candidate,
    extent: Extent,
    is_wanted: impl Fn(&Path) -> bool,
) -> Result<Option<(String, SessionRecord)>, String> {
    let named = store.directory_file.and_then(|name| read_directory_file(&candidate.path, name));
    if named.as_deref().is_some_and(|named| !is_wanted(named)) {
        return Ok(None);
    }
    let is_other = |reader: &dyn SessionReader| reader.directory().is_some_and(|directory| !is_wanted(directory));
    let mut reader = (store.reader)();
    let content = read_content(&candidate.path, &mut *reader, extent, is_other).map_err(|error| error.to_string())?;
    if content == Content::Other {
        return Ok(None);
    }
    let Some(mut record) = reader.finish().map_err(|error| error.to_string())? else { return Ok(None) };
    if content != Content::Whole {
        record.turns = None;
    }
    if content == Content::Start {
        record.updated = None;
    }
    record.directory = record.directory.or(named);
    record.updated = record.updated.or(Some(candidate.modified));
    let id = match &candidate.id {
        IdPart::Whole(id) => Some(id.clone()),
        IdPart::Start(_) => record.id.take(),
    };
    Ok(id.map(|id| (id, record)))
}

/// Reads the file that names the working directory of the sessions beside it.
fn read_directory_file(session: &Path, name: &str) -> Option<PathBuf> {
    let mut text = Vec::new();
    open(&session.parent()?.join(name)).ok()?.take(MAX_DIRECTORY_FILE).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let text = text.trim_end_matches(['\r', '\n']);
    (!text.is_empty()).then(|| PathBuf::from(text))
}

/// Opens a regular file. It does not block, for example on a FIFO without a writer.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(file)
}

/// Passes the lines of a file to a reader. Stops if a line shows that the file belongs to another directory.
fn read_content(
    path: &Path,
    reader: &mut dyn SessionReader,
    extent: Extent,
    is_other: impl Fn(&dyn SessionReader) -> bool,
) -> io::Result<Content> {
    let mut file = open(path)?;
    let is_compressed = path.extension().is_some_and(|extension| extension == "zst");
    let mut content = if is_compressed {
        decompressed(file.try_clone()?)?
    } else {
        Box::new(BufReader::with_capacity(BUFFER, file.try_clone()?.take(MAX_START)))
    };
    let mut count = 0;
    while let Some(bytes) = read_line(&mut *content, reader)? {
        count += bytes;
        if is_other(reader) {
            return Ok(Content::Other);
        }
        if extent == Extent::Ends && !is_compressed && reader.has_prompt() {
            return read_short_end(&mut file, count, reader);
        }
    }
    if count < MAX_START {
        return Ok(Content::Whole);
    }
    let rest = file.metadata()?.len().saturating_sub(MAX_START);
    if !is_compressed && rest > 0 {
        read_end(&mut file, END.min(rest), false, reader)?;
    }
    Ok(Content::Part)
}

#[cfg(feature = "sessions")]
fn decompressed(file: File) -> io::Result<Box<dyn BufRead>> {
    let decoder = ruzstd::decoding::StreamingDecoder::new(BufReader::new(file)).map_err(io::Error::other)?;
    Ok(Box::new(BufReader::new(decoder.take(MAX_START))))
}

#[cfg(not(feature = "sessions"))]
fn decompressed(_: File) -> io::Result<Box<dyn BufRead>> {
    Err(io::Error::other("it is compressed, which needs the feature `sessions`"))
}

/// Passes the last lines of a file to a reader, until one has a time. The first `read` bytes, which are whole lines, were read.
fn read_short_end(file: &mut File, read: u64, reader: &mut dyn SessionReader) -> io::Result<Content> {
    let first = reader.last_time().map(str::to_owned);
    let rest = file.metadata()?.len().saturating_sub(read);
    for length in [SHORT_END, END] {
        if rest <= length {
            read_end(file, rest, true, reader)?;
            return Ok(Content::Part);
        }
        read_end(file, length, false, reader)?;
        if reader.last_time() != first.as_deref() {
            return Ok(Content::Part);
        }
    }
    Ok(Content::Start)
}

/// Passes the lines in the last bytes of a file to a reader. A first line that may be incomplete is skipped.
fn read_end(file: &mut File, length: u64, at_line: bool, reader: &mut dyn SessionReader) -> io::Result<()> {
    file.seek(SeekFrom::Start(file.metadata()?.len().saturating_sub(length)))?;
    let mut end = BufReader::new(file.take(length));
    if !at_line {
        end.skip_until(b'\n')?;
    }
    while read_line(&mut end, reader)?.is_some() {}
    Ok(())
}

/// Passes one line to a reader. Returns its length with the line end; `None` at the end.
fn read_line(content: &mut dyn BufRead, reader: &mut dyn SessionReader) -> io::Result<Option<u64>> {
    let mut line = Vec::new();
    let count = content.take(MAX_LINE).read_until(b'\n', &mut line)? as u64;
    if count == 0 {
        return Ok(None);
    }
    if count < MAX_LINE || line.ends_with(b"\n") {
        reader.line(line.strip_suffix(b"\n").unwrap_or(&line));
        return Ok(Some(count));
    }
    drop(line);
    reader.skipped_line();
    Ok(Some(count + content.skip_until(b'\n')? as u64))
}
