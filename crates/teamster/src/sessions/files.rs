//! Reads stores with one file for each session.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{Mode, OFlags};
use ruzstd::decoding::StreamingDecoder;
use teamster_agents::agent::session_store::{IdPart, SessionFiles, SessionReader, SessionRecord, Variables};
use teamster_types::text::UntrustedText;

use super::found::Found;

/// The maximum bytes of a line. Longer lines are skipped.
const MAX_LINE: u64 = 16 << 20;

/// The maximum bytes that are read from the start of a file.
const MAX_START: u64 = 256 << 20;

/// The bytes that are read from the end of a larger file, for its last exchange.
const END: u64 = 16 << 20;

/// The maximum bytes of the file that names the working directory.
const MAX_DIRECTORY_FILE: u64 = 16 << 10;

/// The maximum number of names of sessions.
const MAX_NAMES: usize = 100_000;

/// The bytes that are read at once.
const BUFFER: usize = 64 << 10;

/// The maximum number of entries of directories.
const MAX_ENTRIES: usize = 500_000;

/// A file that may be a session of the query.
struct Candidate {
    path: PathBuf,
    id: IdPart,
    modified: SystemTime,
}

/// Reads the sessions that match the query, the newest files first.
pub(super) fn read(store: &SessionFiles, variables: Variables<'_>, found: &mut Found<'_>) {
    let Some(root) = (store.root)(variables) else { return };
    let mut search = Search { store, root: &root, entries: 0, candidates: Vec::new() };
    search.directory(&root, store.depth, found);
    let mut candidates = search.candidates;
    let names = read_names(store, &root, found);
    candidates.sort_by(|one, other| (other.modified, &other.path).cmp(&(one.modified, &one.path)));
    for candidate in candidates {
        if found.is_full() {
            return;
        }
        match read_candidate(store, &candidate, found) {
            Ok(Some((id, mut record))) => {
                record.title = names.get(&id).cloned().or(record.title);
                found.add(id, record);
            }
            Ok(None) => {}
            Err(reason) => found.skip(&candidate.path, reason),
        }
    }
}

/// Reads the names that people gave to sessions, by their ids.
fn read_names(store: &SessionFiles, root: &Path, found: &mut Found<'_>) -> HashMap<String, UntrustedText> {
    let mut names = HashMap::new();
    let Some(file) = &store.names else { return names };
    let path = root.join(file.path);
    let mut read = || -> io::Result<()> {
        let mut content = BufReader::new(open(&path)?.take(MAX_START));
        loop {
            let mut line = Vec::new();
            if (&mut content).take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            let entry = (file.read)(&line).filter(|_| names.len() < MAX_NAMES);
            names.extend(entry);
        }
    };
    match read() {
        Err(error) if error.kind() != io::ErrorKind::NotFound => found.skip(&path, error),
        _ => {}
    }
    names
}

/// A search for files in the directories of a store.
struct Search<'a> {
    store: &'a SessionFiles,
    root: &'a Path,
    /// The number of entries that were read.
    entries: usize,
    candidates: Vec<Candidate>,
}

impl Search<'_> {
    /// Searches a directory, in which files are this many levels below.
    fn directory(&mut self, directory: &Path, depth: usize, found: &mut Found<'_>) {
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            // The agent was never used, or a file has the name of a directory.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return,
            Err(error) => return found.skip(directory, error),
        };
        for entry in entries {
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return found.skip(directory, "there are too many files");
            }
            match entry {
                Ok(entry) if depth > 0 => self.directory(&entry.path(), depth - 1, found),
                Ok(entry) => self.file(entry.path(), found),
                Err(error) => return found.skip(directory, error),
            }
        }
    }

    fn file(&mut self, path: PathBuf, found: &mut Found<'_>) {
        let relative = path.strip_prefix(self.root).unwrap_or(&path);
        let Some(id) = (self.store.id)(relative).filter(|id| id.may_begin_with(found.id_prefix())) else { return };
        let may_belong = found.directory.as_ref().is_none_or(|directory| {
            directory.forms().into_iter().any(|directory| (self.store.may_belong)(relative, directory))
        });
        if !may_belong {
            return;
        }
        match fs::metadata(&path) {
            Ok(metadata) => {
                let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                self.candidates.push(Candidate { path, id, modified });
            }
            Err(error) => found.skip(&path, error),
        }
    }
}

/// Reads a file. Returns `None` if it is no session of the query.
fn read_candidate(
    store: &SessionFiles,
    candidate: &Candidate,
    found: &Found<'_>,
) -> Result<Option<(String, SessionRecord)>, String> {
    let wanted = found.directory.as_ref();
    let named = store.directory_file.and_then(|name| read_directory_file(&candidate.path, name));
    if let (Some(wanted), Some(named)) = (wanted, &named)
        && !wanted.is(named)
    {
        return Ok(None);
    }
    let is_other = |reader: &dyn SessionReader| match (wanted, reader.directory()) {
        (Some(wanted), Some(directory)) => !wanted.is(directory),
        _ => false,
    };
    let mut reader = (store.reader)();
    let content = read_content(&candidate.path, &mut *reader, is_other).map_err(|error| error.to_string())?;
    if content == Content::Other {
        return Ok(None);
    }
    let Some(mut record) = reader.finish().map_err(|error| error.to_string())? else { return Ok(None) };
    if content == Content::Part {
        record.turns = None;
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
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(file)
}

/// What was read of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Whole,
    /// The file is too large.
    Part,
    /// Reading stopped, because the file belongs to another directory.
    Other,
}

/// Passes the lines of a file to a reader. Stops if a line shows that the file belongs to another directory. Of a large file,
/// only the start and the end are read.
fn read_content(
    path: &Path,
    reader: &mut dyn SessionReader,
    is_other: impl Fn(&dyn SessionReader) -> bool,
) -> io::Result<Content> {
    let mut file = open(path)?;
    let is_compressed = path.extension().is_some_and(|extension| extension == "zst");
    let mut content: Box<dyn BufRead> = if is_compressed {
        let decoder = StreamingDecoder::new(BufReader::new(file.try_clone()?)).map_err(io::Error::other)?;
        Box::new(BufReader::new(decoder.take(MAX_START)))
    } else {
        Box::new(BufReader::with_capacity(BUFFER, file.try_clone()?.take(MAX_START)))
    };
    let mut count = 0;
    while let Some(bytes) = read_line(&mut *content, reader)? {
        count += bytes;
        if is_other(reader) {
            return Ok(Content::Other);
        }
    }
    if count < MAX_START {
        return Ok(Content::Whole);
    }
    let length = file.metadata()?.len();
    if !is_compressed && length > MAX_START {
        file.seek(SeekFrom::Start(length.saturating_sub(END).max(MAX_START)))?;
        let mut end = BufReader::new(file.take(END));
        end.skip_until(b'\n')?;
        while read_line(&mut end, reader)?.is_some() {}
    }
    Ok(Content::Part)
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
