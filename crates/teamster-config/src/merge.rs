//! Merges and their end.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::document::{Entries, Location};
use crate::error::ConfigError;
use crate::restored::{RestoreOutcome, Restored};
use crate::settle::{Settlement, settle};
use crate::state::FileRecord;
use crate::state::holder::{self, Claim, Holder};
use crate::state::journal::Journal;
use crate::target::Target;

/// The maximum number of attempts to lock a file that other processes create and remove.
const ATTEMPTS: usize = 32;

/// The log of changes to files, and of their holders.
#[derive(Clone)]
pub struct RestoreLog {
    directory: PathBuf,
    step: fn(&'static str),
}

/// Entries that a holder needs in a file.
#[derive(Clone, PartialEq, Eq)]
pub struct Merge {
    /// The file. If it does not exist, it is created with mode 0600, with its directories.
    pub path: PathBuf,
    /// The location of the entries in the file.
    pub location: Location,
    /// The entries.
    pub entries: Entries,
    /// The initial content of a new file beside the entries, as its program would write it. It may be empty.
    pub template: String,
    /// The holder, for messages.
    pub by: String,
    /// A directory such as a project that contains the file and that others may have written. Below it, only the user's own
    /// links are followed, and only to targets below it. With `None` every link is followed.
    pub within: Option<PathBuf>,
}

impl fmt::Debug for Merge {
    /// Shows no value, because it may be a secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Merge")
            .field("path", &self.path)
            .field("location", &self.location)
            .field("entries", &self.entries.keys().collect::<Vec<_>>())
            .field("by", &self.by)
            .finish_non_exhaustive()
    }
}

/// A file with entries of this holder. Dropping it removes them. [`restore`](Self::restore) removes them and returns the
/// result.
#[derive(Debug)]
pub struct Merged {
    journals: RestoreLog,
    target: Target,
    holder: Option<Holder>,
    /// Whether the file contains the entries.
    is_in: bool,
}

/// The result of a recovery after crashes.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Recovery {
    /// The files from which the entries of dead holders were removed.
    pub restored: Vec<Restored>,
    /// The number of files that live holders need.
    pub live: usize,
    /// The problems.
    pub problems: Vec<ConfigError>,
}

/// The contents of the log.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Survey {
    /// Files with entries of live holders.
    pub live: Vec<PathBuf>,
    /// Files with entries of dead holders. The next recovery removes them.
    pub leftovers: Vec<PathBuf>,
    /// The problems.
    pub problems: Vec<ConfigError>,
}

impl RestoreLog {
    /// Creates a log in this directory. The first merge creates the directory, which only the current user can enter.
    pub fn in_directory(path: impl Into<PathBuf>) -> Self {
        Self { directory: path.into(), step: |_| {} }
    }

