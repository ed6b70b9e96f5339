//! Merges and their end, as a caller has them.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::document::{DocumentError, Entries, Place};
use crate::error::{ConfigError, TargetProblem};
use crate::settle::{Settlement, settle};
use crate::state::Station;
use crate::state::holder::{self, Claim, Holder};
use crate::state::journal::Journal;
use crate::target::Target;

/// How often a file is looked for anew because it comes and goes.
const ATTEMPTS: usize = 32;

/// Where it is noted what was changed, and for whom.
#[derive(Clone)]
pub struct RestoreLog {
    directory: PathBuf,
    step: fn(&'static str),
}

/// Entries that somebody needs in a file.
#[derive(Clone, PartialEq, Eq)]
pub struct Merge {
    /// The file. It is made if it is not there, with mode 0600, and so are its directories.
    pub path: PathBuf,
    /// Where in it the entries go.
    pub place: Place,
    /// The entries.
    pub entries: Entries,
    /// What a file that is made for them holds beside them, as its program would write it there at once; or nothing.
    pub template: String,
    /// Who needs them, for people.
    pub by: String,
    /// A directory that others may have written, such as a project, which holds the file: below it, links are followed
    /// only if they are the user's own and lead to something below it. With `None` every link is followed.
    pub within: Option<PathBuf>,
}

impl fmt::Debug for Merge {
    /// Shows no value: it may be a secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Merge")
            .field("path", &self.path)
            .field("place", &self.place)
            .field("entries", &self.entries.keys().collect::<Vec<_>>())
            .field("by", &self.by)
            .finish_non_exhaustive()
    }
}

/// A file with entries that somebody needs. Dropping it takes them out; [`restore`](Self::restore) tells how that went.
#[derive(Debug)]
pub struct Merged {
    journals: RestoreLog,
    target: Target,
    holder: Option<Holder>,
    /// Whether the entries were put in.
    is_in: bool,
}

/// How entries were taken out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// The file, without links.
    pub path: PathBuf,
    /// What became of it.
    pub how: How,
    /// Entries that somebody has changed since they were put in. They were left.
    pub changed: Vec<String>,
    /// Whether the file had got another name (a hard link) since the entries were put in: under that name the entries
    /// stay.
    pub other_names: bool,
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum How {
    /// It is what it was, byte for byte; or it is gone again.
    Exactly,
    /// Somebody has edited it meanwhile: their edit stays, our entries are out.
    EditKept,
    /// Others still need entries of theirs: ours are out.
    Shared,
    /// It was left as it is.
    Left {
        /// Why.
        why: WhyLeft,
        /// Where the user's content is kept, if there was any.
        original: Option<PathBuf>,
    },
}

/// Why a file was left as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WhyLeft {
    /// Somebody has removed it.
    #[error("it was removed meanwhile")]
    Deleted,
    /// Something else stands in its place.
    #[error("{0}")]
    NotAFile(TargetProblem),
    /// What stands in it cannot be told apart from what we put in.
    #[error("{0}")]
    Unreadable(DocumentError),
}

/// What crashes had left.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Recovery {
    /// The files from which the entries of the dead were taken out.
    pub restored: Vec<Restored>,
    /// How many files are needed by somebody who lives.
    pub live: usize,
    /// What could not be done.
    pub problems: Vec<ConfigError>,
}

/// What there is.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Survey {
    /// Files with entries that somebody needs.
    pub live: Vec<PathBuf>,
    /// Files with entries that nobody needs any more: the next recovery takes them out.
    pub leftovers: Vec<PathBuf>,
    /// What could not be looked at.
    pub problems: Vec<ConfigError>,
}

impl RestoreLog {
    /// Creates a log in this directory. The first merge creates the directory, which only the current user can enter.
    pub fn in_directory(path: impl Into<PathBuf>) -> Self {
        Self { directory: path.into(), step: |_| {} }
    }

