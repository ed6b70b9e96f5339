//! Makes a file what it should be: the user's content, and the entries of all who live.
//!
//! Everything that happens to a file happens here: a merge, its end, and what comes after a crash are the same, with other
//! claims. It is done under the file's lock. At any instruction the process may be killed: what the journal then says,
//! read with the file as it is, leads to the same end.

use std::fs;
use std::io;
use std::path::PathBuf;

use crate::document::{self, DocumentError, Entries, Place};
use crate::error::{ConfigError, io_error};
use crate::merge::{How, Restored, WhyLeft};
use crate::modes;
use crate::state::Station;
use crate::state::holder::Claim;
use crate::state::journal::{Journal, State};
use crate::target::{Content, Target, Written};

/// How often it is begun anew because somebody else changes the file.
const ATTEMPTS: usize = 32;

/// What is to be settled.
pub(crate) struct Settlement<'a> {
    pub(crate) target: &'a Target,
    /// Directories that are to be made for the file.
    pub(crate) missing: &'a [PathBuf],
    /// Where new entries go, and what a file that is made for them holds; `None` if there are none.
    pub(crate) new: Option<(&'a Place, &'a str)>,
    pub(crate) step: fn(&'static str),
}

/// What the user has.
struct Base {
    content: Content,
    /// What the file is now, and with which entries of ours; several, if that is not known.
    now: Vec<State>,
    is_edited: bool,
    changed: Vec<String>,
}