    /// Calls this function after each step, so that a test can end the process there.
    #[doc(hidden)]
    #[must_use]
    pub fn stepping(mut self, step: fn(&'static str)) -> Self {
        self.step = step;
        self
    }

    /// Returns the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Adds entries to a file.
    ///
    /// # Errors
    /// The file cannot take the entries. It is not changed.
    pub fn merge(&self, merge: &Merge) -> Result<Merged, ConfigError> {
        let (target, missing, record) = self.locked(&merge.path, merge.within.as_deref())?;
        let journal = Journal::load(&record)?;
        let mut claims = holder::living(&record)?;
        for other in &claims {
            if journal.as_ref().is_some_and(|journal| journal.location != merge.location) {
                return Err(ConfigError::OtherLocation { path: merge.path.clone(), by: other.owner() });
            }
            let differs =
                |(name, value): &(&String, _)| other.entries.get(*name).is_some_and(|theirs| theirs != *value);
            if let Some((name, _)) = merge.entries.iter().find(differs) {
                let (path, name) = (merge.path.clone(), name.clone());
                return Err(ConfigError::Taken { path, name, by: other.owner() });
            }
        }
        record.make()?;
        let claim = Claim::new(&merge.by, merge.entries.clone());
        let holder = Holder::register(&record, &claim)?;
        (self.step)("the holder is registered");
        claims.push(claim);
        let settlement = Settlement {
            target: &target,
            missing: &missing,
            new: Some((&merge.location, &merge.template)),
            step: self.step,
        };
        let done = settle(&settlement, record, journal, &claims);
        let merged = Merged { journals: self.clone(), target, holder: Some(holder), is_in: done.is_ok() };
        match done {
            Ok(_) => Ok(merged),
            Err(error) => {
                // A second failure is not reported. The next recovery removes what it left.
                _ = merged.restore();
                Err(error)
            }
        }
    }

    /// Locks the file. Returns it with its missing directories.
    fn locked(&self, path: &Path, within: Option<&Path>) -> Result<(Target, Vec<PathBuf>, FileRecord), ConfigError> {
        let (mut target, _) = Target::resolve(path, within)?;
        for _ in 0..ATTEMPTS {
            target.check()?;
            let record = FileRecord::of(&self.directory, target.path())?;
            let (again, missing) = Target::resolve(path, within)?;
            if again == target {
                return Ok((target, missing, record));
            }
            target = again;
        }
        Err(ConfigError::Busy { path: path.to_owned() })
    }

    /// Removes the entries of dead holders. Several processes may do so at once.
    pub fn recover(&self) -> Recovery {
        let mut recovery = Recovery::default();
        let names = FileRecord::all(&self.directory).unwrap_or_else(|error| {
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
        let record = FileRecord::named(&self.directory, name)?;
        let claims = holder::living(&record)?;
        let live = !claims.is_empty();
        let Some(journal) = Journal::load(&record)? else {
            if !live {
                record.remove(self.step)?;
            }
            return Ok((None, live));
        };
        let target = Target::at(journal.path(), journal.within());
        let settlement = Settlement { target: &target, missing: &[], new: None, step: self.step };
        let restored = settle(&settlement, record, Some(journal), &claims)?;
        Ok(((!live).then_some(restored), live))
    }

    /// Returns the contents of the log and changes nothing.
    pub fn survey(&self) -> Survey {
        let mut survey = Survey::default();
        let look = |name: &str| -> Result<_, ConfigError> {
            let directory = self.directory.join(name);
            let live = holder::any_living(&directory)?;
            Ok(Journal::load_from(&directory)?.map(|journal| (journal.path(), live)))
        };
        for name in FileRecord::all(&self.directory).unwrap_or_else(|error| {
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

impl fmt::Debug for RestoreLog {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("RestoreLog").field(&self.directory).finish()
    }
}

impl Merged {
    /// Returns the resolved path of the file.
    pub fn path(&self) -> &Path {
        self.target.path()
    }

    /// Removes the entries.
    ///
    /// # Errors
    /// There is no space, or another process holds the lock. The next recovery removes the entries.
    pub fn restore(mut self) -> Result<Restored, ConfigError> {
        self.leave()
    }

    fn leave(&mut self) -> Result<Restored, ConfigError> {
        let nothing = || Restored::new(self.target.path(), RestoreOutcome::Exactly, Vec::new());
        let Some(holder) = self.holder.take() else { return Ok(nothing()) };
        let record = FileRecord::of(&self.journals.directory, self.target.path())?;
        drop(holder); // unlocked, it is nobody's
        let claims = holder::living(&record)?;
        (self.journals.step)("the holder is removed");
        let Some(journal) = Journal::load(&record)? else {
            if self.is_in {
                let (path, problem) =
                    (record.directory.clone(), "was removed by another program: the entries stay in the file");
                return Err(ConfigError::Journal { path, problem });
            }
            if claims.is_empty() {
                record.remove(self.journals.step)?;
            }
            return Ok(nothing());
        };
        let step = self.journals.step;
        let settlement = Settlement { target: &self.target, missing: &[], new: None, step };
        settle(&settlement, record, Some(journal), &claims)
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