    /// Has this called after each step, so that a test can end the process there.
    #[doc(hidden)]
    #[must_use]
    pub fn stepping(mut self, step: fn(&'static str)) -> Self {
        self.step = step;
        self
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Puts entries into a file.
    ///
    /// # Errors
    /// When the file cannot take them. It is as it was then.
    pub fn merge(&self, merge: &Merge) -> Result<Merged, ConfigError> {
        let (target, missing, station) = self.locked(&merge.path, merge.within.as_deref())?;
        let journal = Journal::load(&station)?;
        let mut claims = holder::living(&station)?;
        for other in &claims {
            if journal.as_ref().is_some_and(|journal| journal.place != merge.place) {
                return Err(ConfigError::OtherPlace { path: merge.path.clone(), by: other.owner() });
            }
            let differs =
                |(name, value): &(&String, _)| other.entries.get(*name).is_some_and(|theirs| theirs != *value);
            if let Some((name, _)) = merge.entries.iter().find(differs) {
                let (path, name) = (merge.path.clone(), name.clone());
                return Err(ConfigError::Taken { path, name, by: other.owner() });
            }
        }
        station.make()?;
        let claim = Claim::new(&merge.by, merge.entries.clone());
        let holder = Holder::register(&station, &claim)?;
        (self.step)("the holder is registered");
        claims.push(claim);
        let settlement = Settlement {
            target: &target,
            missing: &missing,
            new: Some((&merge.place, &merge.template)),
            step: self.step,
        };
        let done = settle(&settlement, station, journal, &claims);
        let merged = Merged { journals: self.clone(), target, holder: Some(holder), is_in: done.is_ok() };
        match done {
            Ok(_) => Ok(merged),
            Err(error) => {
                // Nobody needs to hear of a second failure: what it leaves, the next recovery takes.
                _ = merged.restore();
                Err(error)
            }
        }
    }

    /// The file, and the directories that are missing for it: as they are now that it is locked.
    fn locked(&self, path: &Path, within: Option<&Path>) -> Result<(Target, Vec<PathBuf>, Station), ConfigError> {
        let (mut target, _) = Target::resolve(path, within)?;
        for _ in 0..ATTEMPTS {
            target.check()?;
            let station = Station::of(&self.directory, target.path())?;
            let (again, missing) = Target::resolve(path, within)?;
            if again == target {
                return Ok((target, missing, station));
            }
            target = again;
        }
        Err(ConfigError::Busy { path: path.to_owned() })
    }

    /// Takes out the entries of all whose process is gone. Any number of processes may do so at once.
    pub fn recover(&self) -> Recovery {
        let mut recovery = Recovery::default();
        let names = Station::all(&self.directory).unwrap_or_else(|error| {
            recovery.problems.push(error);
            Vec::new()
        });
        for name in names {
            match self.recover_one(&name) {
                Ok((restored, live)) => {
                    recovery.restored.extend(restored);
                    recovery.live += usize::from(live);
                }
                Err(error) => recovery.problems.push(error),
            }
        }
        recovery
    }

    fn recover_one(&self, name: &str) -> Result<(Option<Restored>, bool), ConfigError> {
        let station = Station::named(&self.directory, name)?;
        let claims = holder::living(&station)?;
        let live = !claims.is_empty();
        let Some(journal) = Journal::load(&station)? else {
            if !live {
                station.remove(self.step)?;
            }
            return Ok((None, live));
        };
        let target = Target::at(journal.path(), journal.within());
        let settlement = Settlement { target: &target, missing: &[], new: None, step: self.step };
        let restored = settle(&settlement, station, Some(journal), &claims)?;
        Ok(((!live).then_some(restored), live))
    }

    /// Tells what there is, and changes nothing.
    pub fn survey(&self) -> Survey {
        let mut survey = Survey::default();
        let look = |name: &str| -> Result<_, ConfigError> {
            let directory = self.directory.join(name);
            let live = holder::any_living(&directory)?;
            Ok(Journal::load_from(&directory)?.map(|journal| (journal.path(), live)))
        };
        for name in Station::all(&self.directory).unwrap_or_else(|error| {
            survey.problems.push(error);
            Vec::new()
        }) {
            match look(&name) {
                Ok(Some((path, true))) => survey.live.push(path),
                Ok(Some((path, false))) => survey.leftovers.push(path),
                Ok(None) => {}
                Err(error) => survey.problems.push(error),
            }
        }
        survey
    }
}

impl Restored {
    pub(crate) fn new(path: &Path, how: How, changed: Vec<String>) -> Self {
        Self { path: path.to_owned(), how, changed, other_names: false }
    }
}

impl fmt::Debug for RestoreLog {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("RestoreLog").field(&self.directory).finish()
    }
}

impl Merged {
    /// The file, without links.
    pub fn path(&self) -> &Path {
        self.target.path()
    }

    /// Takes the entries out.
    ///
    /// # Errors
    /// When that cannot be done now: no space, or somebody else holds the lock. The next recovery does it then.
    pub fn restore(mut self) -> Result<Restored, ConfigError> {
        self.leave()
    }

    fn leave(&mut self) -> Result<Restored, ConfigError> {
        let nothing = || Restored::new(self.target.path(), How::Exactly, Vec::new());
        let Some(holder) = self.holder.take() else { return Ok(nothing()) };
        let station = Station::of(&self.journals.directory, self.target.path())?;
        drop(holder); // unlocked, it is nobody's
        let claims = holder::living(&station)?;
        (self.journals.step)("the holder is removed");
        let Some(journal) = Journal::load(&station)? else {
            if self.is_in {
                let (path, problem) = (station.directory.clone(), "was removed by somebody: entries stay in the file");
                return Err(ConfigError::Journal { path, problem });
            }
            if claims.is_empty() {
                station.remove(self.journals.step)?;
            }
            return Ok(nothing());
        };
        let step = self.journals.step;
        let settlement = Settlement { target: &self.target, missing: &[], new: None, step };
        settle(&settlement, station, Some(journal), &claims)
    }
}

impl Drop for Merged {
    fn drop(&mut self) {
        if self.holder.is_none() {
            return;
        }
        if let Err(error) = self.leave() {
            let path = self.target.path().display();
            tracing::warn!(%error, %path, "entries stay in a file until the next recovery");
        }
    }
}
