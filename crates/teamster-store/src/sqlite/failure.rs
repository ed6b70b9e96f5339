//! Turns errors of `SQLite` into errors that name the file and the remedy.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::ErrorCode;

use crate::error::StoreError;

/// Why an operation stopped: by a rule of the store, or by the database.
#[derive(Debug)]
pub(super) enum Failure {
    Rule(StoreError),
    Database(rusqlite::Error),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Rule(error)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

/// The result of an operation inside of a transaction.
pub(super) type Outcome<T> = Result<T, Failure>;

/// The data in errors: the file, and the time limit of a lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'a> {
    pub(super) path: &'a Path,
    pub(super) busy_timeout: Duration,
}

impl Context<'_> {
    pub(super) fn failure(self, action: &'static str, failure: Failure) -> StoreError {
        match failure {
            Failure::Rule(error) => error,
            Failure::Database(error) => self.database(action, error),
        }
    }

    pub(super) fn database(self, action: &'static str, error: rusqlite::Error) -> StoreError {
        let path = self.path.to_owned();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::DiskFull { path },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                StoreError::ReadOnly { path }
            }
            Some(ErrorCode::NotADatabase) => StoreError::ForeignFile { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                StoreError::Locked { path, waited: self.busy_timeout }
            }
            Some(ErrorCode::DatabaseCorrupt) => StoreError::Corrupt { path, source: Arc::new(error) },
            _ if is_wrong_value(&error) => StoreError::Corrupt { path, source: Arc::new(error) },
            _ => StoreError::Database { action, source: Arc::new(error) },
        }
    }

    pub(super) fn io(action: &'static str, error: std::io::Error) -> StoreError {
        StoreError::Database { action, source: Arc::new(error) }
    }
}

/// Whether a column has a value that the store never writes.
fn is_wrong_value(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
    )
}
