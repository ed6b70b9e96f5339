//! Brings a file into its required state: the user's content, and the entries of all live holders.
//!
//! Every change of a file happens here. A merge, its end and the recovery after a crash differ only in the claims. The file's
//! lock is held. The process may be killed at any instruction: the journal and the file together then lead to the same result.

use std::fs;
use std::io;
use std::path::PathBuf;

use crate::document::{self, DocumentError, Entries, Location};
use crate::error::{ConfigError, io_error};
use crate::modes;
use crate::restored::{NotRestoredReason, RestoreOutcome, Restored};
use crate::state::FileRecord;
use crate::state::holder::Claim;
use crate::state::journal::{Journal, State};
use crate::target::{Content, Target, Written};

/// The maximum number of attempts while another process changes the file.
const ATTEMPTS: usize = 32;

/// A file to settle.
pub(crate) struct Settlement<'a> {
    pub(crate) target: &'a Target,
    /// The directories to create for the file.
    pub(crate) missing: &'a [PathBuf],
    /// The location of new entries, and the initial content of a new file. `None` if there are no new entries.
    pub(crate) new: Option<(&'a Location, &'a str)>,
    pub(crate) step: fn(&'static str),
}

/// The user's content.
struct Base {
    content: Content,
    /// The states that the file can have now: its content, and the entries of this crate in it.
    now: Vec<State>,
    is_edited: bool,
    changed: Vec<String>,
}

pub(crate) fn settle(
    settlement: &Settlement<'_>,
    record: FileRecord,
    mut journal: Option<Journal>,
    claims: &[Claim],
) -> Result<Restored, ConfigError> {
    for _ in 0..ATTEMPTS {
        let other_names = settlement.new.is_none() && settlement.target.has_other_names();
        match settlement.attempt(&record, journal.as_ref(), claims)? {
            Attempt::Raced => journal = Journal::load(&record)?,
            Attempt::Done(mut restored) => {
                restored.other_names = other_names;
                if claims.is_empty() {
                    settlement.clear(record, journal.as_ref(), &restored.how)?;
                }
                return Ok(restored);
            }
        }
    }
    Err(ConfigError::Busy { path: settlement.target.path().to_owned() })
}

enum Attempt {
    Done(Restored),
    Raced,
}