pub(crate) fn settle(
    settlement: &Settlement<'_>,
    station: Station,
    mut journal: Option<Journal>,
    claims: &[Claim],
) -> Result<Restored, ConfigError> {
    for _ in 0..ATTEMPTS {
        let other_names = settlement.new.is_none() && settlement.target.has_other_names();
        match settlement.attempt(&station, journal.as_ref(), claims)? {
            Attempt::Raced => journal = Journal::load(&station)?,
            Attempt::Done(mut restored) => {
                restored.other_names = other_names;
                if claims.is_empty() {
                    settlement.clear(station, journal.as_ref(), &restored.how)?;
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
    fn attempt(&self, station: &Station, journal: Option<&Journal>, claims: &[Claim]) -> Result<Attempt, ConfigError> {
        let is_merge = self.new.is_some();
        let noted = journal.map(|journal| (&journal.place, &*journal.template));
        let Some((place, template)) = self.new.or(noted) else {
            return Ok(Attempt::Done(self.restored(How::Exactly, Vec::new())));
        };
        // Whoever made the file has said what it holds.
        let template = noted.map_or(template, |(_, template)| template);
        if let Some(journal) = journal {
            self.target.remove_temporary(&journal.temporary);
        }
        let now = match self.target.read() {
            Ok(now) => now,
            Err(ConfigError::Target { problem, .. }) if !is_merge => {
                return self.left(station, journal, claims, WhyLeft::NotAFile(problem));
            }
            Err(error) => return Err(error),
        };
        let base = match base_of(station, journal, &now)? {
            Ok(base) => base,
            Err(WhyLeft::Deleted) if is_merge => {
                // As if there had never been one; but what was there is not thrown away.
                if let Some(kept) = self.keep_original(station, journal)? {
                    let (path, kept) = (self.target.path().display(), kept.display());
                    tracing::warn!(%path, %kept, "a file was removed while entries were in it; its content is kept");
                }
                let now = State::of(&Content::Absent, Entries::new());
                Base { content: Content::Absent, now: vec![now], is_edited: true, changed: Vec::new() }
            }
            Err(WhyLeft::Unreadable(source)) if is_merge => return Err(self.document_error(source)),
            Err(why) => return self.left(station, journal, claims, why),
        };
        let needed: Entries = claims.iter().flat_map(|claim| claim.entries.clone()).collect();
        let next = match (&base.content, claims.is_empty()) {
            (content, true) => content.clone(),
            (content, false) => {
                let bytes = match content {
                    Content::Bytes(bytes) => bytes.as_slice(),
                    Content::Absent => template.as_bytes(),
                };
                match document::merge(Some(bytes), place, &needed) {
                    Ok(bytes) => Content::Bytes(bytes),
                    Err(source) if is_merge => return Err(self.document_error(source)),
                    Err(source) => return self.left(station, journal, claims, WhyLeft::Unreadable(source)),
                }
            }
        };
        let state = State::of(&next, needed);
        let is_settled =
            now == next && !base.is_edited && journal.is_some_and(|old| old.states.first() == Some(&state));
        if !is_settled
            && self.write(station, journal, (place, template), &base, state, (&now, &next))? == Written::Raced
        {
            return Ok(Attempt::Raced);
        }
        let how = match (claims.is_empty(), base.is_edited) {
            (false, _) => How::Shared,
            (true, true) => How::EditKept,
            (true, false) => How::Exactly,
        };
        Ok(Attempt::Done(self.restored(how, base.changed)))
    }

    /// Notes what is to be, and does it.
    fn write(
        &self,
        station: &Station,
        journal: Option<&Journal>,
        (place, template): (&Place, &str),
        base: &Base,
        state: State,
        (now, next): (&Content, &Content),
    ) -> Result<Written, ConfigError> {
        if self.new.is_some() {
            // Another name may have come since the file was locked.
            self.target.check()?;
        }
        let states = [state].into_iter().chain(base.now.iter().cloned()).collect();
        let mut new = Journal::new(self.target.path(), (place, template), &base.content, states);
        new.within = self.target.within().map(|path| path.as_os_str().to_owned());
        new.made = journal.map(|journal| journal.made.clone()).unwrap_or_default();
        let missing: Vec<_> = self.missing.iter().filter(|path| !path.exists()).collect();
        new.made.extend(missing.iter().map(|path| path.as_os_str().to_owned()));
        new.save(station, &base.content, self.step)?;
        for path in missing {
            match modes::make_for_owner(path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    // Somebody else's, and not ours to remove.
                    new.made.retain(|made| made != path.as_os_str());
                    new.save(station, &base.content, self.step)?;
                }
                Err(error) => return Err(io_error("make", path)(error)),
            }
            (self.step)("a directory is made");
        }
        self.target.change(now, next, &new.temporary, self.step)
    }

    /// The file stays as it is. While others need it, nothing else is decided.
    fn left(
        &self,
        station: &Station,
        journal: Option<&Journal>,
        claims: &[Claim],
        why: WhyLeft,
    ) -> Result<Attempt, ConfigError> {
        let how = if claims.is_empty() {
            How::Left { why, original: self.keep_original(station, journal)? }
        } else {
            How::Shared
        };
        Ok(Attempt::Done(self.restored(how, Vec::new())))
    }

    fn keep_original(&self, station: &Station, journal: Option<&Journal>) -> Result<Option<PathBuf>, ConfigError> {
        match journal.map(|journal| journal.base(station)).transpose()? {
            Some(Content::Bytes(bytes)) => station.keep(self.target.path(), &bytes).map(Some),
            _ => Ok(None),
        }
    }

    /// Nobody needs anything any more: what we made goes, the journal too.
    fn clear(&self, station: Station, journal: Option<&Journal>, how: &How) -> Result<(), ConfigError> {
        if !matches!(how, How::Left { .. }) {
            for path in journal.iter().flat_map(|journal| journal.made.iter().rev()) {
                // Not if somebody has put something into it.
                _ = fs::remove_dir(path);
            }
            (self.step)("directories are removed");
        }
        station.remove(self.step)
    }

    fn restored(&self, how: How, changed: Vec<String>) -> Restored {
        Restored::new(self.target.path(), how, changed)
    }

    fn document_error(&self, problem: DocumentError) -> ConfigError {
        ConfigError::Document { path: self.target.path().to_owned(), problem }
    }
}

/// What the user has, told from the file as it is.
fn base_of(station: &Station, journal: Option<&Journal>, now: &Content) -> Result<Result<Base, WhyLeft>, ConfigError> {
    let Some(journal) = journal else {
        let state = State::of(now, Entries::new());
        let base = Base { content: now.clone(), now: vec![state], is_edited: false, changed: Vec::new() };
        return Ok(Ok(base));
    };
    let before = journal.base(station)?;
    if let Some(state) = journal.state_of(now) {
        return Ok(Ok(Base { content: before, now: vec![state], is_edited: false, changed: Vec::new() }));
    }
    let Content::Bytes(bytes) = now else { return Ok(Err(WhyLeft::Deleted)) };
    let saved = match &before {
        Content::Bytes(bytes) => bytes.as_slice(),
        Content::Absent => journal.template.as_bytes(),
    };
    let put = journal.put();
    let taken = match document::take_out(bytes, Some(saved), &journal.place, &put) {
        Ok(taken) => taken,
        Err(source) => return Ok(Err(WhyLeft::Unreadable(source))),
    };
    let is_gone = before == Content::Absent && (taken.is_empty || taken.bytes == saved);
    let content = if is_gone { Content::Absent } else { Content::Bytes(taken.bytes) };
    let now = put.into_iter().map(|entries| State::of(now, entries)).collect();
    Ok(Ok(Base { content, now, is_edited: !is_gone, changed: taken.changed }))
}