impl Settlement<'_> {
    fn attempt(
        &self,
        record: &FileRecord,
        journal: Option<&Journal>,
        claims: &[Claim],
    ) -> Result<Attempt, ConfigError> {
        let is_merge = self.new.is_some();
        let noted = journal.map(|journal| (&journal.location, &*journal.template));
        let Some((location, template)) = self.new.or(noted) else {
            return Ok(Attempt::Done(self.restored(RestoreOutcome::Exactly, Vec::new())));
        };
        // The holder that created the file has determined its initial content.
        let template = noted.map_or(template, |(_, template)| template);
        if let Some(journal) = journal {
            self.target.remove_temporary(&journal.temporary);
        }
        let now = match self.target.read() {
            Ok(now) => now,
            Err(ConfigError::Target { problem, .. }) if !is_merge => {
                return self.left(record, journal, claims, NotRestoredReason::NotAFile(problem));
            }
            Err(error) => return Err(error),
        };
        let base = match base_of(record, journal, &now)? {
            Ok(base) => base,
            Err(NotRestoredReason::Deleted) if is_merge => {
                // The file is treated as one that never existed. Its earlier content is kept.
                if let Some(kept) = self.keep_original(record, journal)? {
                    let (path, kept) = (self.target.path().display(), kept.display());
                    tracing::warn!(%path, %kept, "a file was removed while entries were in it; its content is kept");
                }
                let now = State::of(&Content::Absent, Entries::new());
                Base { content: Content::Absent, now: vec![now], is_edited: true, changed: Vec::new() }
            }
            Err(NotRestoredReason::Unreadable(source)) if is_merge => return Err(self.document_error(source)),
            Err(why) => return self.left(record, journal, claims, why),
        };
        let needed: Entries = claims.iter().flat_map(|claim| claim.entries.clone()).collect();
        let next = match (&base.content, claims.is_empty()) {
            (content, true) => content.clone(),
            (content, false) => {
                let bytes = match content {
                    Content::Bytes(bytes) => bytes.as_slice(),
                    Content::Absent => template.as_bytes(),
                };
                match document::merge(Some(bytes), location, &needed) {
                    Ok(bytes) => Content::Bytes(bytes),
                    Err(source) if is_merge => return Err(self.document_error(source)),
                    Err(source) => return self.left(record, journal, claims, NotRestoredReason::Unreadable(source)),
                }
            }
        };
        let state = State::of(&next, needed);
        let is_settled =
            now == next && !base.is_edited && journal.is_some_and(|old| old.states.first() == Some(&state));
        if !is_settled
            && self.write(record, journal, (location, template), &base, state, (&now, &next))? == Written::Raced
        {
            return Ok(Attempt::Raced);
        }
        let how = match (claims.is_empty(), base.is_edited) {
            (false, _) => RestoreOutcome::Shared,
            (true, true) => RestoreOutcome::EditKept,
            (true, false) => RestoreOutcome::Exactly,
        };
        Ok(Attempt::Done(self.restored(how, base.changed)))
    }

    /// Writes the journal, and then the file.
    fn write(
        &self,
        record: &FileRecord,
        journal: Option<&Journal>,
        (location, template): (&Location, &str),
        base: &Base,
        state: State,
        (now, next): (&Content, &Content),
    ) -> Result<Written, ConfigError> {
        if self.new.is_some() {
            // The file may have got another name since it was locked.
            self.target.check()?;
        }
        let states = [state].into_iter().chain(base.now.iter().cloned()).collect();
        let mut new = Journal::new(self.target.path(), (location, template), &base.content, states);
        new.within = self.target.within().map(|path| path.as_os_str().to_owned());
        new.made = journal.map(|journal| journal.made.clone()).unwrap_or_default();
        let missing: Vec<_> = self.missing.iter().filter(|path| !path.exists()).collect();
        new.made.extend(missing.iter().map(|path| path.as_os_str().to_owned()));
        new.save(record, &base.content, self.step)?;
        for path in missing {
            match modes::make_for_owner(path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    // Another process created it. It is not removed later.
                    new.made.retain(|made| made != path.as_os_str());
                    new.save(record, &base.content, self.step)?;
                }
                Err(error) => return Err(io_error("make", path)(error)),
            }
            (self.step)("a directory is made");
        }
        self.target.change(now, next, &new.temporary, self.step)
    }

    /// Leaves the file as it is. While others need it, nothing else is decided.
    fn left(
        &self,
        record: &FileRecord,
        journal: Option<&Journal>,
        claims: &[Claim],
        why: NotRestoredReason,
    ) -> Result<Attempt, ConfigError> {
        let how = if claims.is_empty() {
            RestoreOutcome::NotRestored { reason: why, original: self.keep_original(record, journal)? }
        } else {
            RestoreOutcome::Shared
        };
        Ok(Attempt::Done(self.restored(how, Vec::new())))
    }

    fn keep_original(&self, record: &FileRecord, journal: Option<&Journal>) -> Result<Option<PathBuf>, ConfigError> {
        match journal.map(|journal| journal.base(record)).transpose()? {
            Some(Content::Bytes(bytes)) => record.keep(self.target.path(), &bytes).map(Some),
            _ => Ok(None),
        }
    }

    /// No holder is left: removes the created directories and the journal.
    fn clear(&self, record: FileRecord, journal: Option<&Journal>, how: &RestoreOutcome) -> Result<(), ConfigError> {
        if !matches!(how, RestoreOutcome::NotRestored { .. }) {
            for path in journal.iter().flat_map(|journal| journal.made.iter().rev()) {
                // Fails if the directory is not empty.
                _ = fs::remove_dir(path);
            }
            (self.step)("directories are removed");
        }
        record.remove(self.step)
    }

    fn restored(&self, how: RestoreOutcome, changed: Vec<String>) -> Restored {
        Restored::new(self.target.path(), how, changed)
    }

    fn document_error(&self, problem: DocumentError) -> ConfigError {
        ConfigError::Document { path: self.target.path().to_owned(), problem }
    }
}

/// Determines the user's content from the file as it is.
fn base_of(
    record: &FileRecord,
    journal: Option<&Journal>,
    now: &Content,
) -> Result<Result<Base, NotRestoredReason>, ConfigError> {
    let Some(journal) = journal else {
        let state = State::of(now, Entries::new());
        let base = Base { content: now.clone(), now: vec![state], is_edited: false, changed: Vec::new() };
        return Ok(Ok(base));
    };
    let before = journal.base(record)?;
    if let Some(state) = journal.state_of(now) {
        return Ok(Ok(Base { content: before, now: vec![state], is_edited: false, changed: Vec::new() }));
    }
    let Content::Bytes(bytes) = now else { return Ok(Err(NotRestoredReason::Deleted)) };
    let saved = match &before {
        Content::Bytes(bytes) => bytes.as_slice(),
        Content::Absent => journal.template.as_bytes(),
    };
    let put = journal.put();
    let taken = match document::take_out(bytes, Some(saved), &journal.location, &put) {
        Ok(taken) => taken,
        Err(source) => return Ok(Err(NotRestoredReason::Unreadable(source))),
    };
    let is_gone = before == Content::Absent && (taken.is_empty || taken.bytes == saved);
    let content = if is_gone { Content::Absent } else { Content::Bytes(taken.bytes) };
    let now = put.into_iter().map(|entries| State::of(now, entries)).collect();
    Ok(Ok(Base { content, now, is_edited: !is_gone, changed: taken.changed }))
}
